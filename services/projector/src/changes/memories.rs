//! Changes of agents' memories.

use kairo_read_model::stored::{Json, Key, Text, Time};
use uuid::Uuid;

/// One version of a memory.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryVersion {
    pub agent: Key,
    pub memory_id: Uuid,
    pub memory: Memory,
}

/// A memory as it was last written.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    pub event_id: Uuid,
    pub sequence: i64,
    pub position: i32,
    pub updated_at: Time,
    pub thread_id: Option<Key>,
    pub user: Option<Key>,
    pub kind: Key,
    pub subject: Text,
    pub content: Text,
    /// YYYY-MM-DD, if it was written so.
    pub day: Option<String>,
    pub definition: Json,
    /// Subject and keywords.
    pub named: Text,
}
