//! The interface between the bus and the outside world: streams, live messages, a clock, ids, tasks.
//!
//! There are two worlds. [`super::jetstream`] is the real one. The other is in memory, made from a seed, and belongs to
//! the simulation: it drives the very services that run in production, which hold because nothing in them asks the world
//! for anything but through here. Monotonic time is the one exception: services measure it with [`tokio::time`], which
//! the simulation drives too.

use std::{collections::BTreeMap, fmt::Debug, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{future::BoxFuture, stream::BoxStream};
use jiff::Timestamp;
use kairo_events::sealing::SealingKey;
use uuid::Uuid;

use super::{jetstream::JetStream, violations::ViolationCount};
use crate::{record::RawMessage, subjects::Consumer};

pub use async_nats::HeaderMap as Headers;

/// The error of a layer below the bus, for people to read.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// A world to run in.
pub trait Port: StreamStore + LiveTransport + Machine + Debug {
    /// The connection to NATS, where that is the world.
    fn nats(&self) -> Option<&JetStream> {
        None
    }
}

/// The streams of stored messages.
#[async_trait]
pub trait StreamStore: Send + Sync {
    /// Stores a message in whichever stream takes its subject.
    async fn publish(&self, message: OutgoingMessage) -> Result<StoreAck, StoreError>;

    /// The last message of a subject.
    async fn last_message(
        &self,
        stream: &str,
        subject: &str,
        asked: ReadSource,
    ) -> Result<Option<RawMessage>, StoreError>;

    /// The message at a sequence.
    async fn message_at(
        &self,
        stream: &str,
        sequence: u64,
        asked: ReadSource,
    ) -> Result<Option<RawMessage>, StoreError>;

    /// The first message of a filter with a sequence above `after`, as the leader has it.
    async fn next_at_leader(&self, stream: &str, filter: &str, after: u64) -> Result<Option<RawMessage>, StoreError>;

    /// At most `most` messages of a filter with a sequence above `after`, from any server.
    async fn read_page(&self, stream: &str, filter: &str, after: u64, most: usize) -> Result<MessagePage, StoreError>;

    /// The last message of each subject of these filters, wildcards allowed, from any server. An error when there are more
    /// than 1 024 of them.
    async fn last_of_each(&self, stream: &str, filters: &[String]) -> Result<Vec<RawMessage>, StoreError>;

    /// Removes one message; false when it is not there any more.
    async fn delete_message(&self, stream: &str, sequence: u64) -> Result<bool, StoreError>;

    /// Removes one message, and has its bytes written over.
    async fn erase_message(&self, stream: &str, sequence: u64) -> Result<bool, StoreError> {
        self.delete_message(stream, sequence).await
    }

    /// Returns the creation time, metadata and first and last sequence of a stream, as its leader has them.
    async fn stream_state(&self, stream: &str) -> Result<StreamState, StoreError>;

    /// Reads what one of these filters names in order without acknowledging, from a place on and for as long as it is not dropped.
    async fn tail_stream(
        &self,
        stream: &str,
        filters: &[String],
        start: TailStart,
    ) -> Result<Box<dyn StreamTail>, StoreError>;

    /// Takes part in a durable consumer of the log.
    async fn open_pull(&self, consumer: Consumer) -> Result<Box<dyn ConsumerPull>, StoreError>;

    /// Reports the outcome of a delivery to the server, or that it is still in progress. The server does not confirm
    /// the report.
    async fn settle(&self, receipt: &str, settlement: Settlement) -> Result<(), Cause>;

    /// Makes a bucket in memory again that a server which was restarted has forgotten. One that is there stays.
    async fn restore_bucket(&self, bucket: &str) -> Result<(), StoreError>;
}

/// Live messages, which are not stored, and the connection that carries them.
#[async_trait]
pub trait LiveTransport: Send + Sync {
    /// Says something. Nothing is stored, nobody waits.
    async fn send_live(&self, subject: String, headers: Headers, payload: Bytes) -> Result<(), Cause>;

    /// Hears what is said on a subject, wildcards allowed; with a group, each message is heard by one of its members.
    async fn subscribe(&self, subject: String, group: Option<&str>) -> Result<LiveSubscription, Cause>;

    /// Asks whoever answers on a subject.
    async fn request(&self, subject: String, payload: Bytes, patience: Duration) -> Result<Bytes, NoAnswer>;

    /// The connection as it is now.
    fn connection(&self) -> ConnectionStatus;

    /// Returns the permission violations the server has reported so far.
    fn violations(&self) -> ViolationCount {
        ViolationCount::default()
    }

    /// Hands over all that was written, and closes the connection.
    async fn close(&self);
}

/// The machine a replica runs on.
pub trait Machine: Send + Sync {
    /// The wall clock.
    fn now(&self) -> Timestamp;

    /// A new id, for what enters from outside.
    fn new_id(&self) -> Uuid;

    /// A new key to seal with, that nobody can guess.
    fn new_key(&self) -> Result<SealingKey, Cause>;

    /// A background task of the replica, to be spawned: it goes on only while the replica does.
    fn host_task(&self, task: BoxFuture<'static, ()>) -> BoxFuture<'static, ()>;
}

/// A tail of a stream: see [`StreamStore::tail_stream`].
#[async_trait]
pub trait StreamTail: Send {
    /// Returns the number of messages still to come of those that were stored when the tail was opened.
    fn pending(&self) -> u64;

    /// Waits for a message, and takes with it what else has arrived. Returns an empty batch if the log lost messages that
    /// were pending; [`StreamTail::pending`] is lower then. After an error, which a lost message is too, nothing more comes;
    /// another tail has to be made, behind the last message that came. Nothing is lost if it is dropped.
    async fn next_batch(&mut self) -> Result<Vec<RawMessage>, Cause>;
}

/// A share in a durable consumer: see [`StreamStore::open_pull`].
#[async_trait]
pub trait ConsumerPull: Send {
    /// Waits for a delivery. None or an error when it broke off. Nothing is lost if it is dropped.
    async fn next_delivery(&mut self) -> Option<Result<PulledMessage, Cause>>;
}

/// Messages heard; it ends with the connection.
pub type LiveSubscription = BoxStream<'static, LiveMessage>;

/// A message to be stored.
#[derive(Clone, Debug)]
pub struct OutgoingMessage {
    pub subject: String,
    pub headers: Headers,
    pub payload: Bytes,
    /// The last sequence the subject must have for the write to succeed, 0 for no message.
    pub guard: Option<u64>,
    /// Within the stream's window a message with this id is stored once.
    pub id: Option<String>,
    /// The time until the message expires, in whole seconds.
    pub lifetime: Option<Duration>,
}

impl OutgoingMessage {
    pub fn new(subject: impl Into<String>, headers: Headers, payload: impl Into<Bytes>) -> Self {
        Self { subject: subject.into(), headers, payload: payload.into(), guard: None, id: None, lifetime: None }
    }

    pub fn with_guard(self, last: u64) -> Self {
        Self { guard: Some(last), ..self }
    }

    pub fn with_id(self, id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), ..self }
    }

    pub fn with_lifetime(self, lifetime: Duration) -> Self {
        Self { lifetime: Some(lifetime), ..self }
    }
}

