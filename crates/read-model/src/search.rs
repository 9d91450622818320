//! Searching threads, tasks, memories, messages and inner state.
//!
//! Meilisearch answers where it is configured and there, else Postgres does: the same question, the same answer but for
//! the order among what fits about as well. projector keeps the documents of the search engine ([`document`]) up to
//! date from the tables ([`rows`]); the generation of them that is live stands in the registry.

mod config;
pub mod digest;
pub mod document;
mod filter;
mod folding;
mod highlight;
mod http;
pub mod meili;
mod postgres;
pub mod rows;
mod words;

use std::{collections::BTreeMap, time::Duration};

use jiff::civil::Date;
use kairo_core::sharing::QuotaHolder;
use kairo_proto::v1::{SearchFacets, SearchResponse};
use sqlx::AssertSqlSafe;
use tokio::time::Instant;

pub use config::SearchConfig;
pub use document::DocumentKind;
use meili::{EngineError, SearchEngine};
pub(crate) use {
    folding::fold_text,
    words::{is_unspaced, tokens},
};

use crate::{NotFresh, PostgresConfig, ReadError, ReadModel, SEARCH, freshness::PositionWatch};

/// Most hits of an answer, and most pages of so many.
pub const MAX_HITS: u32 = 100;
pub const MAX_PAGES: u32 = 100;

/// A search; all conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct SearchQuery {
    /// Words that must all occur, the last one at least as the beginning of a word. One letter of a word of five may be
    /// wrong, but for the first. Empty for everything, what changed last first.
    pub words: String,
    /// Empty for all.
    pub kinds: Vec<DocumentKind>,
    pub agent: Option<String>,
    /// Only entries of this user, and memories and inner state for all.
    pub user: Option<String>,
    /// The kind of thread, task or memory; of a message, who said it.
    pub kind_of: Option<String>,
    pub status: Option<String>,
    /// About these days, or changed on them (in UTC), both included.
    pub from: Option<Date>,
    pub to: Option<Date>,
    /// True to count the entries by kind, agent, type and status.
    pub facets: bool,
    /// At most so many, and never more than [`MAX_HITS`].
    pub limit: u32,
    /// The page to return, of `limit` hits each; 0 for the first. It is one of the first [`MAX_PAGES`].
    pub page: u32,
}

impl SearchQuery {
    /// Hits of the pages before.
    fn offset(&self) -> u32 {
        self.page.min(MAX_PAGES - 1) * self.limit.clamp(1, MAX_HITS)
    }
}

/// Returns the counts of each value, by facet.
fn to_search_facets(mut counts: BTreeMap<String, BTreeMap<String, u64>>) -> SearchFacets {
    let mut take = |facet: &str| counts.remove(facet).unwrap_or_default();
    SearchFacets { kind: take("kind"), agent: take("agent"), r#type: take("type"), status: take("status") }
}

/// Answers searches. Clones share their connections.
#[derive(Clone, Debug)]
pub struct SearchService {
    model: ReadModel,
    engine: Option<SearchEngine>,
    config: SearchConfig,
    moves: PositionWatch,
}

impl SearchService {
    /// Connects when the first question is asked.
    ///
    /// # Errors
    /// When a URL cannot be read, which validation finds first, or no HTTP client can be made on this machine.
    pub fn open(model: ReadModel, postgres: &PostgresConfig, config: &SearchConfig) -> Result<Self, ReadError> {
        let moves = PositionWatch::new(postgres.connect_options()?, SEARCH);
        let engine = SearchEngine::open(config).map_err(ReadError::from_other)?;
        Ok(Self { model, engine, config: config.clone(), moves })
    }

    /// Returns the search for a holder with a share of the connections.
    #[must_use]
    pub fn for_holder(&self, holder: QuotaHolder) -> Self {
        Self { model: self.model.for_holder(holder), ..self.clone() }
    }

    /// The answer, whose position is at least this sequence; that is waited for no longer than `limit`. Asking comes on
    /// top.
    pub async fn search(
        &self,
        query: &SearchQuery,
        sequence: u64,
        limit: Duration,
    ) -> Result<SearchResponse, NotFresh> {
        let deadline = Instant::now() + limit;
        if let Some(engine) = &self.engine {
            match self.ask_engine(engine, query, sequence, deadline).await {
                Ok(Some(answered)) => return Ok(answered),
                Ok(None) => {}
                // Postgres may be away for a moment; then it says so itself.
                Err(error) => tracing::debug!(%error, "the live search index is not known"),
            }
        }
        let snapshot = match sequence {
            0 => self.model.snapshot().await?,
            // What is late in the search engine may be in the tables, even if there is no time left to wait.
            _ => self.model.snapshot_at_least(sequence, deadline.saturating_duration_since(Instant::now())).await?,
        };
        Ok(snapshot.search(query).await?)
    }

    /// Returns true if a search engine is configured.
    pub fn is_configured(&self) -> bool {
        self.engine.is_some()
    }

    /// The search engine, and the name of a generation's index in it; none where no search engine is configured.
    pub fn engine_index(&self, generation: i64) -> Option<(&SearchEngine, String)> {
        Some((self.engine.as_ref()?, self.config.index_name(generation)))
    }

    /// Asks the search engine; `None` if it has no answer, or none that is fresh enough.
    async fn ask_engine(
        &self,
        engine: &SearchEngine,
        query: &SearchQuery,
        sequence: u64,
        deadline: Instant,
    ) -> Result<Option<SearchResponse>, ReadError> {
        let mut moves = self.moves.subscribe();
        let (index, position) = loop {
            moves.mark_unchanged();
            let Some((generation, position)) = self.live_generation().await? else { return Ok(None) };
            if position >= sequence {
                break (self.config.index_name(generation), position);
            }
            if !crate::freshness::reaches_before(&mut moves, sequence, deadline).await {
                return Ok(None);
            }
        };
        match engine.search(&index, query).await {
            Ok(answer) => Ok(Some(SearchResponse { position, ..answer })),
            Err(error @ EngineError::Unavailable(_)) => {
                tracing::debug!(%error, "postgres answers a search");
                Ok(None)
            }
            Err(error) => {
                tracing::warn!(%error, index, "postgres answers a search");
                Ok(None)
            }
        }
    }

    /// The live generation of the documents, and how far it is.
    async fn live_generation(&self) -> Result<Option<(i64, u64)>, ReadError> {
        let live = format!(
            "SELECT generation, sequence FROM generations JOIN positions USING (generation) \
             WHERE projection = $1 AND version = $2 AND state = 'live'{}",
            self.model.log_condition("generations")
        );
        let live = sqlx::query_as(AssertSqlSafe(live)).bind(SEARCH.name).bind(SEARCH.version);
        let live: Option<(i64, i64)> =
            live.fetch_optional(&mut *self.model.acquire_connection().await?.connection).await?;
        Ok(live.map(|(generation, sequence)| (generation, u64::try_from(sequence).unwrap_or(0))))
    }
}

/// A day as documents have it.
fn day_number(day: Date) -> i64 {
    i64::from(day.year()) * 10_000 + i64::from(day.month()) * 100 + i64::from(day.day())
}
