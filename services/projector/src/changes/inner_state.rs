//! Changes of agents' inner state.

use kairo_read_model::stored::{Json, Key, Text, Time};
use uuid::Uuid;

/// A key as it was written or deleted.
#[derive(Clone, Debug, PartialEq)]
pub struct StateChange {
    pub event_id: Uuid,
    pub sequence: i64,
    pub position: i32,
    pub agent: Key,
    /// Empty for all.
    pub user: Key,
    pub key: Key,
    pub content: Text,
    pub deleted: bool,
    pub updated_at: Time,
    pub thread_id: Option<Key>,
    pub definition: Json,
}
