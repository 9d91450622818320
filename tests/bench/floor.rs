//! The bare floor: the stored messages of a turn without Kairo.
//!
//! As many messages, of the same headers and bodies, on the same server and in the same kind of stream: the first is
//! published, each further one by a hop that consumed the one before (durable pull consumer, a connection of its own,
//! publish and wait for the ack, then acknowledge), and the last is seen by a consumer without acks, as the event
//! stream sees it. Nobody decides, looks anything up, or guards anything.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use async_nats::{
    HeaderMap,
    jetstream::{
        self, Context, Message,
        consumer::{AckPolicy, DeliverPolicy, pull},
        message::PublishMessage,
        stream,
    },
};
use bytes::Bytes;
use futures::StreamExt;
use kairo_core::{bus::BusConfig, subjects::EVENTS_STREAM};
use tokio::sync::mpsc;

use kairo_local::Login;
use kairo_tests::login;

use crate::{Outcome, load::Lane};

pub const STREAM: &str = "FLOOR";
/// Time for which a pull stays open, and its heartbeat, as Kairo's.
const PULL_EXPIRES: Duration = Duration::from_secs(30);
const PULL_HEARTBEAT: Duration = Duration::from_secs(5);

/// A stored message of a turn, to be written again and again.
#[derive(Clone, Debug)]
pub struct Pattern {
    headers: HeaderMap,
    payload: Bytes,
}

impl Pattern {
    fn message(&self) -> PublishMessage {
        PublishMessage::build().headers(self.headers.clone()).payload(self.payload.clone())
    }
}

/// The turns of one agent.
pub struct Turns {
    jetstream: Context,
    subject: String,
    first: Pattern,
    ends: mpsc::UnboundedReceiver<Instant>,
}

/// The messages that the log holds of the last turn: all from the last message of a user on.
pub async fn patterns(jetstream: &Context) -> Outcome<Vec<Pattern>> {
    let log = jetstream.get_stream_no_info(EVENTS_STREAM).await?;
    let end = log.get_info().await?.state.last_sequence;
    let mut patterns = Vec::new();
    for sequence in (1..=end).rev() {
        let message = log.direct_get(sequence).await?;
        patterns.push(Pattern { headers: disarmed(&message.headers), payload: message.payload });
        if is_of_user(&message.subject) {
            break;
        }
    }
    patterns.reverse();
    Ok(patterns)
}

/// Returns true for the message of a user, with which a turn begins.
fn is_of_user(subject: &str) -> bool {
    matches!(subject.split('.').collect::<Vec<_>>()[..], ["kairo", "user", _, "message", ..])
}

/// The headers that a direct get adds to a message and that are not stored.
const TOLD: [&str; 6] =
    ["Nats-Stream", "Nats-Subject", "Nats-Sequence", "Nats-Time-Stamp", "Nats-Last-Sequence", "Nats-Num-Pending"];

/// The stored headers in the same number of bytes, without the effects that those for the server have.
fn disarmed(headers: &HeaderMap) -> HeaderMap {
    let mut disarmed = HeaderMap::new();
    let stored = headers.iter().map(|(name, values)| (name.to_string(), values));
    for (name, values) in stored.filter(|(name, _)| !TOLD.contains(&name.as_str())) {
        let name = name.replacen("Nats-", "Bare-", 1);
        values.iter().for_each(|value| disarmed.append(name.as_str(), value.as_str()));
    }
    disarmed
}

