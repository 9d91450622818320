//! Makes generations of the documents and keeps the live one up to date.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use kairo_proto::words::GenerationState;
use kairo_read_model::{
    GENERATIONS_CHANNEL, Generation, POSITION_CHANNEL, READ_MODEL, ReadModel, SEARCH,
    search::{
        DocumentKind, SearchConfig,
        document::SearchDocument,
        meili::{EngineError, SearchEngine},
    },
};
use sqlx::postgres::PgListener;
use tokio::time::timeout;

use super::{SearchIndexError, document_groups, registry::SearchRegistry};

/// Silence after which things are looked at without having been told of.
const SILENCE: Duration = Duration::from_secs(5);

pub struct IndexKeeper {
    model: ReadModel,
    engine: SearchEngine,
    registry: SearchRegistry,
    config: SearchConfig,
    /// Generations to which something was sent, and the positions behind which that was. Whoever was interrupted, as
    /// by being frozen, cannot know whether it came too late, over something newer: then it is sent again from there.
    sent: Mutex<BTreeMap<i64, i64>>,
}

impl IndexKeeper {
    pub fn new(model: ReadModel, engine: SearchEngine, config: &SearchConfig) -> Self {
        let registry = SearchRegistry { pool: model.pool().clone() };
        Self { model, engine, registry, config: config.clone(), sent: Mutex::default() }
    }

    /// Works until something goes wrong. `progress` says whether anything was done before.
    pub async fn keep_current(&self, progress: &mut bool) -> Result<Infallible, SearchIndexError> {
        let mut listener = PgListener::connect_with(&self.registry.pool).await?;
        // What is told while nobody listens is lost, so a lost connection begins it all again.
        listener.eager_reconnect(false);
        listener.listen_all([POSITION_CHANNEL, GENERATIONS_CHANNEL]).await?;
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (generation, from) in sent {
            self.registry.move_back(generation, from).await?;
            self.forget_sent(generation);
        }
        loop {
            self.run_step(progress).await?;
            *progress = true;
            if let Ok(told) = timeout(SILENCE, listener.try_recv()).await {
                told?.ok_or(sqlx::Error::WorkerCrashed)?;
            }
            while listener.next_buffered().is_some() {}
        }
    }

    /// Does what there is to do.
    async fn run_step(&self, progress: &mut bool) -> Result<(), SearchIndexError> {
        let all = self.model.list_generations().await?;
        let is_live =
            |one: &&Generation| one.state == GenerationState::Live.known_word() && one.version == READ_MODEL.version;
        let tables = all.iter().find(|one| one.projection == READ_MODEL.name && is_live(one));
        let Some(source) = tables.map(|tables| tables.generation) else { return Ok(()) };
        let all: Vec<Generation> = all.into_iter().filter(|one| one.projection == SEARCH.name).collect();
        for gone in all.iter().filter(|one| one.state == GenerationState::Dropping.known_word()) {
            self.engine.delete_index(&self.config.index_name(gone.generation)).await?;
            self.registry.remove_generation(gone.generation).await?;
        }
        let of_state = |states: &[&str]| {
            all.iter().find(|one| one.version == SEARCH.version && states.contains(&one.state.as_str()))
        };
        let mut live = of_state(&[GenerationState::Live.known_word()]);
        if let Some(found) = live
            && !self.engine.has_index(&self.config.index_name(found.generation)).await?
        {
            tracing::warn!(generation = found.generation, "the search index is lost and is made again");
            live = None;
        }
        if let Some(begun) = of_state(&[GenerationState::Asked.known_word(), GenerationState::Filling.known_word()]) {
            return self.fill_generation(begun.generation, source, live, progress).await;
        }
        match live {
            Some(live) if live.source == Some(source) => self.follow_source(live.generation, source).await,
            // That is told of, too, and then it is made.
            _ => self.registry.request_generation().await,
        }
    }

