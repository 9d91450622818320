//! Changes of teams, and what their owners are told.

use kairo_read_model::sql_values::{SqlKey, SqlText, Time};

/// The state of the team that an agent leads or works in.
#[derive(Clone, Debug, PartialEq)]
pub struct TeamState {
    pub sequence: i64,
    pub at: Time,
    pub status: SqlKey,
    pub reason: SqlText,
    pub over_budget: bool,
}

/// The report of a session of work to its owner, sent or withheld.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionBriefing {
    pub sequence: i64,
    pub agent: SqlKey,
    pub user: SqlKey,
    pub thread_id: Option<SqlKey>,
    pub work_thread_id: Option<SqlKey>,
    pub told: bool,
    pub reason: SqlText,
    pub summary: SqlText,
    pub at: Time,
}
