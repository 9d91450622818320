//! Elects the replica that keeps the search index: the one that holds a Postgres session lock.

use std::{convert::Infallible, time::Duration};

use sqlx::{ConnectOptions, PgConnection, query};
use tokio::time::{sleep, timeout};

use super::SearchIndexError;
use crate::Config;

/// The advisory lock: `kairo` in ASCII, and 16.
const LEADER: i64 = 0x6b61_6972_6f10;
const LOCK: &str = "SELECT pg_advisory_lock($1)";
const ALIVE: &str = "SELECT 1";

/// Does the work as soon as nobody else does, for as long as Postgres says that nobody else may.
pub async fn run_as_leader(
    config: &Config,
    work: impl Future<Output = Result<Infallible, SearchIndexError>>,
) -> Result<Infallible, SearchIndexError> {
    let silent = config.projector.session_timeout_ms;
    // Postgres ends the session of one that is frozen, and notices one whose machine is gone.
    let options = config.postgres.connect_options()?.application_name("kairo-projector-search").options([
        ("idle_session_timeout", silent),
        ("lock_timeout", silent),
        ("tcp_user_timeout", silent),
        ("tcp_keepalives_idle", silent.div_ceil(3_000)),
        ("tcp_keepalives_interval", silent.div_ceil(3_000)),
        ("tcp_keepalives_count", 3),
    ]);
    let patience = Duration::from_millis(silent + config.postgres.statement_timeout_ms);
    let mut connection = with_timeout(patience, options.connect()).await?;
    while let Err(error) = with_timeout(patience, query(LOCK).bind(LEADER).execute(&mut connection)).await {
        if !is_timeout(&error) {
            return Err(error);
        }
    }
    tokio::select! {
        lost = keep_session_alive(&mut connection, Duration::from_millis(silent / 3), patience) => lost,
        ended = work => ended,
    }
}

/// Keeps the session until it is lost.
async fn keep_session_alive(
    connection: &mut PgConnection,
    pause: Duration,
    patience: Duration,
) -> Result<Infallible, SearchIndexError> {
    loop {
        sleep(pause).await;
        with_timeout(patience, query(ALIVE).execute(&mut *connection)).await?;
    }
}

async fn with_timeout<T>(
    patience: Duration,
    asked: impl Future<Output = sqlx::Result<T>>,
) -> Result<T, SearchIndexError> {
    Ok(timeout(patience, asked).await.map_err(|_| SearchIndexError::Silent(patience))??)
}

/// Returns true if the session's own limits cut the wait for the lock short.
fn is_timeout(error: &SearchIndexError) -> bool {
    let SearchIndexError::Database(error) = error else { return false };
    let code = error.as_database_error().and_then(|error| error.code());
    matches!(code.as_deref(), Some("55P03" | "57014"))
}
