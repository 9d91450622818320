//! Elects the replica that keeps the search index: the one that holds a Postgres session lock.

use std::{convert::Infallible, time::Duration};

use sqlx::{ConnectOptions, PgConnection, query};
use tokio::time::{sleep, timeout};

use super::Trouble;
use crate::Config;

/// The advisory lock: `kairo` in ASCII, and 16.
const LEADER: i64 = 0x6b61_6972_6f10;
const LOCK: &str = "SELECT pg_advisory_lock($1)";
const ALIVE: &str = "SELECT 1";

/// Does the work as soon as nobody else does, for as long as Postgres says that nobody else may.
pub async fn lead(
    config: &Config,
    work: impl Future<Output = Result<Infallible, Trouble>>,
) -> Result<Infallible, Trouble> {
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
    let mut connection = within(patience, options.connect()).await?;
    while let Err(error) = within(patience, query(LOCK).bind(LEADER).execute(&mut connection)).await {
        if !is_timeout(&error) {
            return Err(error);
        }
    }
    tokio::select! {
        lost = hold(&mut connection, Duration::from_millis(silent / 3), patience) => lost,
        ended = work => ended,
    }
}

/// Keeps the session until it is lost.
async fn hold(connection: &mut PgConnection, pause: Duration, patience: Duration) -> Result<Infallible, Trouble> {
    loop {
        sleep(pause).await;
        within(patience, query(ALIVE).execute(&mut *connection)).await?;
    }
}

async fn within<T>(patience: Duration, asked: impl Future<Output = sqlx::Result<T>>) -> Result<T, Trouble> {
    Ok(timeout(patience, asked).await.map_err(|_| Trouble::Silent(patience))??)
}

/// Returns true if the session's own limits cut the wait for the lock short.
fn is_timeout(error: &Trouble) -> bool {
    let Trouble::Database(error) = error else { return false };
    let code = error.as_database_error().and_then(|error| error.code());
    matches!(code.as_deref(), Some("55P03" | "57014"))
}
