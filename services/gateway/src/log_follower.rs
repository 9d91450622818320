//! Reads the log from a position on, and resumes after any failure of the server.
//!
//! It uses a pull consumer without acks: pulls follow the reader's pace, and after a failure a new consumer starts at
//! the last position. The client library's ordered consumer would do, but if it breaks before its first message it
//! starts over at the beginning of the log.

use std::time::Duration;

use async_nats::{
    datetime::parse_rfc3339,
    jetstream::{
        Message,
        consumer::{
            AckPolicy, DeliverPolicy,
            pull::{self, MessagesError},
        },
    },
};
use futures::StreamExt;
use jiff::Timestamp;
use kairo_core::{
    bus::{
        Bus, BusError,
        consume::backoff_delay,
        jetstream::{RECOUNT_AFTER, count_pending},
    },
    record::RawMessage,
    subjects::EVENTS_STREAM,
};
use tokio::{runtime::Handle, time::timeout};

/// The lifetime of a pull at the server; [`PULL_HEARTBEAT`] is the interval at which the server confirms it.
const PULL_EXPIRES: Duration = Duration::from_secs(30);
const PULL_HEARTBEAT: Duration = Duration::from_secs(5);
/// The time after which the server deletes the consumer of a reader that has vanished or does not pull.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(10);

/// Returns the sequence of the last message in the log.
pub async fn end_of_log(bus: &Bus) -> Result<u64, BusError> {
    let asked = async {
        let stream = bus.nats()?.jetstream.get_stream_no_info(EVENTS_STREAM).await?;
        Ok(stream.get_info().await?.state.last_sequence)
    };
    asked.await.map_err(|source| BusError::Unavailable { doing: "asking where the log ends", source })
}

/// A reader of the log that resumes by itself.
pub struct LogFollower {
    bus: Bus,
    /// The subject filter, with wildcards; empty for all subjects.
    filter: String,
    /// The most messages requested by one pull.
    buffer: usize,
    /// The sequence of the last message returned.
    position: u64,
    /// The start time until the first message is returned; none to begin after `position`.
    since: Option<Timestamp>,
    /// True to receive messages without their bodies.
    headers_only: bool,
    pull: Option<OpenPull>,
    failures: u64,
}

struct OpenPull {
    consumer: String,
    messages: pull::Stream,
    /// The number of messages received by the consumer; the server numbers them, so a gap shows a lost message.
    received: u64,
    /// The number of messages in the log that were not yet received when the server last reported it.
    pending: u64,
}

impl LogFollower {
    /// Creates a follower that begins after the message at `position`. It does not contact the server yet.
    pub fn new(bus: &Bus, filter: String, position: u64, buffer: usize) -> Self {
        let since = None;
        let headers_only = false;
        Self { bus: bus.clone(), filter, buffer, position, since, headers_only, pull: None, failures: 0 }
    }

    /// Creates a follower that begins with messages stored at `since` and leaves their bodies out.
    pub fn headers_since(bus: &Bus, filter: String, since: Timestamp, buffer: usize) -> Self {
        let mut follower = Self::new(bus, filter, 0, buffer);
        (follower.since, follower.headers_only) = (Some(since), true);
        follower
    }

    /// Returns the next message, and waits if it is yet to come. Retries without limit.
    pub async fn next(&mut self) -> RawMessage {
        loop {
            match self.receive_message().await {
                Ok(message) => return message,
                Err(error) => self.back_off(error).await,
            }
        }
    }

    /// Returns the next message that is in the log already; none once all of them were returned. Retries without limit.
    pub async fn next_pending(&mut self) -> Option<RawMessage> {
        loop {
            let received = match self.ensure_pull().await {
                Ok(pull) if pull.pending == 0 => return None,
                Ok(pull) => match timeout(RECOUNT_AFTER, pull.messages.next()).await {
                    Ok(message) => self.accept_message(message).await,
                    Err(_) => {
                        self.recount_pending().await;
                        continue;
                    }
                },
                Err(error) => Err(error),
            };
            match received {
                Ok(message) => return Some(message),
                Err(error) => self.back_off(error).await,
            }
        }
    }

