//! What users and an agent said to each other.

use serde::Serialize;
use sqlx::{FromRow, Postgres, QueryBuilder};
use uuid::Uuid;

use super::{behind, ordered};
use crate::{
    MAX_ROWS, Place, ReadError, Snapshot,
    stored::{Key, Time},
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
#[derive(Clone, Debug, PartialEq, Serialize, FromRow)]
pub struct ConversationMessage {
    #[sqlx(try_from = "i64")]
    pub sequence: u64,
    #[sqlx(try_from = "i32")]
    pub position: u32,
    pub event_id: Uuid,
    pub ts: Time,
    pub correlation_id: Uuid,
    /// `user`; `agent`; or `failure`, when no agent could receive a message.
    pub role: String,
    pub agent: Option<String>,
    #[sqlx(rename = "user_id")]
    pub user: Option<String>,
    pub thread_id: Option<String>,
    /// The message sent, or the one that is answered.
    pub message_id: Option<String>,
    pub text: String,
    /// Whether it ends the turn.
    #[sqlx(rename = "final")]
    #[serde(rename = "final")]
    pub last: bool,
}

impl ConversationQuery {
    /// The whole conversation of an agent, from its beginning.
    pub fn of(agent: &str) -> Self {
        Self { agent: agent.to_owned(), user: None, after: None, latest: None, limit: MAX_ROWS }
    }

    /// By index `messages_of_agent`.
    fn sql(&self) -> QueryBuilder<Postgres> {
        let mut sql = QueryBuilder::new(
            "SELECT sequence, position, event_id, ts, correlation_id, role, agent, user_id, thread_id, message_id, \
             text, final FROM messages WHERE agent = ",
        );
        sql.push_bind(Key::from(self.agent.as_str()));
        if let Some(user) = &self.user {
            sql.push(" AND user_id = ").push_bind(Key::from(user.as_str()));
        }
        if let Some(after) = self.after {
            behind(&mut sql, after);
        }
        let rows = self.latest.map_or(self.limit, |latest| latest.min(self.limit));
        ordered(&mut sql, self.latest.is_some(), rows);
        sql
    }
}

impl Snapshot {
    /// In the order of the log.
    pub async fn conversation(&self, query: &ConversationQuery) -> Result<Vec<ConversationMessage>, ReadError> {
        let mut messages: Vec<ConversationMessage> =
            query.sql().build_query_as().fetch_all(&mut **self.connection().await).await?;
        if query.latest.is_some() {
            messages.reverse();
        }
        Ok(messages)
    }
}
