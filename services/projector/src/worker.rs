//! A replica's part in one generation: the partitions it holds, and the log that it reads for them.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::pending,
    sync::Arc,
};

use kairo_core::{
    bus::{Bus, BusError, consume::backoff_delay},
    metrics::table::PROJECTED,
    record::RawMessage,
};
use kairo_proto::words::GenerationState;
use kairo_read_model::ReadError;
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};

use crate::{
    Config,
    batch::ProjectionBatch,
    connection::SessionError,
    health::ProjectionHealth,
    partition_progress::PartitionProgress,
    pipeline::{LogPipeline, LogStretch},
    rate::MovingRate,
    reader::ReaderError,
    rebalance,
    session::{GenerationStanding, PartitionSession},
    transition::BuildState,
};

/// The metric label for messages that a generation takes in before it is live.
const BUILDING: &str = "building";
/// The most attempts at a transaction that gave way to another one.
const ATTEMPTS: usize = 5;

/// The reason why a session ended. Another session recovers from any of them, sooner or later.
#[derive(Debug, thiserror::Error)]
pub enum ProjectorError {
    #[error(transparent)]
    Schema(#[from] ReadError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Reader(#[from] ReaderError),
    #[error(transparent)]
    Bus(#[from] BusError),
}

/// The generation that a worker writes to.
#[derive(Clone, Debug)]
pub struct GenerationTarget {
    pub generation: i64,
    pub schema: String,
}

pub struct GenerationWorker {
    pub bus: Bus,
    pub config: Arc<Config>,
    pub health: ProjectionHealth,
    /// Changes whenever something in the registry may have.
    pub woken: watch::Receiver<()>,
    pub target: GenerationTarget,
}

/// One session's life.
struct WorkerSession<'w> {
    worker: &'w GenerationWorker,
    session: PartitionSession,
    state: BuildState,
    progress: PartitionProgress,
    pipeline: Option<LogPipeline>,
    rate: MovingRate,
}

impl GenerationWorker {
    /// Follows the log for as long as the generation is there to be followed. May be dropped anywhere: what was not
    /// committed is done again by whoever holds the partitions next.
    pub async fn run(mut self) {
        let generation = self.target.generation;
        let mut failures = 0;
        loop {
            let mut progress = false;
            let Err(error) = self.run_session(&mut progress).await else { break };
            self.health.mark_interrupted(generation);
            failures = if progress { 1 } else { failures + 1 };
            tracing::warn!(%error, generation, failures, "the projection was interrupted, starting again");
            tokio::time::sleep(backoff_delay(&self.bus.limits, failures)).await;
        }
        tracing::info!(generation, "no longer followed");
    }

    async fn run_session(&mut self, progress: &mut bool) -> Result<(), ProjectorError> {
        let GenerationTarget { generation, schema } = &self.target;
        let session =
            PartitionSession::open(&self.config.postgres, &self.config.projector, *generation, schema).await?;
        let mut woken = self.woken.clone();
        let mut shift = WorkerSession {
            worker: self,
            session,
            state: BuildState::Filling,
            progress: PartitionProgress::default(),
            pipeline: None,
            rate: MovingRate::default(),
        };
        let mut beats = interval(self.config.projector.heartbeat_interval());
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                stretch = next_stretch(&mut shift.pipeline) => match shift.write_stretch(stretch?).await {
                    Err(ProjectorError::Session(SessionError::Moved)) => beats.reset_immediately(),
                    written => written?,
                },
                _ = beats.tick() => {
                    if !shift.heartbeat().await? {
                        return Ok(());
                    }
                    self.health.mark_working(*generation);
                    *progress = true;
                }
                Ok(()) = woken.changed() => beats.reset_immediately(),
            }
        }
    }
}

async fn next_stretch(pipeline: &mut Option<LogPipeline>) -> Result<LogStretch, ReaderError> {
    match pipeline {
        Some(pipeline) => pipeline.next_stretch().await,
        None => pending().await,
    }
}