    async fn back_off(&mut self, error: async_nats::Error) {
        self.pull = None;
        self.failures += 1;
        tracing::debug!(%error, position = self.position, "reading the log broke off, going on from there");
        tokio::time::sleep(backoff_delay(&self.bus.limits, self.failures)).await;
    }

    async fn receive_message(&mut self) -> Result<RawMessage, async_nats::Error> {
        let message = self.ensure_pull().await?.messages.next().await;
        self.accept_message(message).await
    }

    /// Counts the pending messages again; keeps the old count if the server does not answer.
    async fn recount_pending(&mut self) {
        let (Some(pull), Ok(nats)) = (&mut self.pull, self.bus.nats()) else { return };
        let counted = count_pending(&nats.jetstream, EVENTS_STREAM, &pull.consumer, pull.received).await;
        pull.pending = counted.unwrap_or(pull.pending);
    }

    async fn accept_message(
        &mut self,
        message: Option<Result<Message, MessagesError>>,
    ) -> Result<RawMessage, async_nats::Error> {
        let pull = self.ensure_pull().await?;
        let mut message = message.ok_or("the pull ended")??;
        let (raw, info) = RawMessage::from_delivery(&mut message)?;
        pull.received += 1;
        if info.consumer_sequence != pull.received {
            return Err(format!("message {} of the pull was lost", pull.received).into());
        }
        pull.pending = info.pending;
        // Open the message before it counts as read, so that a failure to open it is retried.
        let raw = self.bus.open_message(raw).await?;
        self.position = raw.sequence;
        self.failures = 0;
        Ok(raw)
    }

    async fn ensure_pull(&mut self) -> Result<&mut OpenPull, async_nats::Error> {
        let pull = match self.pull.take() {
            Some(pull) => pull,
            None => self.start_pull().await?,
        };
        Ok(self.pull.insert(pull))
    }

    async fn start_pull(&self) -> Result<OpenPull, async_nats::Error> {
        let nats = self.bus.nats()?;
        let stream = nats.jetstream.get_stream_no_info(EVENTS_STREAM).await?;
        let deliver_policy = match self.since.filter(|_| self.position == 0) {
            Some(since) => DeliverPolicy::ByStartTime { start_time: parse_rfc3339(&since.to_string())? },
            None => DeliverPolicy::ByStartSequence { start_sequence: self.position + 1 },
        };
        let consumer = stream.create_consumer(pull::Config {
            name: Some(nats.reader_name()),
            deliver_policy,
            headers_only: self.headers_only,
            ack_policy: AckPolicy::None,
            filter_subject: self.filter.clone(),
            inactive_threshold: FORGOTTEN_AFTER,
            num_replicas: 1,
            memory_storage: true,
            ..Default::default()
        });
        let consumer = consumer.await?;
        let messages = consumer.stream().max_messages_per_batch(self.buffer);
        let messages = messages.expires(PULL_EXPIRES).heartbeat(PULL_HEARTBEAT).messages().await?;
        let info = consumer.cached_info();
        Ok(OpenPull { consumer: info.name.clone(), messages, received: 0, pending: info.num_pending })
    }
}

/// Deletes the consumer, so that the server does not have to keep those of many short-lived readers.
impl Drop for LogFollower {
    fn drop(&mut self) {
        let here = (self.pull.take(), Handle::try_current(), self.bus.nats());
        let (Some(pull), Ok(runtime), Ok(nats)) = here else { return };
        let jetstream = nats.jetstream.clone();
        runtime.spawn(async move {
            if let Err(error) = jetstream.delete_consumer_from_stream(&pull.consumer, EVENTS_STREAM).await {
                tracing::debug!(%error, "the server will forget a reader by itself");
            }
        });
    }
}
