//! Looks up a user's message in the log.

use sqlx::query_as;
use uuid::Uuid;

use crate::{
    ReadError, ReadModel, ReadSnapshot,
    sql_values::{SqlKey, U64},
};

/// The position of a user's message in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentMessage {
    pub event_id: Uuid,
    pub sequence: u64,
}

impl ReadModel {
    /// The event of a message of this user, if the projection has seen it.
    pub async fn find_message(&self, user: &str, message_id: &str) -> Result<Option<SentMessage>, ReadError> {
        self.snapshot().await?.find_message(user, message_id).await
    }
}

impl ReadSnapshot {
    /// The event of a message of this user, if the projection has seen it. By index `messages_sent`.
    pub async fn find_message(&self, user: &str, message_id: &str) -> Result<Option<SentMessage>, ReadError> {
        let message = query_as!(
            SentMessage,
            r#"
            SELECT event_id, sequence AS "sequence!: U64" FROM messages
            WHERE role = 'user' AND user_id = $1 AND message_id = $2 AND sequence IS NOT NULL
            ORDER BY sequence LIMIT 1"#,
            SqlKey::from(user) as _,
            SqlKey::from(message_id) as _,
        );
        Ok(message.fetch_optional(&mut **self.connection().await).await?)
    }
}
