//! How far the log has been read, and reading it again.

use sqlx::query_scalar;

use crate::{POSITION_CHANNEL, PROJECTION, ReadError, ReadModel};

pub const POSITION: &str = "SELECT sequence FROM projections WHERE name = $1";

/// First the position, on which the writer's transactions queue too, and snapshots, then the tables: transactions that
/// lock in the same order cannot deadlock.
const LOCK: &str = "LOCK TABLE projections IN ACCESS EXCLUSIVE MODE";
const RESET: &str = "UPDATE projections SET sequence = 0, updated_at = now() WHERE name = $1";
const EMPTY: &str = "TRUNCATE events, agents, threads, messages, actions, processes, memories, chains, chain_steps, tasks, \
                     task_firings, approvals, offers";
const TELL: &str = "SELECT pg_notify($1, $2 || ' 0')";

impl ReadModel {
    /// The sequence of the last message that everything here takes account of; 0 for none.
    pub async fn position(&self) -> Result<u64, ReadError> {
        let sequence: i64 = query_scalar(POSITION).bind(PROJECTION).fetch_one(&self.pool).await?;
        Ok(u64::try_from(sequence).unwrap_or(0))
    }

    /// Empties everything and lets projector read the log again from the start, which it notices within a third of
    /// its `session_timeout_ms`. Queries are answered from what is there already.
    pub async fn rebuild(&self) -> Result<(), ReadError> {
        let mut transaction = self.pool.begin().await?;
        sqlx::query(LOCK).execute(&mut *transaction).await?;
        if sqlx::query(RESET).bind(PROJECTION).execute(&mut *transaction).await?.rows_affected() == 0 {
            // Emptied without its position, a schema of another version would stay empty.
            return Err(sqlx::Error::RowNotFound.into());
        }
        sqlx::query(EMPTY).execute(&mut *transaction).await?;
        sqlx::query(TELL).bind(POSITION_CHANNEL).bind(PROJECTION).execute(&mut *transaction).await?;
        Ok(transaction.commit().await?)
    }
}
