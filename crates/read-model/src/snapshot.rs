//! Answers that belong together: all rows are of one moment, which the position names.

use std::{sync::Arc, time::Duration};

use sqlx::{AssertSqlSafe, Executor, Postgres, Row, pool::PoolConnection, raw_sql};
use tokio::{
    sync::{MappedMutexGuard, Mutex, MutexGuard},
    time::timeout,
};

use crate::{PooledConnection, READ_MODEL, ReadError, ReadModel};

/// The statement that ends a transaction, whether or not it went well.
const END: &str = "COMMIT";
/// Longest time that ending one may take; then its connection is closed.
const ENDING: Duration = Duration::from_secs(10);

/// The read model as it was at one moment. It holds a connection, so it is not to be kept for long.
#[derive(Debug)]
pub struct ReadSnapshot {
    position: u64,
    connection: Arc<Mutex<PooledConnection>>,
}

impl ReadModel {
    /// The read model as it is.
    pub async fn snapshot(&self) -> Result<ReadSnapshot, ReadError> {
        // It exists before its transaction does, so that this ends however far it came.
        let connection = Arc::new(Mutex::new(self.acquire_connection().await?));
        let snapshot = ReadSnapshot { position: 0, connection };
        // What is live is chosen once, so that all rows are of one generation; and whoever removes one waits for those
        // who look, by a lock that is taken before the moment is chosen.
        let of_log = self.log_condition("live");
        let begin = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; LOCK TABLE generations IN ACCESS SHARE MODE; \
             SELECT (SELECT min(sequence) FROM positions WHERE positions.generation = live.generation), \
             set_config('search_path', place || ', ' || current_setting('search_path'), true) \
             FROM generations AS live WHERE projection = '{}' AND version = {} AND state = 'live'{of_log}",
            READ_MODEL.name, READ_MODEL.version
        );
        let row = raw_sql(AssertSqlSafe(begin)).fetch_one(&mut **snapshot.connection().await).await?;
        let sequence: i64 = row.try_get(0)?;
        Ok(snapshot.with_position(u64::try_from(sequence).unwrap_or(0)))
    }
}

impl ReadSnapshot {
    /// The sequence of the last message that its rows take account of; 0 for none.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the connection of the snapshot, for one query at a time.
    pub(crate) async fn connection(&self) -> MappedMutexGuard<'_, PoolConnection<Postgres>> {
        MutexGuard::map(self.connection.lock().await, |it| &mut it.connection)
    }

    fn with_position(mut self, position: u64) -> Self {
        self.position = position;
        self
    }
}

impl Drop for ReadSnapshot {
    /// The connection goes back when the transaction has ended; a query that was given up ends first.
    fn drop(&mut self) {
        let connection = self.connection.clone();
        tokio::spawn(async move {
            let mut held = connection.lock().await;
            let connection = &mut held.connection;
            if !matches!(timeout(ENDING, connection.execute(END)).await, Ok(Ok(_))) {
                connection.close_on_drop();
            }
        });
    }
}
