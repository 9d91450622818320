//! The consume loop every service is driven by: deliver, handle, settle.
//!
//! A message that cannot be read becomes a dead letter; one that takes a newer reader is left to a newer replica. What
//! a handler returns decides the rest: done, later, or one of three kinds of failure. While a handler works, the
//! server is told so every third of the ack wait.

mod processors;

use std::{future::Future, sync::Arc, time::Duration};

use futures::FutureExt;
use jiff::Timestamp;
use tokio::{
    sync::Semaphore,
    time::{Instant, MissedTickBehavior},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument;

use processors::raw_processing_span;
pub(super) use processors::{DeliveryProcessor, ProcessingOutcome, RawProcessor, RecordProcessor};

use super::{
    Bus, BusConfig, BusError,
    failure_counts::FailureCounts,
    message_sealing::OpeningPull,
    port::{ConsumerPull, PulledMessage, Settlement, StoreError},
};
use crate::{
    metrics::table::PROCESSING,
    record::{RawMessage, Record},
    subjects::{Consumer, EVENTS_STREAM},
    telemetry,
};

/// A record delivered to a handler.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub record: Record,
    /// 1 the first time. Polite returns count, too: this is how often it was delivered, not how often it failed.
    pub attempt: u64,
}

impl Delivery {
    /// Returns true if the message was delivered before, to this replica or another.
    pub fn is_redelivered(&self) -> bool {
        self.attempt > 1
    }
}

/// A message delivered to a handler that reads it itself.
#[derive(Clone, Debug)]
pub struct RawDelivery {
    pub raw: RawMessage,
    /// As [`Delivery::attempt`].
    pub attempt: u64,
}

/// The settlement of a delivery that was handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    Done,
    /// Deliver it again after this time: another replica is working on it, or has room for it. This is no failure.
    Later(Duration),
}

impl DeliveryOutcome {
    /// Combines two settlements of one delivery: the later one wins.
    pub fn combine(self, other: Self) -> Self {
        match (self, other) {
            (Self::Later(one), Self::Later(other)) => Self::Later(one.max(other)),
            (Self::Later(delay), Self::Done) | (Self::Done, Self::Later(delay)) => Self::Later(delay),
            (Self::Done, Self::Done) => Self::Done,
        }
    }
}

/// The failure of a handler.
#[derive(Debug, thiserror::Error)]
pub enum HandlerFailure {
    /// May pass: tried again with growing delays.
    #[error("{0}")]
    Transient(String),
    /// Somebody else was faster: tried again at once, from what is now true.
    #[error("{0}")]
    Conflict(String),
    /// Will never pass: set aside with the reason.
    #[error("{0}")]
    Permanent(String),
}

impl From<BusError> for HandlerFailure {
    fn from(error: BusError) -> Self {
        match error {
            BusError::Conflict { .. } => HandlerFailure::Conflict(error.to_string()),
            BusError::Unavailable { .. } => HandlerFailure::Transient(error.to_string()),
            BusError::TooLarge { .. } | BusError::Refused(_) => HandlerFailure::Permanent(error.to_string()),
        }
    }
}

/// A service's answer to a delivery. Deliveries come concurrently, more than once and in any order.
pub trait Handler: Send + Sync + 'static {
    fn handle(&self, delivery: &Delivery) -> impl Future<Output = Result<DeliveryOutcome, HandlerFailure>> + Send;

    /// Deliveries that are in hand at once. A handler that has some wait for others, and so would keep what comes
    /// behind them from being read, may take more and keep to `bus.concurrency` itself.
    fn max_in_flight(&self, limits: &BusConfig) -> usize {
        limits.concurrency
    }
}

/// An answer to messages that are no events of Kairo's.
pub trait RawHandler: Send + Sync + 'static {
    fn handle(&self, delivery: &RawDelivery) -> impl Future<Output = Result<DeliveryOutcome, HandlerFailure>> + Send;
}

/// Consumes until `shutdown`, then finishes what was begun and hands back the rest.
pub async fn consume<H: Handler>(bus: &Bus, consumer: Consumer, handler: Arc<H>, shutdown: CancellationToken) {
    let in_hand = handler.max_in_flight(&bus.limits);
    run_consume_loop(bus, consumer, Arc::new(RecordProcessor(handler)), in_hand, shutdown).await;
}

/// Like [`consume`], for messages that are no events of Kairo's.
pub async fn consume_raw<H: RawHandler>(bus: &Bus, consumer: Consumer, handler: Arc<H>, shutdown: CancellationToken) {
    run_consume_loop(bus, consumer, Arc::new(RawProcessor(handler)), bus.limits.concurrency, shutdown).await;
}

