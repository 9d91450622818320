//! Changes of teams, and what their owners are told.

use kairo_read_model::stored::{Key, Text, Time};

/// The state of the team that an agent leads or works in.
#[derive(Clone, Debug, PartialEq)]
pub struct TeamState {
    pub sequence: i64,
    pub at: Time,
    pub status: Key,
    pub reason: Text,
    pub over_budget: bool,
}

/// The report of a session of work to its owner, sent or withheld.
#[derive(Clone, Debug, PartialEq)]
pub struct Briefing {
    pub sequence: i64,
    pub agent: Key,
    pub user: Key,
    pub thread_id: Option<Key>,
    pub work_thread_id: Option<Key>,
    pub told: bool,
    pub reason: Text,
    pub summary: Text,
    pub at: Time,
}
