//! What users and an agent said to each other.

use serde::Serialize;
use serde_json::Value;
use sqlx::query_as;
use uuid::Uuid;

use super::{BEGINNING, place, rows};
use crate::{
    MAX_ROWS, Place, ReadError, Snapshot,
    stored::{Key, Time, U32, U64},
};

/// Which messages; all conditions must hold.
#[derive(Clone, Debug)]
pub struct ConversationQuery {
    pub agent: String,
    /// With this user only.
    pub user: Option<String>,
    /// Those behind this place; `(n, u32::MAX)` is behind the whole message `n`.
    pub after: Option<Place>,
    /// The newest so many instead of the oldest.
    pub latest: Option<u32>,
    /// At most so many, and never more than [`MAX_ROWS`].
    pub limit: u32,
}

/// Something said.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConversationMessage {
    pub sequence: u64,
    pub position: u32,
    pub event_id: Uuid,
    pub ts: Time,
    pub correlation_id: Uuid,
    /// `user`; `agent`; or `failure`, when no agent could receive a message.
    pub role: String,
    pub agent: Option<String>,
    pub user: Option<String>,
    pub thread_id: Option<String>,
    /// The message sent, or the one that is answered.
    pub message_id: Option<String>,
    pub text: String,
    /// Images and audio that belong to it: `[{media_type, digest, size, name}]`.
    pub parts: Value,
    /// Whether it ends the turn.
    #[serde(rename = "final")]
    pub last: bool,
}

impl ConversationQuery {
    /// The whole conversation of an agent, from its beginning.
    pub fn of(agent: &str) -> Self {
        Self { agent: agent.to_owned(), user: None, after: None, latest: None, limit: MAX_ROWS }
    }
}

/// By index `messages_of_agent`.
macro_rules! conversation {
    ($order:literal, $($parameters:tt)*) => {
        query_as!(
            ConversationMessage,
            r#"
            SELECT sequence AS "sequence!: U64", position AS "position: U32", event_id, ts AS "ts!: Time",
                   correlation_id AS "correlation_id!", role, agent, user_id AS user, thread_id, message_id, text,
                   parts, final AS last
            FROM messages
            WHERE sequence IS NOT NULL AND agent = $1 AND ($2::text IS NULL OR user_id = $2)
                AND (sequence, position) > ($3, $4)
            ORDER BY "# + $order,
            $($parameters)*
        )
    };
}

impl Snapshot {
    /// In the order of the log.
    pub async fn conversation(&self, query: &ConversationQuery) -> Result<Vec<ConversationMessage>, ReadError> {
        let (agent, user) = (Key::from(query.agent.as_str()), query.user.as_deref().map(Key::from));
        let (sequence, position) = place(query.after.unwrap_or(BEGINNING));
        let connection = &mut **self.connection().await;
        let Some(latest) = query.latest else {
            let rows = rows(query.limit);
            let first = conversation!("sequence, position LIMIT $5", agent as _, user as _, sequence, position, rows);
            return Ok(first.fetch_all(connection).await?);
        };
        let last = conversation!(
            "sequence DESC, position DESC LIMIT $5",
            agent as _,
            user as _,
            sequence,
            position,
            rows(latest.min(query.limit))
        );
        let mut messages = last.fetch_all(connection).await?;
        messages.reverse();
        Ok(messages)
    }
}
