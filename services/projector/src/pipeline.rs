//! Reading ahead: while one stretch of the log is written, the next is read and projected.

use std::time::Duration;

use kairo_core::{bus::Bus, record::Raw};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval_at},
};

use crate::{
    ProjectorConfig,
    batch::{Batch, beyond},
    partition_progress::PartitionProgress,
    reader::{Limits, Reader, ReaderError, unread},
};

/// Stretches that are ready to be written, beside the one that is made and the one that is written.
const AHEAD: usize = 1;

/// A stretch of the log.
#[derive(Debug)]
pub struct Stretch {
    /// The last message of it, whosever it is.
    pub to: u64,
    /// Those of the partitions held, in order.
    pub messages: Vec<Raw>,
    /// The result of projecting them.
    pub batch: Batch,
}

/// A reader at work; it ends when this is dropped.
pub struct Pipeline {
    stretches: mpsc::Receiver<Result<Stretch, ReaderError>>,
    _reading: JoinSet<()>,
}

impl Pipeline {
    /// Begins where the progress does. `batch` is in messages.
    pub fn begin(
        bus: &Bus,
        projector: &ProjectorConfig,
        progress: &PartitionProgress,
        start: u64,
        batch: usize,
    ) -> Self {
        let (sender, stretches) = mpsc::channel(AHEAD);
        let limits = Limits {
            messages: batch,
            bytes: projector.batch_bytes,
            linger: Duration::from_millis(projector.linger_ms),
            end: progress.end(),
        };
        let reading = read(bus.clone(), progress.clone(), start, limits, projector.session_timeout() / 3, sender);
        Self { stretches, _reading: JoinSet::from_iter([reading]) }
    }

    /// The next stretch. Nothing is lost if it is dropped.
    pub async fn next(&mut self) -> Result<Stretch, ReaderError> {
        let ended = || Err(ReaderError::Nats("the reading ended".into()));
        self.stretches.recv().await.unwrap_or_else(ended)
    }
}

async fn read(
    bus: Bus,
    progress: PartitionProgress,
    start: u64,
    limits: Limits,
    beat: Duration,
    sender: mpsc::Sender<Result<Stretch, ReaderError>>,
) {
    let end = limits.end;
    let reading = async {
        let Some(start) = read_past(&bus, &progress, start, limits, &sender).await? else { return Ok(()) };
        let mut reader = Reader::open(&bus, start, limits).await?;
        let mut beats = interval_at(Instant::now() + beat, beat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let (to, messages) = tokio::select! {
                read = reader.next() => read?,
                _ = beats.tick() => match reader.check().await? {
                    Some(end) => (end, Vec::new()),
                    None => continue,
                },
            };
            let stretch = stretch(&bus, &progress, to, messages)?;
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

fn stretch(bus: &Bus, progress: &PartitionProgress, to: u64, messages: Vec<Raw>) -> Result<Stretch, ReaderError> {
    // Whoever's partition it stands in, it is meant for all.
    if let Some(newer) = messages.iter().find_map(|message| beyond(message, bus.limits.max_body_bytes)) {
        return Err(newer.into());
    }
    let partitions = bus.log().ok().map(|log| log.partitions);
    let messages: Vec<Raw> = messages.into_iter().filter(|message| progress.takes(message)).collect();
    let batch = Batch::of(&messages, bus.limits.max_body_bytes, partitions);
    Ok(Stretch { to, messages, batch })
}

/// Reads what stood before the log, where that was trimmed behind `start`; where to go on, or none where nothing more is wanted.
async fn read_past(
    bus: &Bus,
    progress: &PartitionProgress,
    start: u64,
    limits: Limits,
    sender: &mpsc::Sender<Result<Stretch, ReaderError>>,
) -> Result<Option<u64>, ReaderError> {
    let beginning = bus.beginning().await.map_err(unread)?;
    let first = beginning.everywhere();
    let mut past = match first <= start + 1 {
        true => return Ok(Some(start)),
        false => bus.past_of_all(start, &beginning).map_err(unread)?,
    };
    let is_wanted = |last: u64| limits.end.is_none_or(|end| last < end);
    let mut last = start;
    loop {
        let (mut messages, mut bytes) = (Vec::new(), 0);
        while messages.len() < limits.messages && bytes < limits.bytes && is_wanted(last) {
            let Some(message) = past.next(bus).await.map_err(unread)? else { break };
            (bytes, last) = (bytes + message.payload.len(), message.sequence);
            messages.push(message);
        }
        let is_all = messages.is_empty();
        let to = if is_all { first - 1 } else { last };
        if sender.send(Ok(stretch(bus, progress, to, messages)?)).await.is_err() || !is_wanted(to) {
            return Ok(None);
        }
        if is_all {
            return Ok(Some(to));
        }
    }
}
