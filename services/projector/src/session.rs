//! The one database session that may write.
//!
//! Leadership is a lock that Postgres keeps for a session, so it ends with the session and with nothing else: when its
//! process dies, when Postgres does, and when the leader is frozen or cut off, because then Postgres ends the session.
//! It is taken on the very connection that writes, so whoever writes leads.

use std::time::Duration;

use kairo_read_model::{POSITION_CHANNEL, PROJECTION, PostgresConfig, ReadError};
use sqlx::{ConnectOptions, Connection, PgConnection, query, query_as};
use tokio::time::timeout;

use crate::{ProjectorConfig, changes::Changes, tables};

/// The advisory lock of the leader: `kairo` in ASCII, and 1 for the read model.
const LEADER: i64 = 0x6b61_6972_6f01;

const LOCK: &str = "SELECT pg_advisory_lock($1)";
const POSITION: &str = "SELECT sequence, judged FROM projections WHERE name = $1";
/// The fence: changes no row if the position is not the one that the batch begins behind. Who waits for the position is
/// told of it when the transaction is committed.
const MOVE: &str = "WITH moved AS (UPDATE projections SET sequence = $3, judged = greatest(judged, $3), \
                    updated_at = now() WHERE name = $1 AND sequence = $2 RETURNING name, sequence) \
                    SELECT pg_notify($4, name || ' ' || sequence) FROM moved";

/// Statements that a transaction may take the time of.
const STATEMENTS: u32 = 3;

/// How far the log has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The last message whose changes are in the tables.
    pub sequence: u64,
    /// The furthest it ever was; a rebuild takes it back, not this.
    pub judged: u64,
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The position is another one than expected: somebody asked for a rebuild.
    #[error("the position was changed by somebody else")]
    Moved,
    /// These rows can never be written.
    #[error("postgres refuses the rows: {0}")]
    Refused(#[source] sqlx::Error),
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
            // Bad data, a violated constraint, a limit of Postgres.
            Some(code) if ["22", "23", "54"].iter().any(|class| code.starts_with(class)) => Self::Refused(error),
            _ => Self::Failed(error),
        }
    }
}

/// A connection that is, or waits to be, the leader's.
pub struct Session {
    connection: PgConnection,
    patience: Duration,
}

impl Session {
    pub async fn open(postgres: &PostgresConfig, projector: &ProjectorConfig) -> Result<Self, SessionError> {
        let silent = projector.session_timeout_ms;
        // Postgres ends the session of a leader that is frozen, and notices one whose machine is gone.
        let options = postgres.connect_options()?.application_name("kairo-projector").options([
            ("idle_session_timeout", silent),
            ("idle_in_transaction_session_timeout", silent),
            ("lock_timeout", silent),
            ("tcp_user_timeout", silent),
            ("tcp_keepalives_idle", silent.div_ceil(3_000)),
            ("tcp_keepalives_interval", silent.div_ceil(3_000)),
            ("tcp_keepalives_count", 3),
        ]);
        // Longer than a lock is waited for, so that waiting in Postgres ends first.
        let statement = Duration::from_millis(postgres.statement_timeout_ms);
        let patience = projector.session_timeout() + statement * STATEMENTS;
        let connection = timeout(patience, options.connect()).await.map_err(|_| SessionError::Silent(patience))??;
        Ok(Self { connection, patience })
    }

    /// Waits in Postgres until this session leads. Returns false now and then, having heard that Postgres is there;
    /// ask again.
    pub async fn lead(&mut self) -> Result<bool, SessionError> {
        let locked = query(LOCK).bind(LEADER).execute(&mut self.connection);
        match timeout(self.patience, locked).await.map_err(|_| SessionError::Silent(self.patience))? {
            Ok(_) => Ok(true),
            Err(error) if is_timeout(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Also the sign of life that keeps the session.
    pub async fn position(&mut self) -> Result<Position, SessionError> {
        let row = query_as(POSITION).bind(PROJECTION).fetch_one(&mut self.connection);
        let (sequence, judged): (i64, i64) =
            timeout(self.patience, row).await.map_err(|_| SessionError::Silent(self.patience))??;
        let number = |value| u64::try_from(value).unwrap_or(0);
        Ok(Position { sequence: number(sequence), judged: number(judged) })
    }

    /// Writes changes and the position that they lead to in one transaction, if the position is still `from`.
    ///
    /// After any other error than [`SessionError::Moved`] and [`SessionError::Refused`] it may or may not have been
    /// written, and the session is not to be used any more.
    pub async fn commit(&mut self, changes: &Changes, from: Position, to: u64) -> Result<Position, SessionError> {
        let patience = self.patience;
        timeout(patience, self.write(changes, from, to)).await.map_err(|_| SessionError::Silent(patience))??;
        Ok(Position { sequence: to, judged: from.judged.max(to) })
    }

    async fn write(&mut self, changes: &Changes, from: Position, to: u64) -> Result<(), SessionError> {
        let number = |sequence| i64::try_from(sequence).unwrap_or(i64::MAX);
        let mut transaction = self.connection.begin().await?;
        let moved = query(MOVE).bind(PROJECTION).bind(number(from.sequence)).bind(number(to)).bind(POSITION_CHANNEL);
        if moved.execute(&mut *transaction).await?.rows_affected() == 0 {
            transaction.rollback().await?;
            return Err(SessionError::Moved);
        }
        if let Err(error) = tables::write(&mut transaction, changes).await {
            transaction.rollback().await?;
            return Err(error.into());
        }
        Ok(transaction.commit().await?)
    }
}

/// Whether the wait for the lock was cut short by the session's own limits.
fn is_timeout(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    matches!(code.as_deref(), Some("55P03" | "57014"))
}
