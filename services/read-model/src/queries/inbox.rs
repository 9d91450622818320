//! What waits for a user's answer.

use serde::Serialize;
use serde_json::Value;
use sqlx::query_as;
use uuid::Uuid;

use crate::{
    MAX_ROWS, ReadError, Snapshot,
    stored::{Key, Time, U32, U64},
};

/// All that waits for one user, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inbox {
    pub offers: Vec<OpenOffer>,
    pub approvals: Vec<WaitingApproval>,
}

/// A thread that an agent suggested. Answered with a choice: `accept` or `decline`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OpenOffer {
    pub offer_id: Uuid,
    pub sequence: u64,
    pub agent: String,
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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitingApproval {
    pub action_id: Uuid,
    pub sequence: u64,
    pub agent: String,
    pub user: String,
    pub thread_id: Option<String>,
    pub correlation_id: Uuid,
    pub tool: String,
    pub arguments: Value,
    pub chain_id: Option<Uuid>,
    pub step: u32,
    pub requested_at: Time,
}

impl Snapshot {
    /// The oldest [`MAX_ROWS`] of each kind.
    pub async fn inbox(&self, user: &str) -> Result<Inbox, ReadError> {
        let user = Key::from(user);
        Ok(Inbox { offers: self.open_offers(&user).await?, approvals: self.waiting_approvals(&user).await? })
    }

    /// By index `offers_open`; the message by the primary key of `messages`.
    async fn open_offers(&self, user: &Key) -> Result<Vec<OpenOffer>, ReadError> {
        let offers = query_as!(
            OpenOffer,
            r#"
            SELECT offer_id, offers.sequence AS "sequence: U64", offers.agent, offers.user_id AS user,
                   offers.correlation_id, offers.message_id, messages.text AS "message?", action, offers.thread_id,
                   current_thread_id, reason, summary, offered_at AS "offered_at: Time"
            FROM offers
            LEFT JOIN messages ON messages.event_id = offers.correlation_id AND messages.role = 'user'
                AND messages.sequence IS NOT NULL
            WHERE choice IS NULL AND settled_at IS NULL AND offers.user_id = $1
            ORDER BY offers.sequence, offers.position LIMIT $2"#,
            user as _,
            i64::from(MAX_ROWS),
        );
        Ok(offers.fetch_all(&mut **self.connection().await).await?)
    }

    /// By index `approvals_waiting`.
    async fn waiting_approvals(&self, user: &Key) -> Result<Vec<WaitingApproval>, ReadError> {
        let approvals = query_as!(
            WaitingApproval,
            r#"
            SELECT action_id, sequence AS "sequence: U64", agent, user_id AS user, thread_id, correlation_id, tool,
                   arguments, chain_id, step AS "step: U32", requested_at AS "requested_at: Time"
            FROM approvals WHERE status = 'waiting' AND user_id = $1
            ORDER BY sequence, position LIMIT $2"#,
            user as _,
            i64::from(MAX_ROWS),
        );
        Ok(approvals.fetch_all(&mut **self.connection().await).await?)
    }
}
