//! Threads, and what they are about.

use serde::Serialize;
use sqlx::{FromRow, Postgres, QueryBuilder};

use super::number;
use crate::{
    MAX_ROWS, ReadError, Snapshot,
    stored::{Key, Time},
};

/// A thread.
#[derive(Clone, Debug, PartialEq, Serialize, FromRow)]
pub struct Thread {
    pub agent: String,
    pub thread_id: String,
    #[sqlx(rename = "user_id")]
    pub user: String,
    /// `topic` or `work`.
    pub kind: String,
    /// `active` or `archived`.
    pub status: String,
    pub title: String,
    pub summary: String,
    pub created_at: Time,
    /// When its last event happened.
    pub updated_at: Time,
    /// Sequence of its last event.
    #[sqlx(try_from = "i64")]
    pub last_sequence: u64,
}

/// Whether a thread was put away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadStatus {
    Active,
    Archived,
}

impl ThreadStatus {
    fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Archived => "archived",
        }
    }
}

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

const COLUMNS: &str = "SELECT agent, thread_id, user_id, kind, status, title, summary, created_at, updated_at, \
                       last_sequence FROM threads WHERE ";

impl ThreadsQuery {
    /// By index `threads_by_age`, `threads_of_user` or `threads_by_last_event`, whose order is the order asked for.
    fn sql(&self) -> QueryBuilder<Postgres> {
        let mut sql = QueryBuilder::new(COLUMNS);
        sql.push("true");
        if let Some(agent) = &self.agent {
            sql.push(" AND agent = ").push_bind(Key::from(agent.as_str()));
        }
        if let Some(user) = &self.user {
            sql.push(" AND user_id = ").push_bind(Key::from(user.as_str()));
        }
        if let Some(status) = self.status {
            sql.push(" AND status = ").push_bind(status.as_str());
        }
        if let Some(before) = self.before {
            sql.push(" AND last_sequence < ").push_bind(number(before));
        }
        sql.push(" ORDER BY last_sequence DESC FETCH FIRST (")
            .push_bind(i64::from(self.limit.clamp(1, MAX_ROWS)))
            .push(") ROWS WITH TIES");
        sql
    }
}

impl Snapshot {
    /// The one where something happened last first.
    pub async fn threads(&self, query: &ThreadsQuery) -> Result<Vec<Thread>, ReadError> {
        Ok(query.sql().build_query_as().fetch_all(&mut **self.connection().await).await?)
    }

    /// The threads of this id, of one agent or of all: an id is an agent's own. By the primary key where the agent is
    /// given, else by index `threads_by_id`.
    pub async fn threads_named(&self, thread: &str, agent: Option<&str>) -> Result<Vec<Thread>, ReadError> {
        let mut sql = QueryBuilder::new(COLUMNS);
        sql.push("thread_id = ").push_bind(Key::from(thread));
        if let Some(agent) = agent {
            sql.push(" AND agent = ").push_bind(Key::from(agent));
        }
        sql.push(" ORDER BY agent LIMIT ").push_bind(i64::from(MAX_ROWS));
        Ok(sql.build_query_as().fetch_all(&mut **self.connection().await).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_asked_for_is_in_the_statement() {
        let query = ThreadsQuery {
            agent: Some("a".into()),
            status: Some(ThreadStatus::Archived),
            before: Some(7),
            ..ThreadsQuery::default()
        };
        let sql = query.sql();
        let statement = sql.sql();
        let condition = statement.as_str().split_once(" WHERE ").unwrap().1;
        assert_eq!(
            condition,
            "true AND agent = $1 AND status = $2 AND last_sequence < $3 ORDER BY last_sequence DESC FETCH FIRST ($4) \
             ROWS WITH TIES"
        );
    }
}
