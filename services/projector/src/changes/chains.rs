//! Changes of chains and their steps.

use kairo_read_model::sql_values::{SqlJson, SqlKey, SqlText, Time};
use uuid::Uuid;

/// A chain began.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainStart {
    pub sequence: i64,
    pub position: i32,
    pub agent: SqlKey,
    pub thread_id: Option<SqlKey>,
    pub correlation_id: Uuid,
    pub origin: SqlKey,
    pub task_id: Option<Uuid>,
    pub plan: SqlText,
    pub started_at: Time,
}

/// A step as its chain began.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedStep {
    pub group: i32,
    pub event: SqlKey,
    pub params: SqlJson,
    pub decide: Option<SqlText>,
}

/// A human was asked about a step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepApprovalRequest {
    pub approval_id: Uuid,
    pub filled: SqlJson,
    pub at: Time,
}

/// A step's tool was called.
#[derive(Clone, Debug, PartialEq)]
pub struct StepStart {
    pub sequence: i64,
    pub action_id: Uuid,
    pub filled: SqlJson,
    pub at: Time,
}

/// The end of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepEnd {
    pub sequence: i64,
    /// The position in its decision of the event that ended it; none if a tool ended it.
    pub position: Option<i32>,
    pub at: Time,
    pub outcome: &'static str,
    /// The content it ran with, if no tool was called for it.
    pub filled: Option<SqlJson>,
    pub result: Option<SqlText>,
    pub reason: Option<SqlText>,
}

/// A chain is over, and with it the steps that were not begun.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainEnd {
    pub sequence: i64,
    pub at: Time,
    pub outcome: SqlKey,
    pub reason: Option<SqlText>,
}
