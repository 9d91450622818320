//! The read model: what the log says, in Postgres, in a form that can be asked.
//!
//! projector alone writes it; everybody else asks a [`ReadSnapshot`] of a [`ReadModel`]. Its tables are in `model/`, the
//! registry of its generations in `migrations/`, every query is a file under `queries/`. Texts and times cross the border to Postgres as the types of [`sql_values`].

mod config;
mod digest;
mod error;
mod event_rows;
mod freshness;
mod generations;
mod output_columns;
mod projection_stats;
mod queries;
pub mod readers;
pub mod search;
mod snapshot;
pub mod sql_values;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use kairo_core::sharing::{
    QuotaHolder,
    permit_pool::{Permit, PermitPool},
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
pub use digest::{GenerationDigest, TableDigest, digest_generation};
pub use error::{ReadError, ReadErrorKind};
pub use freshness::{NotFresh, POSITION_CHANNEL};
pub use generations::{
    GENERATIONS_CHANNEL, Generation, INDEXES_SQL, PROJECTIONS, Projection, READ_MODEL, REQUEST_REBUILD, SEARCH, TABLES,
    TABLES_SQL,
};
pub use projection_stats::ProjectionStats;
pub use queries::{
    approvals::ApprovalsQuery,
    briefings::BriefingsQuery,
    conversation::ConversationQuery,
    conversations::ConversationsQuery,
    events::EventsQuery,
    export::{ExportCursor, ExportPage, ExportQuery},
    history::ThreadHistory,
    inbox::UserInbox,
    inner_state::InnerStateQuery,
    interaction::{TurnEvents, TurnProgress, build_interaction},
    memories::{MemoriesQuery, MemoryHistoryQuery},
    message::SentMessage,
    outline::{OutlineQuery, OutlineSlice},
    owners::{OwnedKind, OwnerCandidates, TurnContext},
    recent::{ActionState, ActionsQuery, ProcessesQuery},
    tasks::{TaskState, TasksQuery},
    teams::{DailyModelUsage, TeamStanding},
    thoughts::{SubmoduleChange, ThinkingEvents, ThoughtsQuery, thought_rows},
    thread_messages::ThreadMessagesQuery,
    threads::{ThreadState, ThreadsQuery},
    usage::{ModelUsage, UsageGrouping, UsageKey, UsageQuery},
};
pub use snapshot::ReadSnapshot;

/// Most rows that one query returns.
pub const MAX_ROWS: u32 = 1_000;

/// A place in the log: the sequence of a message, and the position of an event within it.
pub type RowPosition = (u64, u32);

/// A connection, and the place that it takes: given back in this order.
#[derive(Debug)]
pub(crate) struct PooledConnection {
    pub connection: PoolConnection<Postgres>,
    _permit: Permit,
}

/// Answers queries. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct ReadModel {
    pool: PgPool,
    /// One for each connection of the pool.
    places: PermitPool,
    /// The longest wait for a connection.
    wait: Duration,
    /// For whom it is asked.
    holder: QuotaHolder,
    moves: freshness::PositionWatch,
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
            places: PermitPool::with_capacity(usize::try_from(config.max_connections).unwrap_or(usize::MAX)),
            wait: config.acquire_timeout(),
            holder: QuotaHolder::for_group("service"),
            moves: freshness::PositionWatch::new(config.connect_options()?, READ_MODEL),
            log: Arc::default(),
        })
    }

    /// Returns the read model for a holder with a share of the connections: a holder of most of them waits for the
    /// others.
    #[must_use]
    pub fn for_holder(&self, holder: QuotaHolder) -> Self {
        Self { holder, ..self.clone() }
    }

    /// A connection, within the holder's share.
    pub(crate) async fn acquire_connection(&self) -> Result<PooledConnection, ReadError> {
        let permit = timeout(self.wait, self.places.acquire(&self.holder)).await;
        let permit = permit.map_err(|_| sqlx::Error::PoolTimedOut)?;
        Ok(PooledConnection { connection: self.pool.acquire().await?, _permit: permit })
    }

    /// From here on nothing is answered from tables that were made from another log: one that was restored from a backup is
    /// another, and tables may be ahead of it.
    pub fn restrict_to_log(&self, log: Uuid) {
        self.log.get_or_init(|| log);
    }

    /// Returns the condition that restricts the registry to this log; `row` is the name of its row in the query.
    pub(crate) fn log_condition(&self, row: &str) -> String {
        // A replica of an older projector may not have added the column yet.
        let of = |log: &Uuid| format!(" AND coalesce(to_jsonb({row}) ->> 'log', '{log}') = '{log}'");
        self.log.get().map(of).unwrap_or_default()
    }

    /// The role that it has in Postgres.
    pub fn postgres_role(&self) -> String {
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
    readers::grant_all(&mut connection).await?;
    connection.unlock().await?;
    connection.close().await?;
    Ok(())
}
