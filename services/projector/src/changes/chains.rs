//! Changes of chains and their steps.

use kairo_read_model::stored::{Json, Key, Text, Time};
use uuid::Uuid;

/// A chain began.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    pub sequence: i64,
    pub position: i32,
    pub agent: Key,
    pub thread_id: Option<Key>,
    pub correlation_id: Uuid,
    pub origin: Key,
    pub task_id: Option<Uuid>,
    pub plan: Text,
    pub started_at: Time,
}

/// A step as its chain began.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub group: i32,
    pub event: Key,
    pub params: Json,
    pub decide: Option<Text>,
}

/// A human was asked about a step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepAsked {
    pub approval_id: Uuid,
    pub filled: Json,
    pub at: Time,
}

/// A step's tool was called.
#[derive(Clone, Debug, PartialEq)]
pub struct StepBegun {
    pub sequence: i64,
    pub action_id: Uuid,
    pub filled: Json,
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
    pub filled: Option<Json>,
    pub result: Option<Text>,
    pub reason: Option<Text>,
}

/// A chain is over, and with it the steps that were not begun.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainEnd {
    pub sequence: i64,
    pub at: Time,
    pub outcome: Key,
    pub reason: Option<Text>,
}
