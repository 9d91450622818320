//! Changes of tasks.

use kairo_proto::words::TaskStatus;
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
    pub definition: Json,
    pub trigger: Option<Key>,
    pub condition: Option<Text>,
    pub action: Json,
    pub created_at: Time,
    pub status: TaskStatus,
    pub next_at: Option<Time>,
    pub occurrence: Option<i64>,
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

/// The state of a task after the last of several events about it.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskState {
    pub sequence: i64,
    pub at: Time,
    /// None if it only fired: one that was pending is active from then on, and one that is not due again is completed.
    pub status: Option<Key>,
    pub reason: Option<Text>,
    pub next_at: Option<Time>,
    pub occurrence: Option<i64>,
    /// For a queued task: its result, the thread it is worked on in, and the message from which on it is the next one;
    /// none if unchanged.
    pub result: Option<Text>,
    pub work_thread_id: Option<Key>,
    pub put_first: Option<i64>,
}
