//! The threads of an agent.

use serde::Serialize;
use sqlx::FromRow;

use crate::{
    MAX_ROWS, ReadError, ReadModel,
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
    /// `open`.
    pub status: String,
    pub title: String,
    pub created_at: Time,
    /// When its last event happened.
    pub updated_at: Time,
    /// Sequence of its last event.
    #[sqlx(try_from = "i64")]
    pub last_sequence: u64,
}

/// By index `threads_by_age`.
const THREADS: &str = "SELECT agent, thread_id, user_id, kind, status, title, created_at, updated_at, last_sequence \
                       FROM threads WHERE agent = $1 ORDER BY last_sequence DESC LIMIT $2";

impl ReadModel {
    /// The newest [`MAX_ROWS`], the one where something happened last first.
    pub async fn threads(&self, agent: &str) -> Result<Vec<Thread>, ReadError> {
        let threads = sqlx::query_as(THREADS).bind(Key::from(agent)).bind(i64::from(MAX_ROWS));
        Ok(threads.fetch_all(&self.pool).await?)
    }
}
