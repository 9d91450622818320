//! Changes of what waits for a human's answer.

use kairo_read_model::stored::{Json, Key, Time};
use uuid::Uuid;

/// A tool is to be called only if a human agrees.
#[derive(Clone, Debug, PartialEq)]
pub struct Approval {
    pub sequence: i64,
    pub position: i32,
    pub agent: Key,
    pub user: Key,
    pub thread_id: Option<Key>,
    pub correlation_id: Uuid,
    pub tool: Key,
    pub arguments: Json,
    pub chain_id: Option<Uuid>,
    pub step: i32,
    pub requested_at: Time,
    pub outside: Json,
}

/// A step or, without one, a chain ended: nobody needs to agree to what it asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Withdrawal {
    pub sequence: i64,
    pub chain_id: Uuid,
    pub step: Option<i32>,
}

/// A thread was suggested to a user.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    pub sequence: i64,
    pub position: i32,
    pub agent: Key,
    pub user: Key,
    pub correlation_id: Uuid,
    pub thread_id: Option<Key>,
    pub definition: Json,
    pub offered_at: Time,
}

/// A user's choice.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub sequence: i64,
    pub offer_id: Uuid,
    pub agent: Key,
    pub user: Key,
    pub option: Key,
    pub at: Time,
}

/// The message of this turn was put into a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Settled {
    pub sequence: i64,
    pub at: Time,
}