/// The acknowledgement of a stored message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreAck {
    pub sequence: u64,
    /// True if the message had been stored before; the sequence is that of the first time.
    pub duplicate: bool,
}

/// The errors of a stream operation.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The guard failed: the subject's last message is another one (error 10071).
    #[error("the subject's last sequence is another one")]
    WrongLastSequence,
    /// With several servers: a guarded write of this subject (error 10164), or one with this id (10158), has not come to its end
    /// yet. The same write is to be tried again; it is no conflict, and no duplicate, yet.
    #[error("another write of this subject, or of this very event, is still in process")]
    InProcess,
    #[error("it is larger than the server takes")]
    TooLarge,
    /// The stream or the server has no room, and discards what is new.
    #[error("there is no room for it: {0}")]
    Full(String),
    /// Nobody answers for the stream: it was never made, it was in the memory of a server that was restarted, or it has
    /// no leader now.
    #[error("there is no such stream, or nobody answers for it now")]
    NoStream,
    /// A stream or durable consumer that is made beforehand is missing, or narrower than this version needs.
    #[error("{0}: run `kairo provision`")]
    Unprovisioned(String),
    /// No connection, or no answer in time. What was written may have been stored.
    #[error("{0}")]
    Unavailable(#[source] Cause),
}

/// The server that answers a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadSource {
    /// Whichever is next; it may lag behind the leader.
    Any,
    /// The stream's leader, which misses nothing, at the cost of its attention.
    Leader,
}

/// A stretch of a stream.
#[derive(Debug, Default)]
pub struct MessagePage {
    pub messages: Vec<RawMessage>,
    /// True if the stream has more messages after the last one of the page.
    pub more: bool,
}

/// The creation time, metadata and range of sequences of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamState {
    /// When it was made.
    pub created: Timestamp,
    pub metadata: BTreeMap<String, String>,
    pub first_sequence: u64,
    pub last_sequence: u64,
}

/// The starting position of a tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailStart {
    /// At the first message with a sequence above this.
    After(u64),
    /// At the last message of each subject.
    LastOfEach,
}

/// A message that a durable consumer delivered.
#[derive(Clone, Debug)]
pub struct PulledMessage {
    pub raw: RawMessage,
    /// 1 the first time.
    pub attempt: u64,
    /// The token that settles the delivery, see [`StreamStore::settle`].
    pub receipt: String,
}

/// The outcome of a delivery, as reported to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    Done,
    /// To be delivered again after this time.
    Again(Duration),
    /// Never to be delivered again.
    GivenUp,
    /// Still being worked on: the ack wait begins anew.
    InProgress,
}

/// A live message.
#[derive(Clone, Debug)]
pub struct LiveMessage {
    pub subject: String,
    /// The subject to reply to, if the sender expects an answer.
    pub reply: Option<String>,
    pub headers: Headers,
    pub payload: Bytes,
}

/// The reasons a request got no answer.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    #[error("nobody is there to answer")]
    Nobody,
    #[error("no answer came in time")]
    Silence,
    #[error("{0}")]
    Unavailable(#[source] Cause),
}

/// The connection to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionStatus {
    pub up: bool,
    /// Counts every connection that was made.
    pub number: u64,
}
