//! Reading ahead: while one stretch of the log is written, the next is read and projected.

use std::time::Duration;

use kairo_core::{bus::Bus, record::RawMessage};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval_at},
};

use crate::{
    ProjectorConfig,
    batch::{ProjectionBatch, find_newer_epoch},
    partition_progress::PartitionProgress,
    reader::{BatchLimits, LogReader, ReaderError, to_reader_error},
};

/// Stretches that are ready to be written, beside the one that is made and the one that is written.
const AHEAD: usize = 1;

/// A stretch of the log.
#[derive(Debug)]
pub struct LogStretch {
    /// The last message of it, whosever it is.
    pub to: u64,
    /// Those of the partitions held, in order.
    pub messages: Vec<RawMessage>,
    /// The result of projecting them.
    pub batch: ProjectionBatch,
}

/// A reader at work; it ends when this is dropped.
pub struct LogPipeline {
    stretches: mpsc::Receiver<Result<LogStretch, ReaderError>>,
    _reading: JoinSet<()>,
}

impl LogPipeline {
    /// Begins where the progress does. `batch` is in messages.
    pub fn start(
        bus: &Bus,
        projector: &ProjectorConfig,
        progress: &PartitionProgress,
        start: u64,
        batch: usize,
    ) -> Self {
        let (sender, stretches) = mpsc::channel(AHEAD);
        let limits = BatchLimits {
            messages: batch,
            bytes: projector.batch_bytes,
            linger: Duration::from_millis(projector.linger_ms),
            end: progress.end_sequence(),
        };
        let reading = run_reader(bus.clone(), progress.clone(), start, limits, projector.session_timeout() / 3, sender);
        Self { stretches, _reading: JoinSet::from_iter([reading]) }
    }

    /// The next stretch. Nothing is lost if it is dropped.
    pub async fn next_stretch(&mut self) -> Result<LogStretch, ReaderError> {
        let ended = || Err(ReaderError::Nats("the reading ended".into()));
        self.stretches.recv().await.unwrap_or_else(ended)
    }
}

async fn run_reader(
    bus: Bus,
    progress: PartitionProgress,
    start: u64,
    limits: BatchLimits,
    beat: Duration,
    sender: mpsc::Sender<Result<LogStretch, ReaderError>>,
) {
    let end = limits.end;
    let reading = async {
        let Some(start) = read_archive(&bus, &progress, start, limits, &sender).await? else { return Ok(()) };
        let mut reader = LogReader::open(&bus, start, limits).await?;
        let mut beats = interval_at(Instant::now() + beat, beat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let (to, messages) = tokio::select! {
                read = reader.next_batch() => read?,
                _ = beats.tick() => match reader.check_delivery().await? {
                    Some(end) => (end, Vec::new()),
                    None => continue,
                },
            };
            let stretch = project_stretch(&bus, &progress, to, messages)?;
            if sender.send(Ok(stretch)).await.is_err() || end.is_some_and(|end| to >= end) {
                return Ok(());
            }
        }
    };
    match reading.await {
        Err(error) => _ = sender.send(Err(error)).await,
        // All was read; the channel stays open until somebody wants something else.
        Ok(()) => sender.closed().await,
    }
}

fn project_stretch(
    bus: &Bus,
    progress: &PartitionProgress,
    to: u64,
    messages: Vec<RawMessage>,
) -> Result<LogStretch, ReaderError> {
    // Whoever's partition it stands in, it is meant for all.
    if let Some(newer) = messages.iter().find_map(|message| find_newer_epoch(message, bus.limits.max_body_bytes)) {
        return Err(newer.into());
    }
    let partitions = bus.log_identity().ok().map(|log| log.partitions);
    let messages: Vec<RawMessage> = messages.into_iter().filter(|message| progress.should_apply(message)).collect();
    let batch = ProjectionBatch::from_messages(&messages, bus.limits.max_body_bytes, partitions);
    Ok(LogStretch { to, messages, batch })
}

/// Reads what stood before the log, where that was trimmed behind `start`; where to go on, or none where nothing more is wanted.
async fn read_archive(
    bus: &Bus,
    progress: &PartitionProgress,
    start: u64,
    limits: BatchLimits,
    sender: &mpsc::Sender<Result<LogStretch, ReaderError>>,
) -> Result<Option<u64>, ReaderError> {
    let beginning = bus.log_start().await.map_err(to_reader_error)?;
    let first = beginning.first_everywhere();
    let mut past = match first <= start + 1 {
        true => return Ok(Some(start)),
        false => bus.read_archive(start, &beginning).map_err(to_reader_error)?,
    };
    let is_wanted = |last: u64| limits.end.is_none_or(|end| last < end);
    let mut last = start;
    loop {
        let mut messages = Vec::new();
        let mut bytes = 0;
        while messages.len() < limits.messages && bytes < limits.bytes && is_wanted(last) {
            let Some(message) = past.next_message(bus).await.map_err(to_reader_error)? else { break };
            (bytes, last) = (bytes + message.payload.len(), message.sequence);
            messages.push(message);
        }
        let is_all = messages.is_empty();
        let to = if is_all { first - 1 } else { last };
        if sender.send(Ok(project_stretch(bus, progress, to, messages)?)).await.is_err() || !is_wanted(to) {
            return Ok(None);
        }
        if is_all {
            return Ok(Some(to));
        }
    }
}
