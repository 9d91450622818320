//! The briefings that agents gave their owners unasked, or withheld.

use kairo_proto::v1::BriefingRow;
use sqlx::query_as;
use uuid::Uuid;

use super::{row_limit, to_bigint};
use crate::{
    ReadError, ReadSnapshot,
    output_columns::{At, Id},
    sql_values::{SqlKey, U64},
};

/// The briefings to return; all conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct BriefingsQuery {
    pub agent: Option<String>,
    pub user: Option<String>,
    /// Those decided on before this message of the log.
    pub before: Option<u64>,
    /// At most so many, and never more than [`MAX_ROWS`](crate::MAX_ROWS); more only if several were decided on at once.
    pub limit: u32,
}

macro_rules! briefings {
    ($conditions:literal, $($parameters:tt)*) => {
        query_as!(
            BriefingRow,
            r#"
            SELECT event_id AS "event_id: Id", sequence AS "sequence: U64", agent, user_id AS user, thread_id, work_thread_id,
                   told, reason, summary, briefed_at AS "briefed_at: At"
            FROM briefings WHERE "# + $conditions,
            $($parameters)*
        )
    };
}

impl ReadSnapshot {
    /// The newest first. By index `briefings_by_age`, `briefings_of_agent` or `briefings_of_user`, whose order is the order
    /// asked for.
    pub async fn list_briefings(&self, wanted: &BriefingsQuery) -> Result<Vec<BriefingRow>, ReadError> {
        let briefings = briefings!(
            "($1::text IS NULL OR agent = $1) AND ($2::text IS NULL OR user_id = $2) AND sequence < $3
             ORDER BY sequence DESC FETCH FIRST ($4) ROWS WITH TIES",
            wanted.agent.as_deref().map(SqlKey::from) as _,
            wanted.user.as_deref().map(SqlKey::from) as _,
            to_bigint(wanted.before.unwrap_or(u64::MAX)),
            row_limit(wanted.limit)
        );
        Ok(briefings.fetch_all(&mut **self.connection().await).await?)
    }

    /// By the primary key.
    pub(super) async fn briefings_of(&self, ids: &[Uuid]) -> Result<Vec<BriefingRow>, ReadError> {
        Ok(briefings!("event_id = ANY($1)", ids).fetch_all(&mut **self.connection().await).await?)
    }

    /// Returns the briefings that these agents, or any, gave a user, the newest first. By index `briefings_told`.
    pub async fn briefings_for_user(
        &self,
        user: &str,
        agents: Option<&[String]>,
        limit: u32,
    ) -> Result<Vec<BriefingRow>, ReadError> {
        let agents = agents.map(|agents| agents.iter().map(|agent| SqlKey::from(agent.as_str())).collect::<Vec<_>>());
        let briefings = briefings!(
            "told AND user_id = $1 AND ($2::text[] IS NULL OR agent = ANY($2)) ORDER BY sequence DESC LIMIT $3",
            SqlKey::from(user) as _,
            agents as _,
            row_limit(limit)
        );
        Ok(briefings.fetch_all(&mut **self.connection().await).await?)
    }
}
