//! Threads, and what they are about.

use kairo_proto::{v1::ThreadRow, words::ThreadStatus};
use sqlx::query_as;

use super::{number, rows};
use crate::{
    MAX_ROWS, ReadError, Snapshot,
    shown::At,
    stored::{Key, U64},
};

/// Which threads; all conditions must hold.
#[derive(Clone, Debug)]
pub struct ThreadsQuery {
    pub agent: Option<String>,
    pub user: Option<String>,
    pub status: Option<ThreadStatus>,
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

macro_rules! threads {
    ($conditions:literal, $($parameters:tt)*) => {
        query_as!(
            ThreadRow,
            r#"
            SELECT agent, thread_id, user_id AS user, kind, status, title, summary, created_at AS "created_at: At",
                   updated_at AS "updated_at: At", last_sequence AS "last_sequence: U64"
            FROM threads WHERE "# + $conditions,
            $($parameters)*
        )
    };
}

impl Snapshot {
    /// The one where something happened last first. By index `threads_by_age`, `threads_of_user` or
    /// `threads_by_last_event`, whose order is the order asked for.
    pub async fn threads(&self, query: &ThreadsQuery) -> Result<Vec<ThreadRow>, ReadError> {
        let threads = threads!(
            "($1::text IS NULL OR agent = $1) AND ($2::text IS NULL OR user_id = $2)
                AND ($3::text IS NULL OR status = $3) AND last_sequence < $4
             ORDER BY last_sequence DESC FETCH FIRST ($5) ROWS WITH TIES",
            query.agent.as_deref().map(Key::from) as _,
            query.user.as_deref().map(Key::from) as _,
            query.status.as_ref().map(ThreadStatus::as_str),
            number(query.before.unwrap_or(u64::MAX)),
            rows(query.limit)
        );
        Ok(threads.fetch_all(&mut **self.connection().await).await?)
    }

    /// The threads of this id, of one agent or of all: an id is an agent's own. By the primary key where the agent is
    /// given, else by index `threads_by_id`.
    pub async fn threads_named(&self, thread: &str, agent: Option<&str>) -> Result<Vec<ThreadRow>, ReadError> {
        let threads = threads!(
            "thread_id = $1 AND ($2::text IS NULL OR agent = $2) ORDER BY agent LIMIT $3",
            Key::from(thread) as _,
            agent.map(Key::from) as _,
            i64::from(MAX_ROWS)
        );
        Ok(threads.fetch_all(&mut **self.connection().await).await?)
    }
}
