//! Whether a user's message is known.

use sqlx::FromRow;
use uuid::Uuid;

use crate::{ReadError, ReadModel, stored::Key};

/// Where a user's message stands in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct SentMessage {
    pub event_id: Uuid,
    #[sqlx(try_from = "i64")]
    pub sequence: u64,
}

/// By index `messages_sent`.
const MESSAGE: &str =
    "SELECT event_id, sequence FROM messages WHERE role = 'user' AND user_id = $1 AND message_id = $2";

impl ReadModel {
    /// The event of a message of this user, if the projection has seen it.
    pub async fn message(&self, user: &str, message_id: &str) -> Result<Option<SentMessage>, ReadError> {
        let message = sqlx::query_as(MESSAGE).bind(Key::from(user)).bind(Key::from(message_id));
        Ok(message.fetch_optional(&self.pool).await?)
    }
}
