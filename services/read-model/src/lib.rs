//! The read model: what the log says, in Postgres, in a form that can be asked.
//!
//! projector alone writes it; everybody else asks a [`Snapshot`] of a [`ReadModel`]. Its tables are in `model/`, the
//! registry of its generations in `migrations/`, every query is a file under `queries/`. Texts and times cross the border to Postgres as the types of [`stored`].

mod config;
mod digest;
mod error;
mod freshness;
mod generations;
mod queries;
pub mod readers;
mod rendered;
pub mod search;
mod shown;
mod snapshot;
mod standing;
pub mod stored;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use kairo_core::sharing::{
    Holder,
    places::{Permit, Places},
};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection as _, Executor, PgPool, Postgres,
    migrate::{Migrate, Migrator},
    pool::PoolConnection,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::time::timeout;
use uuid::Uuid;

pub use config::PostgresConfig;
pub use digest::{Digests, TableDigest, digests};
pub use error::{ReadError, ReadErrorKind};
pub use freshness::{NotFresh, POSITION_CHANNEL};
pub use generations::{
    GENERATIONS_CHANNEL, Generation, INDEXES_SQL, PROJECTIONS, Projection, READ_MODEL, REQUEST_REBUILD, SEARCH, TABLES,
    TABLES_SQL,
};
pub use queries::{
    approvals::ApprovalsQuery,
    briefings::BriefingsQuery,
    conversation::ConversationQuery,
    conversations::ConversationsQuery,
    events::EventsQuery,
    export::{ExportPage, ExportPlace, ExportQuery},
    history::ThreadHistory,
    inbox::Inbox,
    inner_state::InnerStateQuery,
    interaction::{TurnEvents, TurnProgress, interaction},
    memories::{MemoriesQuery, MemoryHistoryQuery},
    message::SentMessage,
    outline::{OutlineQuery, Outlined},
    owners::{Happened, Kind, Owners},
    recent::{ActionState, ActionsQuery, ProcessesQuery},
    tasks::{TaskState, TasksQuery},
    teams::{SpentOn, TeamStanding},
    thoughts::{SubmoduleChange, Thinking, ThoughtsQuery, thoughts},
    thread_messages::ThreadMessagesQuery,
    threads::{ThreadState, ThreadsQuery},
    usage::{ModelUsage, UsageBy, UsageKey, UsageQuery},
};
pub use snapshot::Snapshot;
pub use standing::Standing;

/// Most rows that one query returns.
pub const MAX_ROWS: u32 = 1_000;

/// A place in the log: the sequence of a message, and the position of an event within it.
pub type Place = (u64, u32);

/// A connection, and the place that it takes: given back in this order.
#[derive(Debug)]
pub(crate) struct Connection {
    pub connection: PoolConnection<Postgres>,
    _permit: Permit,
}

/// Answers queries. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct ReadModel {
    pool: PgPool,
    /// One for each connection of the pool.
    places: Places,
    /// The longest wait for a connection.
    wait: Duration,
    /// For whom it is asked.
    holder: Holder,
    moves: freshness::Moves,
    /// The log that it is to be of; any, as long as that is not said.
    log: Arc<OnceLock<Uuid>>,
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
            .after_connect(|connection, _| {
                // Where a pooler in front gives it to somebody else, fewer misspelt words are found.
                let alike = format!("SET pg_trgm.word_similarity_threshold = {}", queries::memories::ALIKE);
                Box::pin(async move { connection.execute(AssertSqlSafe(alike)).await.map(|_| ()) })
            })
            .connect_lazy_with(config.query_options()?);
        Ok(Self {
            pool,
            places: Places::shared(usize::try_from(config.max_connections).unwrap_or(usize::MAX)),
            wait: config.acquire_timeout(),
            holder: Holder::of("service"),
            moves: freshness::Moves::new(config.connect_options()?, READ_MODEL),
            log: Arc::default(),
        })
    }

    /// Returns the read model for a holder with a share of the connections: a holder of most of them waits for the
    /// others.
    #[must_use]
    pub fn for_holder(&self, holder: Holder) -> Self {
        Self { holder, ..self.clone() }
    }

    /// A connection, within the holder's share.
    pub(crate) async fn connection(&self) -> Result<Connection, ReadError> {
        let permit = timeout(self.wait, self.places.wait(&self.holder)).await;
        let permit = permit.map_err(|_| sqlx::Error::PoolTimedOut)?;
        Ok(Connection { connection: self.pool.acquire().await?, _permit: permit })
    }

    /// From here on nothing is answered from tables that were made from another log: one that was restored from a backup is
    /// another, and tables may be ahead of it.
    pub fn only_of_log(&self, log: Uuid) {
        self.log.get_or_init(|| log);
    }

    /// Returns the condition that restricts the registry to this log; `row` is the name of its row in the query.
    pub(crate) fn of_log(&self, row: &str) -> String {
        // A replica of an older projector may not have added the column yet.
        let of = |log: &Uuid| format!(" AND coalesce(to_jsonb({row}) ->> 'log', '{log}') = '{log}'");
        self.log.get().map(of).unwrap_or_default()
    }

    /// The role that it has in Postgres.
    pub fn role(&self) -> String {
        self.pool.connect_options().get_username().to_owned()
    }

    /// The pool, for what is not a query of this crate: it waits for whoever comes first.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }
}

/// Brings the registry up to date, and lets [`readers`] in. Any number of callers at once: one does it, the others wait.
///
/// A migration may take long, so the connection is its own and its statements have no time limit.
pub async fn migrate(config: &PostgresConfig) -> Result<(), ReadError> {
    let options: PgConnectOptions = config.connect_options()?.options([("statement_timeout", "0")]);
    let mut connection = options.connect().await?;
    let mut migrations: Migrator = sqlx::migrate!();
    // A replica of an older version, restarted while versions are mixed, finds a newer schema: schemas only grow.
    migrations.set_ignore_missing(true);
    // The lock is held until readers are in, too: two who grant the same at once get in each other's way.
    migrations.set_locking(false);
    connection.lock().await?;
    migrations.run(&mut connection).await?;
    readers::let_in(&mut connection).await?;
    connection.unlock().await?;
    connection.close().await?;
    Ok(())
}
