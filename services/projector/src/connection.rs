//! Connections to Postgres that hold locks, and what may go wrong on them.
//!
//! A lock ends with its session and with nothing else: when its process dies, when Postgres does, and when the process
//! is frozen or cut off, because then Postgres ends the session.

use std::time::Duration;

use kairo_read_model::{PostgresConfig, ReadError};
use sqlx::{ConnectOptions, PgConnection};
use tokio::time::timeout;

use crate::ProjectorConfig;

/// The first key of every lock of projector's: `ka` in ASCII, and the number of the generation; 0 for all of them.
const CLASS: i32 = 0x6b61_0000;
/// Statements that a transaction may take the time of.
const STATEMENTS: u32 = 3;

/// The reason why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The positions are others than expected.
    #[error("the position was changed by somebody else")]
    Moved,
    /// These rows can never be written.
    #[error("postgres refuses the rows: {0}")]
    Refused(#[source] sqlx::Error),
    /// Somebody else writes the same rows; once more, and they can be written.
    #[error("postgres gave way to somebody else: {0}")]
    Contended(#[source] sqlx::Error),
    #[error("postgres does not answer within {0:?}")]
    Silent(Duration),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("postgres failed: {0}")]
    Failed(#[source] sqlx::Error),
}

impl From<sqlx::Error> for SessionError {
    fn from(error: sqlx::Error) -> Self {
        let code = error.as_database_error().and_then(|error| error.code());
        match code {
            // A deadlock, a transaction that cannot be ordered, a lock that was waited for too long.
            Some(code) if ["40P01", "40001", "55P03"].contains(&code.as_ref()) => Self::Contended(error),
            // Bad data, a violated constraint, a limit of Postgres.
            Some(code) if ["22", "23", "54"].iter().any(|class| code.starts_with(class)) => Self::Refused(error),
            _ => Self::Failed(error),
        }
    }
}

/// The first key of the locks of a generation.
pub fn lock_class(generation: i64) -> i32 {
    CLASS + i32::try_from(generation.rem_euclid(0x1_0000)).unwrap_or(0)
}

/// Returns the longest wait for an answer of Postgres: longer than any wait for a lock, so that Postgres gives up
/// first.
pub fn answer_timeout(postgres: &PostgresConfig, projector: &ProjectorConfig) -> Duration {
    projector.session_timeout() + Duration::from_millis(postgres.statement_timeout_ms) * STATEMENTS
}

/// Opens a session that ends with this process, however that ends.
pub async fn open_connection(
    postgres: &PostgresConfig,
    projector: &ProjectorConfig,
) -> Result<PgConnection, SessionError> {
    let silent = projector.session_timeout_ms;
    // Postgres ends the session of a replica that is frozen, and notices one whose machine is gone.
    let options = postgres.connect_options()?.application_name("kairo-projector").options([
        ("idle_session_timeout", silent),
        ("idle_in_transaction_session_timeout", silent),
        ("lock_timeout", silent),
        ("tcp_user_timeout", silent),
        ("tcp_keepalives_idle", silent.div_ceil(3_000)),
        ("tcp_keepalives_interval", silent.div_ceil(3_000)),
        ("tcp_keepalives_count", 3),
    ]);
    let patience = answer_timeout(postgres, projector);
    with_timeout(patience, options.connect()).await
}

/// The answer, if it comes in time.
pub async fn with_timeout<T>(
    patience: Duration,
    asked: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, SessionError> {
    Ok(timeout(patience, asked).await.map_err(|_| SessionError::Silent(patience))??)
}

/// A sequence as Postgres counts.
pub fn to_bigint(sequence: u64) -> i64 {
    i64::try_from(sequence).unwrap_or(i64::MAX)
}

/// A sequence as streams count.
pub fn from_bigint(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