impl WorkerSession<'_> {
    /// Holds what is its share, and reads for it. Returns false if the generation is no longer to be followed.
    async fn heartbeat(&mut self) -> Result<bool, ProjectorError> {
        let Some(mut standing) = self.session.read_standing().await? else { return Ok(false) };
        let Some(state) = standing.state.filter(|state| state.is_followed()) else { return Ok(false) };
        if self.rebalance(&standing).await? {
            // Whoever held a partition before may have written until it was released.
            let Some(fresh) = self.session.read_standing().await? else { return Ok(false) };
            standing = fresh;
        }
        // What is filled is neither asked nor compared before somebody waited for the disk.
        self.session.set_durable(state != BuildState::Filling).await?;
        self.state = state;
        let progress = self.progress_from(&standing);
        if progress != self.progress || (self.pipeline.is_none() && progress.start_sequence().is_some()) {
            self.progress = progress;
            self.pipeline = self.progress.start_sequence().map(|start| self.start_pipeline(start));
        }
        Ok(true)
    }

    fn start_pipeline(&self, start: u64) -> LogPipeline {
        let projector = &self.worker.config.projector;
        let partitions: Vec<u32> = self.progress.held.keys().copied().collect();
        tracing::info!(generation = self.worker.target.generation, sequence = start, ?partitions, "reading the log");
        let batch = if self.state == BuildState::Live { projector.batch } else { projector.rebuild_batch };
        LogPipeline::start(&self.worker.bus, projector, &self.progress, start, batch)
    }

    /// Adjusts the partitions held to the fair share. Returns true if they changed.
    async fn rebalance(&mut self, standing: &GenerationStanding) -> Result<bool, ProjectorError> {
        let partitions = u32::try_from(standing.positions.len()).unwrap_or(u32::MAX);
        let mut held: BTreeSet<u32> = self.progress.held.keys().copied().collect();
        let before = held.clone();
        let plan = rebalance::plan_share(partitions, standing.members, &held, &standing.taken);
        for partition in plan.give {
            self.session.release_partition(partition).await?;
            held.remove(&partition);
        }
        let mut wanted = plan.wanted;
        for partition in plan.candidates {
            if wanted > 0 && self.session.hold_partition(partition).await? {
                held.insert(partition);
                wanted -= 1;
            }
        }
        let changed = held != before;
        if changed {
            // Nothing that was read for others is written from here on.
            self.pipeline = None;
            self.progress = PartitionProgress {
                partitions,
                held: held.into_iter().map(|held| (held, Default::default())).collect(),
            };
        }
        Ok(changed)
    }

    fn progress_from(&self, standing: &GenerationStanding) -> PartitionProgress {
        let held = self.progress.held.keys();
        let held: BTreeMap<_, _> =
            held.filter_map(|partition| standing.positions.get_key_value(partition)).map(|(a, b)| (*a, *b)).collect();
        PartitionProgress { partitions: u32::try_from(standing.positions.len()).unwrap_or(u32::MAX), held }
    }

    /// Writes a stretch of the log as a whole, or one by one if Postgres refuses something in it.
    async fn write_stretch(&mut self, stretch: LogStretch) -> Result<(), ProjectorError> {
        let written = self.commit(&stretch.batch, stretch.to, stretch.messages.len()).await;
        let refused = match written {
            Err(ProjectorError::Session(SessionError::Refused(error))) => error,
            Err(error) => {
                self.pipeline = None;
                return Err(error);
            }
            Ok(()) => return self.notify_arrival().await,
        };
        tracing::warn!(%refused, messages = stretch.messages.len(), "looking for what postgres refuses");
        let alone = self.write_one_by_one(&stretch).await;
        if alone.is_err() {
            self.pipeline = None;
        }
        alone?;
        self.notify_arrival().await
    }

    async fn write_one_by_one(&mut self, stretch: &LogStretch) -> Result<(), ProjectorError> {
        for message in &stretch.messages {
            let bus = &self.worker.bus;
            let partitions = bus.log_identity().ok().map(|log| log.partitions);
            let alone =
                ProjectionBatch::from_messages(std::slice::from_ref(message), bus.limits.max_body_bytes, partitions);
            match self.commit(&alone, message.sequence, 1).await {
                Err(ProjectorError::Session(refused @ SessionError::Refused(_))) => {
                    self.write_dead_letter(message, &refused.to_string()).await?;
                    self.commit(&ProjectionBatch::default(), message.sequence, 1).await?;
                }
                written => written?,
            }
        }
        // Behind the last one of them may be messages of others.
        self.commit(&ProjectionBatch::default(), stretch.to, 0).await
    }

    async fn commit(&mut self, batch: &ProjectionBatch, to: u64, messages: usize) -> Result<(), ProjectorError> {
        for (message, reason) in &batch.set_aside {
            self.write_dead_letter(message, reason).await?;
        }
        let moves = self.progress.moves(to);
        if moves.iter().all(|moved| moved.from == moved.to) {
            return Ok(());
        }
        let rate = self.rate.record_messages(messages) / moves.len() as f64;
        let mut attempt = 1;
        while let Err(error) = self.session.commit(&batch.changes, &moves, rate).await {
            if !matches!(error, SessionError::Contended(_)) || attempt >= ATTEMPTS {
                return Err(error.into());
            }
            tracing::debug!(%error, attempt, "once more");
            attempt += 1;
        }
        self.progress.advance(to);
        let state = if self.state == BuildState::Live { GenerationState::Live.known_word() } else { BUILDING };
        self.worker.bus.metrics.count(&PROJECTED, messages as f64, &[state]);
        tracing::debug!(
            generation = self.worker.target.generation,
            sequence = to,
            events = batch.changes.events.len(),
            skipped = batch.skipped,
            set_aside = batch.set_aside.len(),
            "projected"
        );
        Ok(())
    }

    /// Writes a dead letter, before the position passes the message; on the way through a rebuild it is there already.
    async fn write_dead_letter(&mut self, message: &RawMessage, reason: &str) -> Result<(), ProjectorError> {
        if self.session.is_set_aside(message).await? {
            return Ok(());
        }
        let bus = &self.worker.bus;
        bus.write_dead_letter(bus.service.name(), message, reason).await?;
        Ok(self.session.record_set_aside(message, reason).await?)
    }

    /// Once the partition has arrived, tells the builder of the generation, which waits for this.
    async fn notify_arrival(&mut self) -> Result<(), ProjectorError> {
        if self.progress.has_arrived() {
            self.pipeline = None;
            self.session.notify_arrival().await?;
        }
        Ok(())
    }
}
