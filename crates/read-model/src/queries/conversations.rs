//! The conversations between users and agents.

use kairo_proto::v1::ConversationRow;
use sqlx::query_as;

use super::{row_limit, to_bigint};
use crate::{
    ReadError, ReadSnapshot,
    output_columns::At,
    sql_values::{SqlKey, U64},
};

/// The conversations to return; all conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct ConversationsQuery {
    pub agent: Option<String>,
    pub user: Option<String>,
    /// Those whose last message stands before this one of the log.
    pub before: Option<u64>,
    /// At most so many, and never more than [`MAX_ROWS`](crate::MAX_ROWS); more only if several were said at once.
    pub limit: u32,
}

impl ReadSnapshot {
    /// The one in which something was said last first. By index `messages_of_conversation`, from one conversation to the
    /// next: it costs as much as there are, however much was said in them.
    pub async fn list_conversations(&self, wanted: &ConversationsQuery) -> Result<Vec<ConversationRow>, ReadError> {
        let conversations = query_as!(
            ConversationRow,
            r#"
            WITH RECURSIVE conversations AS (
                (SELECT agent, user_id FROM messages
                 WHERE sequence IS NOT NULL AND agent IS NOT NULL AND user_id IS NOT NULL
                     AND ($1::text IS NULL OR agent = $1) AND ($2::text IS NULL OR user_id = $2)
                 ORDER BY agent, user_id LIMIT 1)
                UNION ALL
                SELECT following.agent, following.user_id FROM conversations, LATERAL (
                    SELECT agent, user_id FROM messages
                    WHERE sequence IS NOT NULL AND agent IS NOT NULL AND user_id IS NOT NULL
                        AND (agent, user_id) > (conversations.agent, conversations.user_id)
                        AND ($1::text IS NULL OR agent = $1) AND ($2::text IS NULL OR user_id = $2)
                    ORDER BY agent, user_id LIMIT 1
                ) AS following
            )
            SELECT agent AS "agent!", user_id AS "user!", last_sequence AS "last_sequence!: U64",
                   last_at AS "last_at!: At", last_role, last_text AS "last_text!"
            FROM conversations, LATERAL (
                SELECT sequence AS last_sequence, ts AS last_at, role AS last_role, left(text, 200) AS last_text
                FROM messages
                WHERE sequence IS NOT NULL AND agent = conversations.agent AND user_id = conversations.user_id
                ORDER BY sequence DESC, position DESC LIMIT 1
            ) AS last
            WHERE last_sequence < $3
            ORDER BY last_sequence DESC FETCH FIRST ($4) ROWS WITH TIES"#,
            wanted.agent.as_deref().map(SqlKey::from) as _,
            wanted.user.as_deref().map(SqlKey::from) as _,
            to_bigint(wanted.before.unwrap_or(u64::MAX)),
            row_limit(wanted.limit),
        );
        Ok(conversations.fetch_all(&mut **self.connection().await).await?)
    }
}