async fn run_consume_loop<W: DeliveryProcessor>(
    bus: &Bus,
    consumer: Consumer,
    worker: Arc<W>,
    in_hand: usize,
    shutdown: CancellationToken,
) {
    let consuming = ConsumeLoop {
        bus: bus.clone(),
        consumer,
        worker,
        failures: Arc::new(FailureCounts::new(usize::try_from(bus.limits.max_ack_pending).unwrap_or(usize::MAX))),
        running: TaskTracker::new(),
        permits: Arc::new(Semaphore::new(in_hand)),
        shutdown,
        halt: CancellationToken::new(),
    };
    let mut failures = 0;
    while !consuming.shutdown.is_cancelled() {
        match consuming.open_pull().await {
            Ok(mut pull) => {
                bus.lacking.mark_found(consumer);
                failures = if consuming.deliver_messages(&mut *pull).await { 0 } else { failures + 1 };
                nak_prefetched(bus, &mut *pull).await;
            }
            Err(error) => {
                tracing::warn!(consumer = consumer.name(), %error, "cannot pull, trying again");
                if let StoreError::Unprovisioned(_) = error {
                    bus.lacking.mark_missing(consumer, error.to_string());
                }
                failures += 1;
            }
        }
        if failures > 0 {
            let pause = tokio::time::sleep(backoff_delay(&bus.limits, failures));
            consuming.shutdown.run_until_cancelled(pause).await;
        }
    }
    consuming.drain().await;
}

/// A consume loop and what it has in hand.
struct ConsumeLoop<W> {
    bus: Bus,
    consumer: Consumer,
    worker: Arc<W>,
    failures: Arc<FailureCounts>,
    running: TaskTracker,
    permits: Arc<Semaphore>,
    /// Take nothing new.
    shutdown: CancellationToken,
    /// Let go of what is in hand.
    halt: CancellationToken,
}

impl<W: DeliveryProcessor> ConsumeLoop<W> {
    async fn open_pull(&self) -> Result<Box<dyn ConsumerPull>, StoreError> {
        let pull = self.bus.port.open_pull(self.consumer).await?;
        Ok(Box::new(OpeningPull::new(pull, self.bus.clone())))
    }

    /// Hands messages to the handler until shutdown (true) or until the pull breaks (false).
    async fn deliver_messages(&self, pull: &mut dyn ConsumerPull) -> bool {
        loop {
            let permit = tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return true,
                permit = self.permits.clone().acquire_owned() => permit,
            };
            let next = tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return true,
                next = pull.next_delivery() => next,
            };
            match next {
                Some(Ok(delivered)) => {
                    let (bus, worker, halt) = (self.bus.clone(), self.worker.clone(), self.halt.clone());
                    let (consumer, failures) = (self.consumer, self.failures.clone());
                    self.bus.spawn(self.running.track_future(async move {
                        process_and_settle(&bus, consumer, &*worker, &failures, &halt, delivered).await;
                        drop(permit);
                    }));
                }
                Some(Err(error)) => {
                    tracing::warn!(consumer = self.consumer.name(), %error, "pull broke off, starting another");
                    return false;
                }
                None => return false,
            }
        }
    }

    /// Finishes what is in hand, and gives it to other replicas when that takes too long.
    async fn drain(&self) {
        self.running.close();
        let drain = Duration::from_millis(self.bus.limits.drain_ms);
        if tokio::time::timeout(drain, self.running.wait()).await.is_err() {
            tracing::warn!(
                consumer = self.consumer.name(),
                left = self.running.len(),
                "handing back what is unfinished"
            );
            self.halt.cancel();
            self.running.wait().await;
        }
    }
}

/// Gives messages that were pulled but not begun to other replicas at once.
async fn nak_prefetched(bus: &Bus, pull: &mut dyn ConsumerPull) {
    while let Some(Some(Ok(delivered))) = pull.next_delivery().now_or_never() {
        let _ = bus.port.settle(&delivered.receipt, Settlement::Again(Duration::ZERO)).await;
    }
}

