//! What agents have asked for that has no result yet, or one that leaves it in doubt.

use serde::Serialize;
use serde_json::Value;
use sqlx::query_as;
use uuid::Uuid;

use crate::{
    MAX_ROWS, ReadError, Snapshot,
    stored::{Key, Time, U64},
};

/// A tool call that is not over, or that nobody knows the outcome of.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnfinishedAction {
    pub action_id: Uuid,
    /// Of the decision that asked for it.
    pub sequence: u64,
    pub agent: String,
    pub thread_id: Option<String>,
    pub correlation_id: Uuid,
    pub tool: String,
    pub arguments: Value,
    /// `asked`, `running` or `in_doubt`.
    pub status: String,
    pub decided_at: Time,
    pub invoked_at: Option<Time>,
    /// The replica that runs it.
    pub runner: Option<String>,
    /// The process it became.
    pub process_id: Option<Uuid>,
    /// How far it says it is: 0 to 1, where it said.
    pub fraction: Option<f64>,
    pub progress_message: Option<String>,
    pub progress_at: Option<Time>,
    /// When it was first asked to end.
    pub cancel_requested_at: Option<Time>,
    /// When it ended in doubt, and what its runner said of it.
    pub ended_at: Option<Time>,
    pub error_message: Option<String>,
    /// What a human found out: `happened` or `did_not_happen`; by whom, with which words, and when.
    pub verdict: Option<String>,
    pub resolved_by: Option<String>,
    pub resolution_note: Option<String>,
    pub resolved_at: Option<Time>,
}

/// Which actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedActions {
    /// Those without a result.
    InFlight,
    /// Those in doubt, be they resolved or not.
    InDoubt,
    /// Those that somebody still waits for: in flight, or in doubt and not resolved.
    Open,
}

impl Snapshot {
    /// The oldest [`MAX_ROWS`], of one agent or of all. By index `actions_in_flight`, by `actions_in_doubt`, or by both.
    pub async fn actions(
        &self,
        wanted: WantedActions,
        agent: Option<&str>,
    ) -> Result<Vec<UnfinishedAction>, ReadError> {
        let actions = query_as!(
            UnfinishedAction,
            r#"
            SELECT action_id, sequence AS "sequence: U64", agent, thread_id, correlation_id, tool, arguments, status,
                   decided_at AS "decided_at: Time", invoked_at AS "invoked_at: Time", runner, process_id, fraction,
                   progress_message, progress_at AS "progress_at: Time",
                   cancel_requested_at AS "cancel_requested_at: Time", ended_at AS "ended_at: Time", error_message,
                   verdict, resolved_by, resolution_note, resolved_at AS "resolved_at: Time"
            FROM actions
            WHERE (($1 AND ended_at IS NULL) OR ($2 AND error_kind = 'in_doubt') OR
                   ($3 AND error_kind = 'in_doubt' AND verdict IS NULL))
                AND ($4::text IS NULL OR agent = $4)
            ORDER BY sequence, action_id LIMIT $5"#,
            wanted != WantedActions::InDoubt,
            wanted == WantedActions::InDoubt,
            wanted == WantedActions::Open,
            agent.map(Key::from) as _,
            i64::from(MAX_ROWS),
        );
        Ok(actions.fetch_all(&mut **self.connection().await).await?)
    }
}
