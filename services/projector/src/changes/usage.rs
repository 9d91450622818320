//! Changes of usage.

use kairo_read_model::stored::{Key, Time};
use uuid::Uuid;

/// A call of a model, answered or not.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelCall {
    /// Of the decision it was made for.
    pub sequence: i64,
    pub agent: Key,
    pub thread_id: Option<Key>,
    pub user: Option<Key>,
    pub tier: Key,
    pub model: Key,
    /// The submodule that it was asked for; empty for the agent itself.
    pub module: Key,
    pub decided_at: Time,
    pub input_tokens: i64,
    pub output_tokens: i64,
    pub latency_ms: i64,
    /// The kind of failure, if it failed.
    pub failed: Option<Key>,
    pub cached_tokens: i64,
    pub is_estimate: bool,
    pub correlation_id: Uuid,
}
