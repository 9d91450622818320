//! What waits for a user's answer.

use serde::Serialize;
use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{
    MAX_ROWS, ReadError, Snapshot,
    stored::{Key, Time},
};

/// All that waits for one user, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inbox {
    pub offers: Vec<OpenOffer>,
    pub approvals: Vec<WaitingApproval>,
}

/// A thread that an agent suggested. Answered with a choice: `accept` or `decline`.
#[derive(Clone, Debug, PartialEq, Serialize, FromRow)]
pub struct OpenOffer {
    pub offer_id: Uuid,
    #[sqlx(try_from = "i64")]
    pub sequence: u64,
    pub agent: String,
    #[sqlx(rename = "user_id")]
    pub user: String,
    pub correlation_id: Uuid,
    pub message_id: Option<String>,
    /// What the message says, where it is known.
    pub message: Option<String>,
    /// `suggest_switch` or `suggest_new`.
    pub action: String,
    /// Where the message goes if it is accepted, and if it is declined.
    pub thread_id: Option<String>,
    pub current_thread_id: Option<String>,
    pub reason: String,
    /// What the thread is about.
    pub summary: String,
    pub offered_at: Time,
}

/// A tool that is called only if the user agrees. Answered with a verdict: `approved` or `rejected`.
#[derive(Clone, Debug, PartialEq, Serialize, FromRow)]
pub struct WaitingApproval {
    pub action_id: Uuid,
    #[sqlx(try_from = "i64")]
    pub sequence: u64,
    pub agent: String,
    #[sqlx(rename = "user_id")]
    pub user: String,
    pub thread_id: Option<String>,
    pub correlation_id: Uuid,
    pub tool: String,
    pub arguments: Value,
    pub chain_id: Option<Uuid>,
    #[sqlx(try_from = "i32")]
    pub step: u32,
    pub requested_at: Time,
}

/// By index `offers_open`; the message by the primary key of `messages`.
const OFFERS: &str = "SELECT offer_id, offers.sequence, offers.agent, offers.user_id, offers.correlation_id, \
                      offers.message_id, messages.text AS message, action, offers.thread_id, current_thread_id, reason, \
                      summary, offered_at FROM offers \
                      LEFT JOIN messages ON messages.event_id = offers.correlation_id AND messages.role = 'user' \
                      WHERE choice IS NULL AND settled_at IS NULL AND offers.user_id = $1 \
                      ORDER BY offers.sequence, offers.position LIMIT $2";
/// By index `approvals_waiting`.
const APPROVALS: &str = "SELECT action_id, sequence, agent, user_id, thread_id, correlation_id, tool, arguments, \
                         chain_id, step, requested_at FROM approvals WHERE status = 'waiting' AND user_id = $1 \
                         ORDER BY sequence, position LIMIT $2";

impl Snapshot {
    /// The oldest [`MAX_ROWS`] of each kind.
    pub async fn inbox(&self, user: &str) -> Result<Inbox, ReadError> {
        let (user, most) = (Key::from(user), i64::from(MAX_ROWS));
        let offers = sqlx::query_as(OFFERS).bind(&user).bind(most).fetch_all(&mut **self.connection().await).await?;
        let approvals =
            sqlx::query_as(APPROVALS).bind(&user).bind(most).fetch_all(&mut **self.connection().await).await?;
        Ok(Inbox { offers, approvals })
    }
}
