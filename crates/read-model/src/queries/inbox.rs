//! The approvals and offers that wait for a user's answer.

use kairo_proto::v1::{ApprovalRow, OfferRow};
use sqlx::{query, query_as, types::Json};

use crate::{
    MAX_ROWS, ReadError, ReadSnapshot,
    output_columns::{At, Id, Object, Texts},
    sql_values::{SqlKey, U32, U64},
};

/// An offer as it is shown, of a row of its table with the message that it is about.
macro_rules! shown {
    ($row:expr) => {
        OfferRow {
            offer_id: $row.offer_id.to_string(),
            sequence: $row.sequence.into(),
            agent: $row.agent,
            user: $row.user_id,
            correlation_id: $row.correlation_id.to_string(),
            message: $row.message,
            thread_id: $row.thread_id,
            offered_at: $row.offered_at.into(),
            ..$row.definition.0
        }
    };
}
pub(super) use shown;

/// All that waits for one user, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct UserInbox {
    /// Threads that an agent suggested.
    pub offers: Vec<OfferRow>,
    /// Tools that are called only if the user agrees.
    pub approvals: Vec<ApprovalRow>,
}

impl ReadSnapshot {
    /// The oldest [`MAX_ROWS`] of each kind.
    pub async fn user_inbox(&self, user: &str) -> Result<UserInbox, ReadError> {
        let user = SqlKey::from(user);
        Ok(UserInbox { offers: self.open_offers(&user).await?, approvals: self.waiting_approvals(&user).await? })
    }

    /// By index `offers_open`; the message by the primary key of `messages`.
    async fn open_offers(&self, user: &SqlKey) -> Result<Vec<OfferRow>, ReadError> {
        let offers = query!(
            r#"
            SELECT offer_id, offers.sequence AS "sequence: U64", offers.agent, offers.user_id, offers.correlation_id,
                   messages.text AS "message?", offers.thread_id, definition AS "definition: Json<OfferRow>",
                   offered_at AS "offered_at: At"
            FROM offers
            LEFT JOIN messages ON messages.event_id = offers.correlation_id AND messages.role = 'user'
                AND messages.sequence IS NOT NULL
            WHERE choice IS NULL AND settled_at IS NULL AND offers.user_id = $1
            ORDER BY offers.sequence, offers.position LIMIT $2"#,
            user as _,
            i64::from(MAX_ROWS),
        )
        .map(|row| shown!(row));
        Ok(offers.fetch_all(&mut **self.connection().await).await?)
    }

    /// By index `approvals_waiting`.
    async fn waiting_approvals(&self, user: &SqlKey) -> Result<Vec<ApprovalRow>, ReadError> {
        let approvals = query_as!(
            ApprovalRow,
            r#"
            SELECT action_id AS "action_id: Id", sequence AS "sequence: U64", agent, user_id AS user, thread_id,
                   correlation_id AS "correlation_id: Id", tool, arguments AS "arguments: Object",
                   chain_id AS "chain_id!: Id", step AS "step: U32", requested_at AS "requested_at: At",
                   outside AS "outside: Texts", expires_at AS "expires_at!: At"
            FROM approvals WHERE status = 'waiting' AND user_id = $1
            ORDER BY sequence, position LIMIT $2"#,
            user as _,
            i64::from(MAX_ROWS),
        );
        Ok(approvals.fetch_all(&mut **self.connection().await).await?)
    }
}
