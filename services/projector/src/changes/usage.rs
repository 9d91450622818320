//! Changes of usage.

use kairo_read_model::sql_values::{SqlKey, Time};
use uuid::Uuid;

/// A call of a model, answered or not.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelCall {
    /// Of the decision it was made for.
    pub sequence: i64,
    pub agent: SqlKey,
    pub thread_id: Option<SqlKey>,
    pub user: Option<SqlKey>,
    pub tier: SqlKey,
    pub model: SqlKey,
    /// The submodule that it was asked for; empty for the agent itself.
    pub module: SqlKey,
    pub decided_at: Time,
    pub input_tokens: i64,
    pub output_tokens: i64,
    pub latency_ms: i64,
    /// The kind of failure, if it failed.
    pub failed: Option<SqlKey>,
    pub cached_tokens: i64,
    pub is_estimate: bool,
    pub correlation_id: Uuid,
}
