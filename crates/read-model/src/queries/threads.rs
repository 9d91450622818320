//! Threads, and what they are about.

use kairo_proto::{v1::ThreadRow, words::ThreadStatus};
use sqlx::query_as;

use super::{row_limit, to_bigint};
use crate::{
    MAX_ROWS, ReadError, ReadSnapshot,
    output_columns::At,
    sql_values::{SqlKey, U64},
};

/// The state of the threads to return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// In use: neither put away nor over.
    Open,
    Only(ThreadStatus),
}

impl ThreadState {
    /// The words that `status` may be.
    fn status_words(&self) -> Vec<String> {
        match self {
            Self::Open => vec![ThreadStatus::Active.text(), ThreadStatus::Compacted.text()],
            Self::Only(status) => vec![status.text()],
        }
    }
}

/// The threads to return; all conditions must hold.
#[derive(Clone, Debug)]
pub struct ThreadsQuery {
    pub agent: Option<String>,
    pub user: Option<String>,
    pub status: Option<ThreadState>,
    /// Those whose last event stands before this message of the log.
    pub before: Option<u64>,
    /// At most so many, and never more than [`MAX_ROWS`]; more only if several had their last event at once.
    pub limit: u32,
}

impl Default for ThreadsQuery {
    fn default() -> Self {
        Self { agent: None, user: None, status: None, before: None, limit: MAX_ROWS }
    }
}

/// One without a title of its own is shown by the beginning of its first message (index `messages_of_thread`).
macro_rules! threads {
    ($conditions:literal, $($parameters:tt)*) => {
        query_as!(
            ThreadRow,
            r#"
            SELECT agent, thread_id, user_id AS user, kind, status,
                   CASE WHEN title <> '' THEN title ELSE coalesce((
                       SELECT left(btrim(regexp_replace(left(text, 500), '\s+', ' ', 'g')), 120) FROM messages
                       WHERE messages.agent = threads.agent AND messages.thread_id = threads.thread_id
                           AND sequence IS NOT NULL AND role <> 'failure' AND text ~ '\S'
                       ORDER BY sequence, position LIMIT 1
                   ), '') END AS "title!",
                   summary, created_at AS "created_at: At", updated_at AS "updated_at: At",
                   last_sequence AS "last_sequence: U64", completed_at AS "completed_at!: At"
            FROM threads WHERE "# + $conditions,
            $($parameters)*
        )
    };
}

impl ReadSnapshot {
    /// The one where something happened last first. By index `threads_by_age`, `threads_of_user` or
    /// `threads_by_last_event`, whose order is the order asked for.
    pub async fn list_threads(&self, query: &ThreadsQuery) -> Result<Vec<ThreadRow>, ReadError> {
        let threads = threads!(
            "($1::text IS NULL OR agent = $1) AND ($2::text IS NULL OR user_id = $2)
                AND ($3::text[] IS NULL OR status = ANY($3)) AND last_sequence < $4
             ORDER BY last_sequence DESC FETCH FIRST ($5) ROWS WITH TIES",
            query.agent.as_deref().map(SqlKey::from) as _,
            query.user.as_deref().map(SqlKey::from) as _,
            query.status.as_ref().map(ThreadState::status_words) as _,
            to_bigint(query.before.unwrap_or(u64::MAX)),
            row_limit(query.limit)
        );
        Ok(threads.fetch_all(&mut **self.connection().await).await?)
    }

    /// By the primary key: agents, and a thread of each.
    pub(super) async fn threads_of(&self, agents: &[SqlKey], threads: &[SqlKey]) -> Result<Vec<ThreadRow>, ReadError> {
        let threads =
            threads!("(agent, thread_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))", agents as _, threads as _);
        Ok(threads.fetch_all(&mut **self.connection().await).await?)
    }

    /// The threads of this id, of one agent or of all: an id is an agent's own. By the primary key where the agent is
    /// given, else by index `threads_by_id`.
    pub async fn find_threads(&self, thread: &str, agent: Option<&str>) -> Result<Vec<ThreadRow>, ReadError> {
        let threads = threads!(
            "thread_id = $1 AND ($2::text IS NULL OR agent = $2) ORDER BY agent LIMIT $3",
            SqlKey::from(thread) as _,
            agent.map(SqlKey::from) as _,
            i64::from(MAX_ROWS)
        );
        Ok(threads.fetch_all(&mut **self.connection().await).await?)
    }
}
