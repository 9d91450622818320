//! The consume loop every service is driven by: deliver, handle, settle.
//!
//! A message that cannot be read becomes a dead letter. What a handler returns decides the rest: done, later, or one
//! of three kinds of failure. While a handler works, the server is told so every third of the ack wait.

use std::{future::Future, sync::Arc, time::Duration};

use async_nats::jetstream::{AckKind, Message, consumer::pull};
use futures::{FutureExt, StreamExt};
use tokio::{sync::Semaphore, time::MissedTickBehavior};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument;

use super::{Bus, BusConfig, BusError};
use crate::{
    record::{Raw, Record},
    subjects::Consumer,
    telemetry,
};

/// A record delivered to a handler.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub record: Record,
    /// 1 the first time.
    pub attempt: u64,
}

impl Delivery {
    /// Whether somebody, perhaps this replica, was given it before.
    pub fn redelivered(&self) -> bool {
        self.attempt > 1
    }
}

/// A message delivered to a handler that reads it itself.
#[derive(Clone, Debug)]
pub struct RawDelivery {
    pub raw: Raw,
    /// 1 the first time.
    pub attempt: u64,
}

/// What to do with a delivery that was handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    Done,
    /// Deliver it again after this time: somebody else is at it.
    Later(Duration),
}

/// How handling failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
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

impl From<BusError> for Failure {
    fn from(error: BusError) -> Self {
        match error {
            BusError::Conflict { .. } => Failure::Conflict(error.to_string()),
            BusError::Unavailable { .. } => Failure::Transient(error.to_string()),
            BusError::TooLarge { .. } => Failure::Permanent(error.to_string()),
        }
    }
}

/// A service's answer to a delivery. Deliveries come concurrently, more than once and in any order.
pub trait Handler: Send + Sync + 'static {
    fn handle(&self, delivery: &Delivery) -> impl Future<Output = Result<Settled, Failure>> + Send;
}

/// An answer to messages that are no events of Kairo's.
pub trait RawHandler: Send + Sync + 'static {
    fn handle(&self, delivery: &RawDelivery) -> impl Future<Output = Result<Settled, Failure>> + Send;
}

/// Conflicts in a row before a delivery is treated as a failure that may pass.
const CONFLICTS: u32 = 8;
/// How long a pull stays open at the server, and its heartbeat.
const PULL_EXPIRES: Duration = Duration::from_secs(30);
const PULL_HEARTBEAT: Duration = Duration::from_secs(5);

/// Consumes until `shutdown`, then finishes what was begun and hands back the rest.
pub async fn consume<H: Handler>(bus: &Bus, consumer: Consumer, handler: Arc<H>, shutdown: CancellationToken) {
    drive(bus, consumer, Arc::new(Records(handler)), shutdown).await;
}

/// Like [`consume`], for messages that are no events of Kairo's.
pub async fn consume_raw<H: RawHandler>(bus: &Bus, consumer: Consumer, handler: Arc<H>, shutdown: CancellationToken) {
    drive(bus, consumer, Arc::new(Raws(handler)), shutdown).await;
}

/// What came of a delivery.
enum Outcome {
    Unreadable(String),
    Handled(Result<Settled, Failure>),
}

/// Reads a message and has it handled.
trait Work: Send + Sync + 'static {
    fn work(&self, bus: &Bus, consumer: Consumer, delivery: &RawDelivery) -> impl Future<Output = Outcome> + Send;
}

struct Records<H>(Arc<H>);

impl<H: Handler> Work for Records<H> {
    async fn work(&self, bus: &Bus, consumer: Consumer, delivery: &RawDelivery) -> Outcome {
        let record = match delivery.raw.read(bus.limits.max_body_bytes) {
            Ok(record) => record,
            Err(unreadable) => return Outcome::Unreadable(unreadable.to_string()),
        };
        let delivery = Delivery { record, attempt: delivery.attempt };
        let handled = handle(bus, || self.0.handle(&delivery)).instrument(span(consumer, &delivery.record));
        Outcome::Handled(handled.await)
    }
}

struct Raws<H>(Arc<H>);

