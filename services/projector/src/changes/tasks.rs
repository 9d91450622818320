//! Changes of tasks.

use kairo_read_model::stored::{Json, Key, Text, Time};
use uuid::Uuid;

/// A task was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    pub sequence: i64,
    pub position: i32,
    pub agent: Key,
    pub user: Option<Key>,
    pub thread_id: Option<Key>,
    pub correlation_id: Uuid,
    pub kind: Key,
    pub title: Text,
    pub type_name: Option<Key>,
    pub timing: Timing,
    pub trigger: Option<Key>,
    pub condition: Option<Text>,
    pub action: Json,
    pub source: Key,
    pub created_at: Time,
    pub status: &'static str,
    pub next_at: Option<Time>,
    pub occurrence: Option<i64>,
}

/// When a task is due, in the words it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    pub at: Option<Text>,
    pub interval: Option<Text>,
    pub cron: Option<Text>,
    pub rrule: Option<Text>,
    pub time_zone: Option<Key>,
}

/// A task fired.
#[derive(Clone, Debug, PartialEq)]
pub struct Firing {
    pub sequence: i64,
    pub position: i32,
    pub task_id: Uuid,
    pub fired_at: Time,
    pub occurrence: Option<i64>,
    pub due_at: Option<Time>,
    pub late: bool,
    pub trigger_event_id: Option<Uuid>,
}

/// What the last of several events about a task says of its state.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskState {
    pub sequence: i64,
    pub at: Time,
    /// None if it only fired: one that was pending is active from then on, and one that is not due again is completed.
    pub status: Option<Key>,
    pub reason: Option<Text>,
    pub next_at: Option<Time>,
    pub occurrence: Option<i64>,
}
