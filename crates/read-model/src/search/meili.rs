//! The requests to Meilisearch, through its own client.
//!
//! Meilisearch answers a change with a promise: the change was queued. Its task tells whether it succeeded, so every
//! task is followed to its end here.

use std::time::Duration;

use kairo_proto::{
    time,
    v1::{HitRow, SearchResponse},
    words::SearchBackend,
};
use meilisearch_sdk::{
    client::Client,
    documents::DocumentsQuery,
    errors::{Error, ErrorCode, ErrorType},
    search::{MatchingStrategies, SearchResults, Selectors},
    settings::{FacetingSettings, MinWordSizeForTypos, PaginationSetting, Settings, TypoToleranceSettings},
    task_info::TaskInfo,
    tasks::Task,
};
use serde::Deserialize;
use tokio::time::{Instant, sleep, timeout};

use super::{
    MAX_HITS, SearchConfig, SearchQuery,
    document::{DocumentKind, FILTERED, KEY, SEARCHED, SearchDocument},
    filter::engine_filter,
    highlight::snippet,
    http::MeiliHttpClient,
    to_search_facets,
    words::parse_words,
};
/// The interval between polls of a task: the first one, and the longest one.
const FIRST_LOOK: Duration = Duration::from_millis(5);
const LAST_LOOK: Duration = Duration::from_millis(500);
/// The longest answers to a search: hits that can be counted, and values of a facet.
const MOST_HITS: usize = 1_000_000;
const MOST_VALUES: usize = 1_000;
/// Letters that end a word besides those that do so by themselves, as between `<b>` and what follows.
const SEPARATORS: [&str; 14] = ["<", ">", "=", "|", "#", "$", "^", "~", "`", "\\", "+", "*", "%", "&"];
/// Words of a text that come with a hit.
const CROPPED: usize = 80;

/// The reason for which the search engine did not do what was asked of it.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// It is away, overloaded, full or wrongly configured: the same may succeed later.
    #[error("the search engine is unavailable: {0}")]
    Unavailable(String),
    /// It will never take this.
    #[error("the search engine refuses it: {0}")]
    Refused(String),
    /// There is no such index.
    #[error("the search engine has no such index")]
    Gone,
}

impl From<Error> for EngineError {
    fn from(error: Error) -> Self {
        match error {
            Error::Meilisearch(error) => match (&error.error_code, error.error_type) {
                (ErrorCode::IndexNotFound, _) => Self::Gone,
                (_, ErrorType::InvalidRequest) => Self::Refused(error.error_message),
                _ => Self::Unavailable(error.error_message),
            },
            Error::MeilisearchCommunication(error) if error.status_code == 413 => {
                Self::Refused("it is too large".to_owned())
            }
            other => Self::Unavailable(other.to_string()),
        }
    }
}

/// A Meilisearch. Clones share their connections.
#[derive(Clone, Debug)]
pub struct SearchEngine {
    /// For questions, and for changes.
    asking: Client<MeiliHttpClient>,
    changing: Client<MeiliHttpClient>,
    task_timeout: Duration,
}

/// The fields that come with a hit.
#[derive(Debug, Deserialize)]
struct EngineHit {
    kind: DocumentKind,
    id: String,
    agent: String,
    user: Option<String>,
    title: String,
    #[serde(rename = "type")]
    kind_of: String,
    status: Option<String>,
    updated: i64,
    thread: Option<String>,
}

const RETRIEVED: [&str; 9] = ["kind", "id", "agent", "user", "title", "type", "status", "updated", "thread"];
const FACETS: [&str; 4] = ["kind", "agent", "type", "status"];

impl SearchEngine {
    /// Builds the engine without asking it anything yet; `None` if none is configured.
    ///
    /// # Errors
    /// When no HTTP client can be made on this machine.
    pub fn open(config: &SearchConfig) -> Result<Option<Self>, EngineError> {
        if !config.is_configured() {
            return Ok(None);
        }
        let client = |limit| {
            let http = MeiliHttpClient::new(config.meili_key.clone(), limit);
            let http = http.map_err(|error| EngineError::Unavailable(error.to_string()))?;
            Ok::<_, EngineError>(Client::new_with_client(config.meili_url.trim_end_matches('/'), None::<String>, http))
        };
        let asking = client(config.timeout())?;
        let changing = client(config.send_timeout())?;
        Ok(Some(Self { asking, changing, task_timeout: config.task_timeout() }))
    }

