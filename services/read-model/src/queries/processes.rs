//! The processes of agents.

use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::stored::Time;

/// A process, running or not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Process {
    pub process_id: Uuid,
    pub action_id: Option<Uuid>,
    /// Of the first event about it.
    pub sequence: u64,
    pub agent: String,
    /// The replica that runs it.
    pub supervisor: String,
    pub tool: Option<String>,
    /// Whether it goes on by itself when its action is done.
    pub background: bool,
    pub program: Option<String>,
    pub arguments: Option<Value>,
    pub pid: Option<i64>,
    /// None for one that was never run.
    pub started_at: Option<Time>,
    /// How far it says it is: 0 to 1, where it said.
    pub fraction: Option<f64>,
    pub progress_message: Option<String>,
    pub progress_at: Option<Time>,
    /// The end of what it had written by then.
    pub tail: Option<String>,
    /// When it was first asked to end, and by which action.
    pub cancel_requested_at: Option<Time>,
    pub cancel_requested_by: Option<Uuid>,
    pub ended_at: Option<Time>,
    pub outcome: Option<String>,
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub reason: Option<String>,
    /// What it used, where that is known.
    pub wall_ms: Option<i64>,
    pub user_ms: Option<i64>,
    pub system_ms: Option<i64>,
    pub max_rss_bytes: Option<i64>,
    pub stdout_tail: Option<String>,
    pub stderr_tail: Option<String>,
    pub stdout_bytes: Option<i64>,
    pub stderr_bytes: Option<i64>,
}

macro_rules! processes {
    ($conditions:literal, $($parameters:tt)*) => {
        sqlx::query_as!(
            Process,
            r#"
            SELECT process_id, action_id, sequence AS "sequence: U64", agent, supervisor, tool, background, program,
                   arguments, pid, started_at AS "started_at: Time", fraction, progress_message,
                   progress_at AS "progress_at: Time", tail, cancel_requested_at AS "cancel_requested_at: Time",
                   cancel_requested_by, ended_at AS "ended_at: Time", outcome, code, signal, reason, wall_ms, user_ms,
                   system_ms, max_rss_bytes, stdout_tail, stderr_tail, stdout_bytes, stderr_bytes
            FROM processes WHERE "# + $conditions,
            $($parameters)*
        )
    };
}
pub(super) use processes;