impl<H: RawHandler> Work for Raws<H> {
    async fn work(&self, bus: &Bus, consumer: Consumer, delivery: &RawDelivery) -> Outcome {
        let handled = handle(bus, || self.0.handle(delivery)).instrument(raw_span(consumer, &delivery.raw));
        Outcome::Handled(handled.await)
    }
}

async fn drive<W: Work>(bus: &Bus, consumer: Consumer, worker: Arc<W>, shutdown: CancellationToken) {
    let consuming = Consuming {
        bus: bus.clone(),
        consumer,
        worker,
        running: TaskTracker::new(),
        permits: Arc::new(Semaphore::new(bus.limits.concurrency)),
        shutdown,
        halt: CancellationToken::new(),
    };
    let mut failures = 0;
    while !consuming.shutdown.is_cancelled() {
        match consuming.pull().await {
            Ok(mut messages) => {
                failures = if consuming.deliver(&mut messages).await { 0 } else { failures + 1 };
                hand_back(&mut messages).await;
            }
            Err(error) => {
                tracing::warn!(consumer = consumer.name(), %error, "cannot pull, trying again");
                failures += 1;
            }
        }
        if failures > 0 {
            let delay = backoff(&bus.limits, failures);
            tokio::select! { () = tokio::time::sleep(delay) => {}, () = consuming.shutdown.cancelled() => {} }
        }
    }
    consuming.drain().await;
}

/// A consume loop and what it has in hand.
struct Consuming<W> {
    bus: Bus,
    consumer: Consumer,
    worker: Arc<W>,
    running: TaskTracker,
    permits: Arc<Semaphore>,
    /// Take nothing new.
    shutdown: CancellationToken,
    /// Let go of what is in hand.
    halt: CancellationToken,
}

impl<W: Work> Consuming<W> {
    async fn pull(&self) -> Result<pull::Stream, async_nats::Error> {
        let durable = self.bus.provision_consumer(self.consumer).await?;
        let messages = durable
            .stream()
            .max_messages_per_batch(self.bus.limits.pull_batch)
            .expires(PULL_EXPIRES)
            .heartbeat(PULL_HEARTBEAT)
            .messages()
            .await?;
        Ok(messages)
    }