    /// Answers from an index, which does not know its position.
    pub async fn search(&self, index: &str, query: &SearchQuery) -> Result<SearchResponse, EngineError> {
        let index = self.asking.index(index);
        let words = parse_words(&query.words);
        let filter = engine_filter(query);
        let text = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
        let crop = [("text", Some(CROPPED))];
        let mut search = meilisearch_sdk::search::SearchQuery::new(&index);
        search.with_query(&text).with_filter(&filter).with_show_ranking_score(true);
        search.with_matching_strategy(MatchingStrategies::ALL);
        // It counts to the end only for those who ask for pages.
        search.with_hits_per_page(query.limit.clamp(1, MAX_HITS) as usize).with_page(query.page as usize + 1);
        search.with_attributes_to_retrieve(Selectors::Some(&RETRIEVED));
        search.with_attributes_to_crop(Selectors::Some(&crop)).with_crop_marker("");
        if words.is_empty() {
            search.with_sort(&["updated:desc"]);
        }
        if query.facets {
            search.with_facets(Selectors::Some(&FACETS));
        }
        let found: SearchResults<EngineHit> = index.execute_query(&search).await?;
        let counts =
            found.facet_distribution.unwrap_or_default().into_iter().map(|(facet, counts)| {
                (facet, counts.into_iter().map(|(value, count)| (value, count as u64)).collect())
            });
        Ok(SearchResponse {
            total: found.total_hits.unwrap_or(found.hits.len()) as u64,
            facets: query.facets.then(|| to_search_facets(counts.collect())),
            hits: found
                .hits
                .into_iter()
                .map(|hit| {
                    let text = hit.formatted_result.as_ref().and_then(|formatted| formatted.get("text")?.as_str());
                    let score = hit.ranking_score.filter(|_| !words.is_empty()).unwrap_or(0.0);
                    to_hit_row(hit.result, snippet(text.unwrap_or_default(), &words), score)
                })
                .collect(),
            backend: SearchBackend::Meilisearch.text(),
            position: 0,
        })
    }

    /// Makes an index as a document needs it, without documents. What had its name is gone then.
    pub async fn create_index(&self, index: &str) -> Result<(), EngineError> {
        self.delete_index(index).await?;
        self.await_task(self.changing.create_index(index, Some(KEY)).await?).await?;
        let typos = TypoToleranceSettings {
            enabled: Some(true),
            min_word_size_for_typos: Some(MinWordSizeForTypos { one_typo: Some(5), two_typos: Some(9) }),
            ..Default::default()
        };
        let settings = Settings::new()
            .with_searchable_attributes(SEARCHED)
            .with_filterable_attributes(FILTERED)
            .with_sortable_attributes(["updated"])
            .with_typo_tolerance(typos)
            .with_separation_tokens(SEPARATORS.map(str::to_owned))
            // What fits as well is newer first.
            .with_ranking_rules(["words", "typo", "proximity", "attribute", "sort", "exactness", "updated:desc"])
            .with_faceting(FacetingSettings { max_values_per_facet: MOST_VALUES, sort_facet_values_by: None })
            .with_pagination(PaginationSetting { max_total_hits: MOST_HITS });
        self.await_task(self.changing.index(index).set_settings(&settings).await?).await
    }

    /// Returns true if the index exists, made by [`SearchEngine::create_index`].
    pub async fn has_index(&self, index: &str) -> Result<bool, EngineError> {
        match self.changing.get_raw_index(index).await.map_err(EngineError::from) {
            Ok(found) => Ok(found.get("primaryKey").and_then(|key| key.as_str()) == Some(KEY)),
            Err(EngineError::Gone) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes an index, if it is there.
    pub async fn delete_index(&self, index: &str) -> Result<(), EngineError> {
        let removed = async { self.await_task(self.changing.delete_index(index).await?).await };
        match removed.await {
            Err(EngineError::Gone) => Ok(()),
            other => other,
        }
    }

    /// Has documents taken in; those of the same key are replaced.
    pub async fn put_documents(&self, index: &str, documents: &[SearchDocument]) -> Result<(), EngineError> {
        // Without naming the key, so that an index that was lost is not made again without its settings.
        self.await_task(self.changing.index(index).add_or_replace(documents, None).await?).await
    }

    /// A part of the documents of an index, in the order of their keys.
    pub async fn list_documents(
        &self,
        index: &str,
        offset: usize,
        limit: usize,
    ) -> Result<Vec<SearchDocument>, EngineError> {
        let index = self.changing.index(index);
        let mut query = DocumentsQuery::new(&index);
        query.with_offset(offset).with_limit(limit);
        Ok(query.execute::<SearchDocument>().await?.results)
    }

    /// Waits until a task has succeeded.
    async fn await_task(&self, task: TaskInfo) -> Result<(), EngineError> {
        let ended = async {
            let mut pause = FIRST_LOOK;
            loop {
                match self.changing.get_task(&task).await? {
                    Task::Succeeded { .. } => return Ok(()),
                    Task::Failed { content } => return Err(Error::Meilisearch(content.error).into()),
                    Task::Enqueued { .. } | Task::Processing { .. } => sleep(pause).await,
                }
                pause = (pause * 2).min(LAST_LOOK);
            }
        };
        let began = Instant::now();
        let late = |_| EngineError::Unavailable(format!("a task has not ended after {:?}", began.elapsed()));
        timeout(self.task_timeout, ended).await.map_err(late)?
    }
}

fn to_hit_row(found: EngineHit, snippet: String, score: f64) -> HitRow {
    let EngineHit { kind, id, agent, user, title, kind_of: r#type, status, updated, thread: thread_id } = found;
    let kind = kind.name().to_owned();
    let updated_at = Some(time::message(jiff::Timestamp::from_microsecond(updated).unwrap_or_default()));
    HitRow { kind, id, agent, user, title, snippet, r#type, status, updated_at, score, thread_id }
}
