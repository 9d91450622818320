//! Calls that a human was asked about, decided or not.

use kairo_proto::{v1::ConsentRow, words::ConsentStatus};
use sqlx::query_as;
use uuid::Uuid;

use super::{row_limit, to_bigint};
use crate::{
    ReadError, ReadSnapshot,
    output_columns::{At, Id, Object, Texts},
    sql_values::{SqlKey, U32, U64},
};

/// The approvals to return; all conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct ApprovalsQuery {
    pub agent: Option<String>,
    pub user: Option<String>,
    pub status: Option<ConsentStatus>,
    /// Those asked for before this message of the log.
    pub before: Option<u64>,
    /// At most so many, and never more than [`MAX_ROWS`](crate::MAX_ROWS); more only if several were asked for at once.
    pub limit: u32,
}

macro_rules! approvals {
    ($conditions:literal, $($parameters:tt)*) => {
        query_as!(
            ConsentRow,
            r#"
            SELECT action_id AS "action_id: Id", sequence AS "sequence: U64", agent, user_id AS user, thread_id, correlation_id AS "correlation_id: Id",
                   tool, arguments AS "arguments: Object", chain_id AS "chain_id!: Id", step AS "step: U32", requested_at AS "requested_at: At", status, decided_by,
                   note, entered_by, decided_at AS "decided_at!: At", outside AS "outside: Texts", changed_arguments AS "changed_arguments!: Object", expires_at AS "expires_at!: At"
            FROM approvals WHERE "# + $conditions,
            $($parameters)*
        )
    };
}

impl ReadSnapshot {
    /// The newest first. By index `approvals_by_age`, `approvals_of_agent` or `approvals_of_user`, whose order is the
    /// order asked for.
    pub async fn list_approvals(&self, wanted: &ApprovalsQuery) -> Result<Vec<ConsentRow>, ReadError> {
        let approvals = approvals!(
            "($1::text IS NULL OR agent = $1) AND ($2::text IS NULL OR user_id = $2)
                AND ($3::text IS NULL OR status = $3) AND sequence < $4
             ORDER BY sequence DESC FETCH FIRST ($5) ROWS WITH TIES",
            wanted.agent.as_deref().map(SqlKey::from) as _,
            wanted.user.as_deref().map(SqlKey::from) as _,
            wanted.status.as_ref().map(ConsentStatus::as_str),
            to_bigint(wanted.before.unwrap_or(u64::MAX)),
            row_limit(wanted.limit)
        );
        Ok(approvals.fetch_all(&mut **self.connection().await).await?)
    }

    /// By the primary key.
    pub async fn find_approval(&self, action: Uuid) -> Result<Option<ConsentRow>, ReadError> {
        Ok(approvals!("action_id = $1", action).fetch_optional(&mut **self.connection().await).await?)
    }

    /// Returns several consents, by the primary key.
    pub(super) async fn approvals_of(&self, ids: &[Uuid]) -> Result<Vec<ConsentRow>, ReadError> {
        Ok(approvals!("action_id = ANY($1)", ids).fetch_all(&mut **self.connection().await).await?)
    }
}