async fn process_and_settle<W: DeliveryProcessor>(
    bus: &Bus,
    consumer: Consumer,
    worker: &W,
    failures: &FailureCounts,
    halt: &CancellationToken,
    PulledMessage { raw, attempt, receipt }: PulledMessage,
) {
    let delivery = RawDelivery { raw, attempt };
    let began = Instant::now();
    let work = async {
        // What stands beside the log has no partition.
        match Some(&delivery.raw)
            .filter(|_| consumer.stream() == EVENTS_STREAM)
            .and_then(|raw| bus.misplacement_of(raw))
        {
            Some(misplaced) => ProcessingOutcome::Unreadable(misplaced.to_string()),
            None => worker.process_delivery(bus, consumer, &delivery).await,
        }
    };
    let outcome = tokio::select! {
        biased;
        outcome = with_progress_acks(bus, &receipt, delivery.raw.stored, work) => outcome,
        () = halt.cancelled() => ProcessingOutcome::Handled(Ok(DeliveryOutcome::Later(Duration::ZERO))),
    };
    let raw = delivery.raw;
    let error = outcome.error_type();
    bus.metrics.record_duration(&PROCESSING, began.elapsed(), &["nats", "process", consumer.name(), error]);
    let judging = async {
        match outcome {
            ProcessingOutcome::Unreadable(reason) => {
                settle_dead_letter(bus, bus.write_unreadable(consumer.name(), &raw, &reason).await)
            }
            ProcessingOutcome::Handled(outcome) => choose_settlement(bus, consumer, failures, &raw, outcome).await,
        }
    };
    // What the log says of a failure belongs to the message's trace.
    let settlement = match error.is_empty() {
        true => judging.await,
        false => judging.instrument(raw_processing_span(consumer, &raw)).await,
    };
    if matches!(settlement, Settlement::Done | Settlement::GivenUp) {
        failures.forget(raw.sequence);
    }
    if let Err(error) = bus.port.settle(&receipt, settlement).await {
        tracing::debug!(%error, "could not settle a delivery; it will come again");
    }
}

/// Chooses the settlement of a handled delivery, and writes a dead letter if it failed for good.
async fn choose_settlement(
    bus: &Bus,
    consumer: Consumer,
    failures: &FailureCounts,
    raw: &RawMessage,
    outcome: Result<DeliveryOutcome, HandlerFailure>,
) -> Settlement {
    let reason = match outcome {
        Ok(DeliveryOutcome::Done) => return Settlement::Done,
        Ok(DeliveryOutcome::Later(delay)) => return Settlement::Again(delay),
        Err(HandlerFailure::Permanent(reason)) => {
            return settle_dead_letter(bus, bus.write_dead_letter(consumer.name(), raw, &reason).await);
        }
        Err(HandlerFailure::Transient(reason) | HandlerFailure::Conflict(reason)) => reason,
    };
    let failed = failures.count_failure(raw.sequence);
    if failed >= bus.limits.max_attempts {
        let reason = format!("gave up after {failed} attempts: {reason}");
        return settle_dead_letter(bus, bus.write_dead_letter(consumer.name(), raw, &reason).await);
    }
    tracing::warn!(consumer = consumer.name(), sequence = raw.sequence, failed, reason, "will try again");
    Settlement::Again(backoff_delay(&bus.limits, failed))
}

/// The span of dealing with a message, a child of whatever published it, so that one message is one trace.
pub fn processing_span(consumer: Consumer, record: &Record) -> tracing::Span {
    let span = tracing::info_span!(
        "process",
        otel.name = consumer.name(),
        otel.kind = "consumer",
        messaging.system = "nats",
        messaging.destination.name = record.subject,
        messaging.message.id = %record.envelope.id,
        kairo.sequence = as_signed(record.sequence),
    );
    if let Some(traceparent) = &record.envelope.traceparent {
        telemetry::set_parent(&span, traceparent);
    }
    span
}

/// Unsigned numbers reach OpenTelemetry as texts.
fn as_signed(sequence: u64) -> i64 {
    i64::try_from(sequence).unwrap_or(i64::MAX)
}

/// Runs `work`, telling the server every third of the ack wait that it is still going on; and first of all where the
/// delivery may have waited here for so long, behind others or while this replica was frozen.
async fn with_progress_acks<T>(bus: &Bus, receipt: &str, stored: Timestamp, work: impl Future<Output = T>) -> T {
    let every = Duration::from_millis((bus.limits.ack_wait_ms / 3).max(50));
    if bus.now().duration_since(stored).unsigned_abs() >= every {
        let _ = bus.port.settle(receipt, Settlement::InProgress).await;
    }
    let mut beat = tokio::time::interval_at(Instant::now() + every, every);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            result = &mut work => return result,
            _ = beat.tick() => {
                let _ = bus.port.settle(receipt, Settlement::InProgress).await;
            }
        }
    }
}

/// The message is given up only once its dead letter is written.
fn settle_dead_letter(bus: &Bus, letter: Result<(), BusError>) -> Settlement {
    match letter {
        Ok(()) => Settlement::GivenUp,
        Err(error) => {
            tracing::warn!(%error, "dead letter not written, the message will come again");
            Settlement::Again(backoff_delay(&bus.limits, 1))
        }
    }
}

/// The delay before attempt number `attempt` + 1.
pub fn backoff_delay(limits: &BusConfig, attempt: u64) -> Duration {
    let doublings = u32::try_from(attempt.saturating_sub(1)).unwrap_or(u32::MAX).min(30);
    let delay = limits.retry_first_ms.saturating_mul(1 << doublings);
    Duration::from_millis(delay.min(limits.retry_longest_ms))
}
