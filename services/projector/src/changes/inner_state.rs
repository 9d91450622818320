//! Changes of agents' inner state.

use kairo_read_model::sql_values::{SqlJson, SqlKey, SqlText, Time};
use uuid::Uuid;

/// A key as it was written or deleted.
#[derive(Clone, Debug, PartialEq)]
pub struct InnerStateWrite {
    pub event_id: Uuid,
    pub sequence: i64,
    pub position: i32,
    pub agent: SqlKey,
    /// Empty for all.
    pub user: SqlKey,
    pub key: SqlKey,
    pub content: SqlText,
    pub deleted: bool,
    pub updated_at: Time,
    pub thread_id: Option<SqlKey>,
    pub definition: SqlJson,
}
