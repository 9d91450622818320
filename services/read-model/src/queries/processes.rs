//! The processes of agents.

use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::{
    MAX_ROWS, ReadError, Snapshot,
    stored::{Key, Time, U64},
};

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

impl Snapshot {
    /// The newest [`MAX_ROWS`], of one agent or of all, running ones, ended ones or both; the newest first. Of all, by
    /// index `processes_of_agent`; of those that run by `processes_running`.
    pub async fn processes(&self, agent: Option<&str>, running: Option<bool>) -> Result<Vec<Process>, ReadError> {
        // One that was asked to end before it began is not running.
        let processes = processes!(
            "($1::text IS NULL OR agent = $1)
                AND ($2::boolean IS NOT TRUE OR (ended_at IS NULL AND started_at IS NOT NULL))
                AND ($2 IS NOT FALSE OR ended_at IS NOT NULL)
             ORDER BY sequence DESC, process_id LIMIT $3",
            agent.map(Key::from) as _,
            running,
            i64::from(MAX_ROWS)
        );
        Ok(processes.fetch_all(&mut **self.connection().await).await?)
    }
}
