//! Changes of tasks.

use kairo_proto::words::TaskStatus;
use kairo_read_model::sql_values::{SqlJson, SqlKey, SqlText, Time};
use uuid::Uuid;

/// A task was made.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskCreation {
    pub sequence: i64,
    pub position: i32,
    pub agent: SqlKey,
    pub user: Option<SqlKey>,
    pub thread_id: Option<SqlKey>,
    pub correlation_id: Uuid,
    pub kind: SqlKey,
    pub title: SqlText,
    pub definition: SqlJson,
    pub trigger: Option<SqlKey>,
    pub condition: Option<SqlText>,
    pub action: SqlJson,
    pub created_at: Time,
    pub status: TaskStatus,
    pub next_at: Option<Time>,
    pub occurrence: Option<i64>,
}

/// A task fired.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskFiring {
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
    pub status: Option<SqlKey>,
    pub reason: Option<SqlText>,
    pub next_at: Option<Time>,
    pub occurrence: Option<i64>,
    /// For a queued task: its result, the thread it is worked on in, and the message from which on it is the next one;
    /// none if unchanged.
    pub result: Option<SqlText>,
    pub work_thread_id: Option<SqlKey>,
    pub put_first: Option<i64>,
}
