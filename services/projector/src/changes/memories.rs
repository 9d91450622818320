//! Changes of agents' memories.

use kairo_read_model::sql_values::{SqlJson, SqlKey, SqlText, Time};
use uuid::Uuid;

/// One version of a memory.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryVersion {
    pub agent: SqlKey,
    pub memory_id: Uuid,
    pub memory: MemoryContent,
}

/// A memory as it was last written.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryContent {
    pub event_id: Uuid,
    pub sequence: i64,
    pub position: i32,
    pub updated_at: Time,
    pub thread_id: Option<SqlKey>,
    pub user: Option<SqlKey>,
    pub kind: SqlKey,
    pub subject: SqlText,
    pub content: SqlText,
    /// YYYY-MM-DD, if it was written so.
    pub day: Option<String>,
    pub definition: SqlJson,
    /// Subject and keywords.
    pub named: SqlText,
}
