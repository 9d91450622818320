//! Changes of what waits for a human's answer.

use kairo_read_model::sql_values::{SqlJson, SqlKey, Time};
use uuid::Uuid;

/// A tool is to be called only if a human agrees.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalRequest {
    pub sequence: i64,
    pub position: i32,
    pub agent: SqlKey,
    pub user: SqlKey,
    pub thread_id: Option<SqlKey>,
    pub correlation_id: Uuid,
    pub tool: SqlKey,
    pub arguments: SqlJson,
    pub chain_id: Option<Uuid>,
    pub step: i32,
    pub requested_at: Time,
    pub outside: SqlJson,
    pub expires_at: Option<Time>,
}

/// The time at which a request for consent expires. It has no effect if the request was answered before.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalExpiry {
    pub sequence: i64,
    pub action_id: Uuid,
}

/// A step or, without one, a chain ended: nobody needs to agree to what it asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalWithdrawal {
    pub sequence: i64,
    pub chain_id: Uuid,
    pub step: Option<i32>,
}

/// A thread was suggested to a user.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferCreation {
    pub sequence: i64,
    pub position: i32,
    pub agent: SqlKey,
    pub user: SqlKey,
    pub correlation_id: Uuid,
    pub thread_id: Option<SqlKey>,
    pub definition: SqlJson,
    pub offered_at: Time,
}

/// A user's choice.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferChoice {
    pub sequence: i64,
    pub offer_id: Uuid,
    pub agent: SqlKey,
    pub user: SqlKey,
    pub option: SqlKey,
    pub at: Time,
}

/// The message of this turn was put into a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferSettlement {
    pub sequence: i64,
    pub at: Time,
}