    /// Hands messages to the handler until shutdown (true) or until the pull breaks (false).
    async fn deliver(&self, messages: &mut pull::Stream) -> bool {
        loop {
            let permit = tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return true,
                permit = self.permits.clone().acquire_owned() => permit,
            };
            let next = tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return true,
                next = messages.next() => next,
            };
            match next {
                Some(Ok(message)) => {
                    let (bus, worker, halt) = (self.bus.clone(), self.worker.clone(), self.halt.clone());
                    let consumer = self.consumer;
                    self.running.spawn(async move {
                        settle(&bus, consumer, &*worker, &halt, message).await;
                        drop(permit);
                    });
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
async fn hand_back(messages: &mut pull::Stream) {
    while let Some(Some(Ok(message))) = messages.next().now_or_never() {
        let _ = message.ack_with(AckKind::Nak(None)).await;
    }
}

async fn settle<W: Work>(bus: &Bus, consumer: Consumer, worker: &W, halt: &CancellationToken, mut message: Message) {
    let delivery = match Raw::delivered(&mut message) {
        Ok((raw, info)) => RawDelivery { raw, attempt: u64::try_from(info.delivered).unwrap_or(1) },
        Err(error) => {
            tracing::error!(subject = %message.subject, %error, "not a delivery of jetstream");
            return;
        }
    };
    let outcome = tokio::select! {
        biased;
        outcome = alive(bus, &message, worker.work(bus, consumer, &delivery)) => outcome,
        () = halt.cancelled() => Outcome::Handled(Ok(Settled::Later(Duration::ZERO))),
    };
    let RawDelivery { raw, attempt } = delivery;
    let kind = match outcome {
        Outcome::Unreadable(reason) => set_aside(bus, bus.unreadable(consumer.name(), &raw, &reason).await),
        Outcome::Handled(outcome) => judge(bus, consumer, &raw, attempt, outcome).await,
    };
    if let Err(error) = message.ack_with(kind).await {
        tracing::debug!(%error, "could not settle a delivery; it will come again");
    }
}

/// How the server is told what came of a delivery.
async fn judge(bus: &Bus, consumer: Consumer, raw: &Raw, attempt: u64, outcome: Result<Settled, Failure>) -> AckKind {
    match outcome {
        Ok(Settled::Done) => AckKind::Ack,
        Ok(Settled::Later(delay)) => AckKind::Nak(Some(delay)),
        Err(Failure::Permanent(reason)) => set_aside(bus, bus.dead_letter(consumer.name(), raw, &reason).await),
        Err(Failure::Transient(reason) | Failure::Conflict(reason)) if attempt >= bus.limits.max_attempts => {
            let reason = format!("gave up after {attempt} attempts: {reason}");
            set_aside(bus, bus.dead_letter(consumer.name(), raw, &reason).await)
        }
        Err(Failure::Transient(reason) | Failure::Conflict(reason)) => {
            tracing::warn!(consumer = consumer.name(), sequence = raw.sequence, attempt, reason, "will try again");
            AckKind::Nak(Some(backoff(&bus.limits, attempt)))
        }
    }
}

/// The span of dealing with a message, a child of whatever published it, so that one message is one trace.
pub fn span(consumer: Consumer, record: &Record) -> tracing::Span {
    let span = tracing::info_span!(
        "process",
        otel.name = consumer.name(),
        otel.kind = "consumer",
        messaging.system = "nats",
        messaging.destination.name = record.subject,
        messaging.message.id = %record.envelope.id,
        kairo.sequence = record.sequence,
    );
    if let Some(traceparent) = &record.envelope.traceparent {
        telemetry::set_parent(&span, traceparent);
    }
    span
}

/// The span of dealing with a message that is no event of Kairo's.
fn raw_span(consumer: Consumer, raw: &Raw) -> tracing::Span {
    let span = tracing::info_span!(
        "process",
        otel.name = consumer.name(),
        otel.kind = "consumer",
        messaging.system = "nats",
        messaging.destination.name = raw.subject,
        kairo.sequence = raw.sequence,
    );
    if let Some(traceparent) = raw.header("traceparent") {
        telemetry::set_parent(&span, traceparent);
    }
    span
}

/// Calls the handler, again at once after a conflict.
async fn handle<F>(bus: &Bus, handler: impl Fn() -> F + Send) -> Result<Settled, Failure>
where
    F: Future<Output = Result<Settled, Failure>> + Send,
{
    let mut conflicts = 0;
    loop {
        match handler().await {
            Err(Failure::Conflict(reason)) if conflicts < CONFLICTS => {
                conflicts += 1;
                tracing::debug!(service = bus.service.name(), reason, conflicts, "conflict");
            }
            other => return other,
        }
    }
}

/// Runs `work`, telling the server every third of the ack wait that it is still going on.
async fn alive<T>(bus: &Bus, message: &Message, work: impl Future<Output = T>) -> T {
    let every = Duration::from_millis((bus.limits.ack_wait_ms / 3).max(50));
    let mut beat = tokio::time::interval_at(tokio::time::Instant::now() + every, every);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            result = &mut work => return result,
            _ = beat.tick() => {
                let _ = message.ack_with(AckKind::Progress).await;
            }
        }
    }
}

/// The message is given up only once its dead letter is written.
fn set_aside(bus: &Bus, letter: Result<(), BusError>) -> AckKind {
    match letter {
        Ok(()) => AckKind::Term,
        Err(error) => {
            tracing::warn!(%error, "dead letter not written, the message will come again");
            AckKind::Nak(Some(backoff(&bus.limits, 1)))
        }
    }
}

/// The delay before attempt number `attempt` + 1.
pub fn backoff(limits: &BusConfig, attempt: u64) -> Duration {
    let doublings = u32::try_from(attempt.saturating_sub(1)).unwrap_or(u32::MAX).min(30);
    let delay = limits.retry_first_ms.saturating_mul(1 << doublings);
    Duration::from_millis(delay.min(limits.retry_longest_ms))
}
