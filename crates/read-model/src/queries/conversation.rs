//! The messages between users and an agent.

use kairo_proto::v1::{MessageRow, PartRow};
use sqlx::{query_as, types::Json};
use uuid::Uuid;

use super::{BEGINNING, row_limit, to_sql_position};
use crate::{
    MAX_ROWS, ReadError, ReadSnapshot, RowPosition,
    output_columns::{At, Id},
    sql_values::{SqlKey, U32, U64},
};

/// The messages to return; all conditions must hold.
#[derive(Clone, Debug)]
pub struct ConversationQuery {
    pub agent: String,
    /// With this user only.
    pub user: Option<String>,
    /// Those behind this place; `(n, u32::MAX)` is behind the whole message `n`.
    pub after: Option<RowPosition>,
    /// The newest so many instead of the oldest.
    pub latest: Option<u32>,
    /// At most so many, and never more than [`MAX_ROWS`].
    pub limit: u32,
}

#[derive(sqlx::Type)]
#[sqlx(transparent)]
pub(super) struct Parts(Json<Vec<PartRow>>);

impl From<Parts> for Vec<PartRow> {
    fn from(parts: Parts) -> Self {
        parts.0.0
    }
}

impl ConversationQuery {
    /// The whole conversation of an agent, from its beginning.
    pub fn of_agent(agent: &str) -> Self {
        Self { agent: agent.to_owned(), user: None, after: None, latest: None, limit: MAX_ROWS }
    }
}

macro_rules! messages {
    ($first:literal $(+ $more:literal)*, $($parameters:tt)*) => {
        query_as!(
            MessageRow,
            r#"
            SELECT sequence AS "sequence!: U64", position AS "position: U32", event_id AS "event_id: Id", ts AS "ts!: At",
                   correlation_id AS "correlation_id!: Id", role, agent, user_id AS user, thread_id, message_id, text,
                   parts AS "parts: Parts", final, nullif(ending, '') AS ending, nullif(failure, '') AS failure
            FROM messages WHERE "# + $first $(+ $more)*,
            $($parameters)*
        )
    };
}

/// By index `messages_of_agent`.
macro_rules! conversation {
    ($order:literal, $($parameters:tt)*) => {
        messages!(
            "sequence IS NOT NULL AND agent = $1 AND ($2::text IS NULL OR user_id = $2)
                AND (sequence, position) > ($3, $4)
             ORDER BY " + $order,
            $($parameters)*
        )
    };
}

impl ReadSnapshot {
    /// In the order of the log.
    pub async fn conversation_messages(&self, query: &ConversationQuery) -> Result<Vec<MessageRow>, ReadError> {
        let agent = SqlKey::from(query.agent.as_str());
        let user = query.user.as_deref().map(SqlKey::from);
        let (sequence, position) = to_sql_position(query.after.unwrap_or(BEGINNING));
        let connection = &mut **self.connection().await;
        let Some(latest) = query.latest else {
            let rows = row_limit(query.limit);
            let first = conversation!("sequence, position LIMIT $5", agent as _, user as _, sequence, position, rows);
            return Ok(first.fetch_all(connection).await?);
        };
        let last = conversation!(
            "sequence DESC, position DESC LIMIT $5",
            agent as _,
            user as _,
            sequence,
            position,
            row_limit(latest.min(query.limit))
        );
        let mut messages = last.fetch_all(connection).await?;
        messages.reverse();
        Ok(messages)
    }

    /// By the primary key.
    pub(super) async fn messages_of(&self, ids: &[Uuid]) -> Result<Vec<MessageRow>, ReadError> {
        let messages = messages!("sequence IS NOT NULL AND event_id = ANY($1)", ids);
        Ok(messages.fetch_all(&mut **self.connection().await).await?)
    }
}
