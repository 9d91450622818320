//! Actions and processes of any state, page by page, and one by its id.

use kairo_proto::v1::{ActionRow, ProcessRow};
use kairo_proto::words::ActionStatus;
use sqlx::query_as;
use uuid::Uuid;

use super::{processes::processes, row_limit, to_bigint};
use crate::{
    ReadError, ReadSnapshot,
    output_columns::{At, Id, Object},
    sql_values::{SqlKey, U64},
};

/// The state of the actions to return.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ActionState {
    /// Those that somebody still waits for: in flight, or in doubt and not resolved.
    #[default]
    Open,
    /// Those without a result.
    InFlight,
    /// Those that nobody has begun.
    Asked,
    /// Those that were begun and have no result.
    Running,
    /// Those whose outcome nobody knows, be they resolved or not.
    InDoubt,
    Done,
    /// Those that failed in any way but that of doubt.
    Failed,
    All,
}

impl ActionState {
    /// As the statement has it.
    fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::InFlight => "in_flight",
            Self::Asked => ActionStatus::Asked.known_word(),
            Self::Running => ActionStatus::Running.known_word(),
            Self::InDoubt => ActionStatus::InDoubt.known_word(),
            Self::Done => ActionStatus::Done.known_word(),
            Self::Failed => ActionStatus::Failed.known_word(),
            Self::All => "all",
        }
    }
}

/// The actions to return; all conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct ActionsQuery {
    pub state: ActionState,
    pub agent: Option<String>,
    pub thread: Option<String>,
    /// Those decided on before this message of the log.
    pub before: Option<u64>,
    /// At most so many, and never more than [`MAX_ROWS`](crate::MAX_ROWS); more only if several were decided on at once.
    pub limit: u32,
}

/// The processes to return; all conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct ProcessesQuery {
    /// Those that run, or those that ended.
    pub running: Option<bool>,
    /// The outcome of those that ended.
    pub outcome: Option<String>,
    pub agent: Option<String>,
    /// Those whose first event stands before this message of the log.
    pub before: Option<u64>,
    /// At most so many, and never more than [`MAX_ROWS`](crate::MAX_ROWS).
    pub limit: u32,
}

macro_rules! actions {
    ($conditions:literal, $($parameters:tt)*) => {
        query_as!(
            ActionRow,
            r#"
            SELECT action_id AS "action_id: Id", sequence AS "sequence: U64", agent, thread_id,
                   correlation_id AS "correlation_id: Id", tool, arguments AS "arguments: Object", status,
                   decided_at AS "decided_at: At", invoked_at AS "invoked_at!: At", runner,
                   process_id AS "process_id!: Id", fraction,
                   progress_message, progress_at AS "progress_at!: At",
                   cancel_requested_at AS "cancel_requested_at!: At", ended_at AS "ended_at!: At", result AS "result!: Object",
                   error_message, duration_ms, verdict, resolved_by, resolution_note, resolution_entered_by,
                   resolved_at AS "resolved_at!: At"
            FROM actions WHERE "# + $conditions,
            $($parameters)*
        )
    };
}

impl ReadSnapshot {
    /// The newest first. By index `actions_by_age` or `actions_of_agent`, whose order is the order asked for; those in
    /// flight by `actions_in_flight`, those in doubt by `actions_in_doubt`.
    pub async fn recent_actions(&self, wanted: &ActionsQuery) -> Result<Vec<ActionRow>, ReadError> {
        let actions = actions!(
            "($1 <> 'open' OR ended_at IS NULL OR (error_kind = 'in_doubt' AND verdict IS NULL))
                AND ($1 NOT IN ('in_flight', 'asked', 'running') OR ended_at IS NULL)
                AND ($1 <> 'asked' OR invoked_at IS NULL) AND ($1 <> 'running' OR invoked_at IS NOT NULL)
                AND ($1 <> 'in_doubt' OR error_kind = 'in_doubt') AND ($1 <> 'done' OR ok)
                AND ($1 <> 'failed'
                     OR (ended_at IS NOT NULL AND NOT ok AND error_kind IS DISTINCT FROM 'in_doubt'))
                AND ($2::text IS NULL OR agent = $2) AND ($3::text IS NULL OR thread_id = $3) AND sequence < $4
             ORDER BY sequence DESC FETCH FIRST ($5) ROWS WITH TIES",
            wanted.state.as_str(),
            wanted.agent.as_deref().map(SqlKey::from) as _,
            wanted.thread.as_deref().map(SqlKey::from) as _,
            to_bigint(wanted.before.unwrap_or(u64::MAX)),
            row_limit(wanted.limit)
        );
        Ok(actions.fetch_all(&mut **self.connection().await).await?)
    }

    /// By the primary key.
    pub async fn find_action(&self, action: Uuid) -> Result<Option<ActionRow>, ReadError> {
        Ok(actions!("action_id = $1", action).fetch_optional(&mut **self.connection().await).await?)
    }

    /// Returns several actions, by the primary key.
    pub(super) async fn actions_of(&self, ids: &[Uuid]) -> Result<Vec<ActionRow>, ReadError> {
        Ok(actions!("action_id = ANY($1)", ids).fetch_all(&mut **self.connection().await).await?)
    }

    /// The newest first. By index `processes_by_age` or `processes_of_agent`, whose order is the order asked for; those
    /// that run by `processes_running`.
    pub async fn recent_processes(&self, wanted: &ProcessesQuery) -> Result<Vec<ProcessRow>, ReadError> {
        // One that was asked to end before it began is not running.
        let processes = processes!(
            "($1::boolean IS NOT TRUE OR (ended_at IS NULL AND started_at IS NOT NULL))
                AND ($1 IS NOT FALSE OR ended_at IS NOT NULL) AND ($2::text IS NULL OR outcome = $2)
                AND ($3::text IS NULL OR agent = $3) AND sequence < $4
             ORDER BY sequence DESC FETCH FIRST ($5) ROWS WITH TIES",
            wanted.running,
            wanted.outcome.as_deref().map(SqlKey::from) as _,
            wanted.agent.as_deref().map(SqlKey::from) as _,
            to_bigint(wanted.before.unwrap_or(u64::MAX)),
            row_limit(wanted.limit)
        );
        Ok(processes.fetch_all(&mut **self.connection().await).await?)
    }

    /// By the primary key.
    pub async fn find_process(&self, process: Uuid) -> Result<Option<ProcessRow>, ReadError> {
        Ok(processes!("process_id = $1", process).fetch_optional(&mut **self.connection().await).await?)
    }

    /// Returns several processes, by the primary key.
    pub(super) async fn processes_of(&self, ids: &[Uuid]) -> Result<Vec<ProcessRow>, ReadError> {
        Ok(processes!("process_id = ANY($1)", ids).fetch_all(&mut **self.connection().await).await?)
    }
}
