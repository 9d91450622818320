//! Reading the log in order, from where the read model stands.
//!
//! A pull consumer without acks that lives as long as this reader: the positions are in Postgres, so the server need not
//! remember any. Whatever is irregular ends the reader, and the next one begins at the positions.

use std::time::Duration;

use async_nats::jetstream::{
    Message,
    consumer::{AckPolicy, Consumer, DeliverPolicy, pull},
    stream::{Info, RawMessageErrorKind, Stream},
};
use futures::StreamExt;
use kairo_core::{
    bus::{Bus, BusError},
    record::RawMessage,
    subjects::EVENTS_STREAM,
    vocabulary::NewerReaderNeeded,
};
use tokio::{
    task::unconstrained,
    time::{Instant, timeout_at},
};

/// The time that a pull stays open at the server, and its heartbeat.
const PULL_EXPIRES: Duration = Duration::from_secs(30);
const PULL_HEARTBEAT: Duration = Duration::from_secs(5);
/// The time after which the server deletes the consumer of a reader that is gone.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// The reason why reading stopped. Reading again from the position may work.
#[derive(Debug, thiserror::Error)]
pub enum ReaderError {
    #[error("cannot read the log: {0}")]
    Nats(#[from] async_nats::Error),
    #[error("a message behind {0} was delivered but did not arrive")]
    Lost(u64),
    /// Another log, or one that lost its end.
    #[error(
        "the read model is at sequence {position} of a log that ends at {end}: it was made from another log; rebuild it \
         with POST /v1/projections/rebuild"
    )]
    BeyondEnd { position: u64, end: u64 },
    /// Messages that are not read yet are gone from the log.
    #[error(
        "the read model is at sequence {position}, and the log begins at {first}: what it has not read is gone; see docs/retention.md"
    )]
    BeforeBeginning { position: u64, first: u64 },
    /// A newer replica goes on from there.
    #[error(transparent)]
    Newer(#[from] NewerReaderNeeded),
}

/// The size of a batch, and the end of reading.
#[derive(Clone, Copy, Debug)]
pub struct BatchLimits {
    pub messages: usize,
    /// Of bodies.
    pub bytes: usize,
    /// The longest time a message waits for others.
    pub linger: Duration,
    /// The last message to read.
    pub end: Option<u64>,
}

/// A place in the log that moves on.
pub struct LogReader {
    bus: Bus,
    stream: Stream<()>,
    consumer: Consumer<pull::Config>,
    messages: pull::Stream,
    limits: BatchLimits,
    /// Messages gathered for the next batch.
    gathered: Vec<RawMessage>,
    /// Stream sequence of the last message that arrived.
    last: u64,
    /// Number of messages that arrived.
    arrived: u64,
    /// The last sequence that the server reported as delivered, and whether nothing has arrived since.
    delivered: u64,
    quiet: bool,
}