/// Sets up the chain, and a lane for each agent.
pub async fn lanes(login: &Login, patterns: &[Pattern], agents: usize) -> Outcome<Vec<Turns>> {
    let (first, rest) = patterns.split_first().ok_or("a turn without messages")?;
    let jetstream = connect(login, "floor-client").await?;
    let log = jetstream.create_stream(stream::Config {
        name: STREAM.to_owned(),
        subjects: vec!["floor.>".to_owned()],
        allow_direct: true,
        duplicate_window: Duration::from_secs(120),
        ..Default::default()
    });
    let log = log.await?;
    for (number, pattern) in rest.iter().enumerate() {
        let jetstream = connect(login, &format!("floor-hop-{}", number + 1)).await?;
        let messages = pull_from(&jetstream, hop_config(number)).await?;
        tokio::spawn(hop(jetstream, messages, number + 1, pattern.clone()));
    }
    let observer = log.create_consumer(observer_config(rest.len())).await?;
    let ends = observer.stream().max_messages_per_batch(64).expires(PULL_EXPIRES).heartbeat(PULL_HEARTBEAT);
    let mut listeners = BTreeMap::new();
    let mut lanes = Vec::new();
    for number in 0..agents {
        let (listener, ends) = mpsc::unbounded_channel();
        listeners.insert(format!("floor.{}.bench-{number}", rest.len()), listener);
        let subject = format!("floor.0.bench-{number}");
        lanes.push(Turns { jetstream: jetstream.clone(), subject, first: first.clone(), ends });
    }
    tokio::spawn(observe(ends.messages().await?, listeners));
    Ok(lanes)
}

async fn connect(login: &Login, name: &str) -> Outcome<Context> {
    Ok(jetstream::new(login::options(login).name(name).connect(&login.url).await?))
}

/// The durable consumer of one step, configured as Kairo's are.
fn hop_config(step: usize) -> pull::Config {
    let limits = BusConfig::default();
    pull::Config {
        durable_name: Some(format!("hop-{step}")),
        ack_policy: AckPolicy::Explicit,
        ack_wait: Duration::from_millis(limits.ack_wait_ms),
        max_ack_pending: i64::try_from(limits.max_ack_pending).unwrap_or(i64::MAX),
        max_deliver: -1,
        filter_subject: format!("floor.{step}.*"),
        ..Default::default()
    }
}

fn observer_config(step: usize) -> pull::Config {
    pull::Config {
        deliver_policy: DeliverPolicy::New,
        ack_policy: AckPolicy::None,
        filter_subject: format!("floor.{step}.*"),
        memory_storage: true,
        ..Default::default()
    }
}

async fn pull_from(jetstream: &Context, config: pull::Config) -> Outcome<pull::Stream> {
    let consumer = jetstream.get_stream_no_info(STREAM).await?.create_consumer(config).await?;
    let batch = BusConfig::default().pull_batch;
    let pull = consumer.stream().max_messages_per_batch(batch).expires(PULL_EXPIRES).heartbeat(PULL_HEARTBEAT);
    Ok(pull.messages().await?)
}

/// Consumes the messages of one step and writes those of the next, many at once.
async fn hop(jetstream: Context, messages: pull::Stream, next: usize, pattern: Pattern) {
    let concurrency = BusConfig::default().concurrency;
    let (jetstream, pattern) = (&jetstream, &pattern);
    messages
        .for_each_concurrent(concurrency, |message| async move {
            // An error of the pull is a sign of life missed on a busy machine; the client pulls again.
            let Ok(message) = message else { return };
            if let Err(error) = pass_on(jetstream, &message, next, pattern).await {
                eprintln!("kairo-bench: a hop of the floor failed: {error}");
            }
        })
        .await;
}

async fn pass_on(jetstream: &Context, message: &Message, next: usize, pattern: &Pattern) -> Outcome<()> {
    let agent = message.subject.split('.').nth(2).unwrap_or_default();
    jetstream.send_publish(format!("floor.{next}.{agent}"), pattern.message()).await?.await?;
    message.ack().await
}

/// Tells each lane when its last message arrives.
async fn observe(mut messages: pull::Stream, listeners: BTreeMap<String, mpsc::UnboundedSender<Instant>>) {
    while let Some(Ok(message)) = messages.next().await {
        if let Some(listener) = listeners.get(message.subject.as_str()) {
            let _ = listener.send(Instant::now());
        }
    }
}

impl Lane for Turns {
    async fn turn(&mut self) -> Outcome<Duration> {
        let started = Instant::now();
        self.jetstream.send_publish(self.subject.clone(), self.first.message()).await?.await?;
        let seen = tokio::time::timeout(Duration::from_secs(30), self.ends.recv()).await;
        let seen = seen.map_err(|_| "no end of the chain within 30 s")?.ok_or("the observer is gone")?;
        Ok(seen - started)
    }
}
