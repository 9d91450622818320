//! The inner state of agents: as it is, and the history of a key.

use kairo_proto::v1::InnerStateRow;
use sqlx::{query, types::Json};
use uuid::Uuid;

use super::{row_limit, to_bigint};
use crate::{
    ReadError, ReadSnapshot,
    output_columns::At,
    sql_values::{SqlKey, U64},
};

/// The keys to return; all conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct InnerStateQuery {
    pub agent: String,
    /// Those of this user, and those for all.
    pub user: Option<String>,
    pub key: Option<String>,
    /// The prefix of the keys.
    pub prefix: Option<String>,
    /// Those written before this message of the log.
    pub before: Option<u64>,
    /// At most so many, and never more than [`MAX_ROWS`](crate::MAX_ROWS); more only if several were written at once.
    pub limit: u32,
}

macro_rules! changes {
    ($first:literal $(+ $more:literal)*, $($parameters:tt)*) => {
        query!(
            r#"SELECT agent, user_id, key, content, deleted, updated_at AS "updated_at: At", sequence AS "sequence: U64",
                      position, event_id, thread_id, definition AS "definition: Json<InnerStateRow>"
               FROM "# + $first $(+ $more)*,
            $($parameters)*
        )
        .map(|row| InnerStateRow {
            agent: row.agent,
            key: row.key,
            user: Some(row.user_id).filter(|user| !user.is_empty()),
            content: row.content,
            deleted: row.deleted,
            updated_at: row.updated_at.into(),
            sequence: row.sequence.into(),
            position: u32::try_from(row.position).unwrap_or_default(),
            event_id: row.event_id.to_string(),
            thread_id: row.thread_id,
            ..row.definition.0
        })
    };
}

macro_rules! entries {
    ($wanted:ident, $from:literal) => {
        changes!(
            $from
                + " AND agent = $1 AND ($2::text IS NULL OR user_id = $2 OR user_id = '')
                AND ($3::text IS NULL OR key = $3) AND ($4::text IS NULL OR starts_with(key, $4)) AND sequence < $5
             ORDER BY sequence DESC FETCH FIRST ($6) ROWS WITH TIES",
            SqlKey::from($wanted.agent.as_str()) as _,
            $wanted.user.as_deref().map(SqlKey::from) as _,
            $wanted.key.as_deref().map(SqlKey::from) as _,
            $wanted.prefix.as_deref().map(SqlKey::from) as _,
            to_bigint($wanted.before.unwrap_or(u64::MAX)),
            row_limit($wanted.limit)
        )
    };
}

impl ReadSnapshot {
    /// Returns the entries, the last written first. By index `inner_state_of_agent`, whose order is the order asked
    /// for.
    pub async fn inner_state(&self, wanted: &InnerStateQuery) -> Result<Vec<InnerStateRow>, ReadError> {
        let entries = entries!(wanted, "inner_state WHERE NOT deleted");
        Ok(entries.fetch_all(&mut **self.connection().await).await?)
    }

    /// All that was written under a key, and when it was deleted, the newest first. By index `inner_state_changes_of_key`,
    /// whose order is the order asked for.
    pub async fn inner_state_history(&self, wanted: &InnerStateQuery) -> Result<Vec<InnerStateRow>, ReadError> {
        let changes = entries!(wanted, "inner_state_changes WHERE true");
        Ok(changes.fetch_all(&mut **self.connection().await).await?)
    }

    /// Returns the entries written or deleted by these events, by the primary key.
    pub(super) async fn inner_state_of(&self, ids: &[Uuid]) -> Result<Vec<InnerStateRow>, ReadError> {
        let changes = changes!("inner_state_changes WHERE event_id = ANY($1)", ids);
        Ok(changes.fetch_all(&mut **self.connection().await).await?)
    }
}