impl LogReader {
    /// Begins behind the message at `position`.
    pub async fn open(bus: &Bus, position: u64, limits: BatchLimits) -> Result<Self, ReaderError> {
        let nats = bus.nats().map_err(async_nats::Error::from)?;
        let stream = nats.jetstream.get_stream_no_info(EVENTS_STREAM).await.map_err(async_nats::Error::from)?;
        let state = stream_info(&stream).await?.state;
        let first = state.first_sequence;
        let end = state.last_sequence;
        if position > end {
            return Err(ReaderError::BeyondEnd { position, end });
        }
        if first > position + 1 {
            return Err(ReaderError::BeforeBeginning { position, first });
        }
        let consumer = stream.create_consumer(pull::Config {
            name: Some(nats.reader_name()),
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: position + 1 },
            ack_policy: AckPolicy::None,
            inactive_threshold: FORGOTTEN_AFTER,
            num_replicas: 1,
            memory_storage: true,
            ..Default::default()
        });
        let consumer = consumer.await.map_err(async_nats::Error::from);
        nats.note_quorum_request(consumer.is_ok()).await;
        let consumer = consumer?;
        // A message that is larger than a whole pull would never be delivered.
        let largest = nats.client.server_info().max_payload.saturating_mul(2);
        let messages = consumer
            .stream()
            .max_messages_per_batch(limits.messages)
            .max_bytes_per_batch(limits.bytes.max(largest))
            .expires(PULL_EXPIRES)
            .heartbeat(PULL_HEARTBEAT)
            .messages();
        Ok(Self {
            bus: bus.clone(),
            messages: messages.await.map_err(async_nats::Error::from)?,
            stream,
            consumer,
            limits,
            gathered: Vec::new(),
            last: position,
            arrived: 0,
            delivered: 0,
            quiet: false,
        })
    }

    /// Waits for a message, then for a moment for more: a transaction costs the same for one as for many. Returns how far
    /// that leads. Nothing is lost if it is dropped.
    pub async fn next_batch(&mut self) -> Result<(u64, Vec<RawMessage>), ReaderError> {
        if self.gathered.is_empty() {
            let first = self.messages.next().await;
            self.gather_message(first)?;
        }
        let deadline = Instant::now() + self.limits.linger;
        let mut bytes: usize = self.gathered.iter().map(payload_size).sum();
        while self.gathered.len() < self.limits.messages && bytes < self.limits.bytes && !self.is_at_end() {
            // Unconstrained, as tokio would otherwise feign an empty buffer now and then.
            let Ok(more) = timeout_at(deadline, unconstrained(self.messages.next())).await else { break };
            bytes += self.gather_message(more)?;
        }
        self.unseal_gathered().await?;
        Ok((self.last, std::mem::take(&mut self.gathered)))
    }

    /// Opens what is sealed of what was gathered.
    async fn unseal_gathered(&mut self) -> Result<(), ReaderError> {
        for message in self.gathered.iter_mut().filter(|message| message.is_sealed()) {
            *message = self.bus.open_message(message.clone()).await.map_err(async_nats::Error::from)?;
        }
        Ok(())
    }

    fn is_at_end(&self) -> bool {
        self.limits.end.is_some_and(|end| self.last >= end)
    }

    /// Adds a message to the next batch; its size.
    fn gather_message<E: Into<async_nats::Error>>(
        &mut self,
        next: Option<Result<Message, E>>,
    ) -> Result<usize, ReaderError> {
        let message = self.accept_message(next)?;
        let bytes = payload_size(&message);
        self.gathered.push(message);
        Ok(bytes)
    }

    /// Checks that the server still knows this reader and that everything it delivered has arrived. Call it now and
    /// then: a lost last message would otherwise be noticed only when the next one comes. Returns the end of the log if
    /// no message is left before it, for instance because the last ones were deleted.
    ///
    /// The consumer's leader cannot tell: it may lag behind the log's leader and not know the latest messages. So the
    /// log's leader is asked for the next message.
    pub async fn check_delivery(&mut self) -> Result<Option<u64>, ReaderError> {
        let end = stream_info(&self.stream).await?.state.last_sequence;
        let consumer = self.consumer.get_info().await.map_err(async_nats::Error::from)?;
        if self.quiet && self.last < self.delivered {
            return Err(ReaderError::Lost(self.last));
        }
        self.quiet = true;
        self.delivered = consumer.delivered.stream_sequence;
        let is_all = consumer.num_pending == 0 && self.delivered <= self.last && self.gathered.is_empty();
        if !is_all || end <= self.last || self.has_more().await? {
            return Ok(None);
        }
        self.last = end;
        Ok(Some(end))
    }

    /// Returns true if the log has a message behind the last one.
    async fn has_more(&self) -> Result<bool, ReaderError> {
        match self.stream.get_first_raw_message_by_subject(">", self.last + 1).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(false),
            Err(error) => Err(async_nats::Error::from(error).into()),
        }
    }

    fn accept_message<E: Into<async_nats::Error>>(
        &mut self,
        next: Option<Result<Message, E>>,
    ) -> Result<RawMessage, ReaderError> {
        let mut message = next.ok_or_else(|| async_nats::Error::from("the pull ended"))?.map_err(Into::into)?;
        let (raw, info) = RawMessage::from_delivery(&mut message)?;
        let number = info.consumer_sequence;
        let message = raw;
        self.arrived += 1;
        self.quiet = false;
        if number != self.arrived {
            return Err(ReaderError::Lost(self.last));
        }
        self.last = message.sequence;
        Ok(message)
    }
}

/// Wraps an error from reading the log.
pub fn to_reader_error(error: BusError) -> ReaderError {
    async_nats::Error::from(error).into()
}

async fn stream_info(stream: &Stream<()>) -> Result<Info, ReaderError> {
    Ok(stream.get_info().await.map_err(async_nats::Error::from)?)
}

fn payload_size(message: &RawMessage) -> usize {
    message.payload.len()
}
