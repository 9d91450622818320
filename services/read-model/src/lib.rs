//! The read model: what the log says, in Postgres, in a form that can be asked.
//!
//! projector alone writes it; everybody else asks a [`ReadModel`]. The schema is in `migrations/`, every query is a
//! file under `queries/`. Texts and times cross the border to Postgres as the types of [`stored`].

mod config;
mod error;
mod queries;
pub mod stored;

use sqlx::{
    ConnectOptions, Connection, PgPool,
    migrate::Migrator,
    postgres::{PgConnectOptions, PgPoolOptions},
};

pub use config::PostgresConfig;
pub use error::{ReadError, ReadErrorKind};
pub use queries::{
    actions::{UnfinishedAction, WantedActions},
    agents::Agent,
    conversation::{ConversationMessage, ConversationQuery},
    events::EventsQuery,
    message::SentMessage,
    processes::Process,
    threads::Thread,
};

/// The row of `projections` that holds the position of everything here. A migration that has all rows made again gives
/// it a new name, so that replicas of the version before write no more.
pub const PROJECTION: &str = "read-model-2";
/// Most rows that one query returns.
pub const MAX_ROWS: u32 = 1_000;

/// A place in the log: the sequence of a message, and the position of an event within it.
pub type Place = (u64, u32);

/// Answers queries. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct ReadModel {
    pool: PgPool,
}

impl ReadModel {
    /// Connects when the first query is asked, and again whenever Postgres went away, for at most
    /// `acquire_timeout_ms` a query.
    ///
    /// # Errors
    /// When the URL cannot be read, which [`PostgresConfig`]'s validation finds first.
    pub fn open(config: &PostgresConfig) -> Result<Self, ReadError> {
        let pool = PgPoolOptions::new()
            .max_connections(config.max_connections)
            .acquire_timeout(config.acquire_timeout())
            .connect_lazy_with(config.connect_options()?);
        Ok(Self { pool })
    }

    /// The pool, for what is not a query of this crate.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }
}

/// Brings the schema up to date. Any number of callers at once: one does it, the others wait.
///
/// A migration may take long, so the connection is its own and its statements have no time limit.
pub async fn migrate(config: &PostgresConfig) -> Result<(), ReadError> {
    let options: PgConnectOptions = config.connect_options()?.options([("statement_timeout", "0")]);
    let mut connection = options.connect().await?;
    let mut migrations: Migrator = sqlx::migrate!();
    // A replica of an older version, restarted while versions are mixed, finds a newer schema: schemas only grow.
    migrations.set_ignore_missing(true);
    migrations.run(&mut connection).await?;
    connection.close().await?;
    Ok(())
}