    /// Makes a generation and has it take the place of the live one, which is kept up to date meanwhile.
    async fn fill_generation(
        &self,
        generation: i64,
        source: i64,
        live: Option<&Generation>,
        progress: &mut bool,
    ) -> Result<(), SearchIndexError> {
        let target = i64::try_from(self.model.position().await?).unwrap_or(i64::MAX);
        self.registry.begin_filling(generation, source, target).await?;
        self.engine.create_index(&self.config.index_name(generation)).await?;
        tracing::info!(generation, source, "a search index is being made");
        *progress = true;
        // The second time for what came meanwhile, so that the swap leads no step back, or next to none.
        for _ in 0..2 {
            self.send_changes(generation, source, live.map(|live| live.generation)).await?;
        }
        self.registry.swap_in(generation).await?;
        tracing::info!(generation, source, "the search index answers");
        Ok(())
    }

    async fn follow_source(&self, generation: i64, source: i64) -> Result<(), SearchIndexError> {
        self.send_changes(generation, source, None).await
    }

    /// Sends all that was changed since the position, and moves that.
    async fn send_changes(&self, generation: i64, source: i64, meanwhile: Option<i64>) -> Result<(), SearchIndexError> {
        let from = self.registry.position(generation).await?;
        let first = self.model.snapshot().await?;
        let to = i64::try_from(first.position()).unwrap_or(i64::MAX);
        if first.generation_number().await? != source {
            return Err(SearchIndexError::Overtaken);
        }
        drop(first);
        if to <= from {
            return Ok(());
        }
        for kind in DocumentKind::ALL {
            // To the end and not only up to there: a row that is changed meanwhile is then found behind it, and it may
            // hold something from before that nobody has been given.
            let mut after = from;
            loop {
                let snapshot = self.model.snapshot().await?;
                if snapshot.generation_number().await? != source {
                    return Err(SearchIndexError::Overtaken);
                }
                let page = snapshot.changed_documents(kind, after, self.config.batch).await?;
                drop(snapshot);
                let Some(last) = page.last() else { break };
                after = last.sequence;
                let is_full = u32::try_from(page.len()).is_ok_and(|rows| rows >= self.config.batch);
                self.send_documents(generation, from, page).await?;
                if let Some(live) = meanwhile {
                    Box::pin(self.send_changes(live, source, None)).await?;
                }
                if !is_full {
                    break;
                }
            }
        }
        self.registry.move_position(generation, from, to).await?;
        self.forget_sent(generation);
        Ok(())
    }

    /// Has documents taken in; those that are refused are set aside.
    async fn send_documents(
        &self,
        generation: i64,
        from: i64,
        documents: Vec<SearchDocument>,
    ) -> Result<(), SearchIndexError> {
        let index = self.config.index_name(generation);
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).entry(generation).or_insert(from);
        let mut waiting = document_groups::group_by_size(documents, self.config.batch_bytes);
        waiting.reverse();
        while let Some(group) = waiting.pop() {
            let reason = match self.engine.put_documents(&index, &group).await {
                Ok(()) => {
                    self.registry.clear_refusals(generation, &group).await?;
                    continue;
                }
                // An index that is lost refuses everything.
                Err(EngineError::Refused(_)) if !self.engine.has_index(&index).await? => {
                    return Err(EngineError::Gone.into());
                }
                Err(EngineError::Refused(reason)) => reason,
                Err(error) => return Err(error.into()),
            };
            match document_groups::split_in_half(group) {
                Ok([one, other]) => waiting.extend([other, one]),
                Err(refused) => {
                    for alone in refused {
                        let kind = alone.kind.name();
                        let agent = &alone.agent;
                        let id = &alone.id;
                        tracing::warn!(
                            kind,
                            agent,
                            id,
                            reason,
                            "the search engine refused a document, which was set aside"
                        );
                        self.registry.record_refusal(generation, &alone, &reason).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// All that was sent to it is told of.
    fn forget_sent(&self, generation: i64) {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).remove(&generation);
    }
}
