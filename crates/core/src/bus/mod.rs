//! The bus: how services speak through JetStream, and the only place that knows how.
//!
//! [`append`] writes (guarded or not), [`ledger`] writes at most once, [`read`] and [`subject_follower`] look things up, [`objects`] keeps images
//! and audio, [`consume`] drives a service, [`dead_letter_retry`] deals again with what was set aside, [`timers`] and [`hooks`] wait for a time
//! and for others, [`orders`] tells whoever has a call in hand to stop it, [`congestion`] tells which agents take no more,
//! [`provision`] makes streams and consumers from the table of subjects, [`violations`] counts what NATS does not permit. All of it
//! stands on [`port`], of which [`jetstream`] is the implementation that services run on.

pub mod append;
pub mod archive;
pub mod canceled_calls;
pub mod commands;
pub mod congestion;
pub mod connection_monitor;
pub mod consume;
pub mod data_keys;
mod dead_letter;
pub mod dead_letter_retry;
pub mod epoch;
mod failure_counts;
pub mod fence;
pub mod hooks;
pub mod jetstream;
pub mod kv;
pub mod ledger;
pub mod liveness;
pub mod log_room;
mod merged_read;
pub mod message_sealing;
mod missing_consumers;
pub mod objects;
pub mod orders;
pub mod port;
pub mod provision;
pub mod read;
pub mod retry_deadline;
pub mod stalled_writes;
pub mod subject_follower;
pub mod timers;
pub mod violations;

use std::{
    future::Future,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;
use uuid::Uuid;

use self::{
    archive::ArchiveReader,
    data_keys::DataKeys,
    jetstream::{JetStream, TLS},
    missing_consumers::MissingConsumers,
    port::{Cause, ConnectionStatus, LiveSubscription, NoAnswer, Port},
};
use crate::{
    config::{Mistake, Secret, Validate, check},
    ids::Name,
    metrics::Metrics,
    ownership::replica_progress::ReplicaProgress,
    partition::Partitions,
    permissions::NatsIdentity,
    privacy::PrivacyConfig,
    record::{RawMessage, UnreadableRecord},
    subjects::Service,
    vocabulary::READER,
};

/// The connection to NATS, and the settings of streams and buckets when they are first made.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NatsConfig {
    /// One server or several, separated by commas: `nats://` or, encrypted, `tls://`. Default `nats://127.0.0.1:4222`.
    pub url: String,
    /// User to log in as, with `nats.password`; empty for the service's own name. Default empty.
    pub user: String,
    /// Password of that user; empty for none.
    pub password: Secret,
    /// Seed of the nkey to log in with, in place of user and password; empty for none.
    pub nkey: Secret,
    /// Token to log in with, where the servers know no users; empty for none.
    pub token: Secret,
    /// PEM file of the authorities that vouch for the servers of `tls://` URLs; empty for those the system knows. Default
    /// empty.
    pub tls_ca: String,
    /// Longest wait for an answer of the server, in milliseconds. Default 2000.
    pub request_timeout_ms: u64,
    /// Longest wait for a reader of the log to be opened, in milliseconds: the server first counts its messages, which
    /// takes seconds with the subjects of very many agents. Default 60000.
    pub reader_timeout_ms: u64,
    /// Longest time without a completed request that needs the other servers before another server is tried, in
    /// milliseconds: this one may be cut off. Only with several in `nats.url` or `nats.replicas`. Default 5000.
    pub isolated_after_ms: u64,
    /// Copies of streams and buckets when they are first made: 1, 3 or 5. Default 1; 3 in production.
    pub replicas: usize,
    /// Partitions of the log when it is first made; it keeps them for ever. As many replicas of a service can share its
    /// work. Default 64.
    pub partitions: u32,
    /// Epoch in which the log begins when it is first made, where services of an older version are to work on it; 0 for the
    /// newest that this version writes. Default 0.
    pub epoch: u32,
    /// Images and audio that the object store keeps, in bytes, when it is first made; when they are so many, no more are
    /// taken. Default 2147483648.
    pub objects_max_bytes: u64,
}

/// Limits of consuming and publishing.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BusConfig {
    /// Time without a sign of life after which the server redelivers a message to another replica, in milliseconds.
    /// A takeover takes as long. Default 5000.
    pub ack_wait_ms: u64,
    /// Messages a consumer may have out, over all replicas, those to be tried later included. Default 10000.
    pub max_ack_pending: u64,
    /// Messages one replica works on at once. Default 256.
    pub concurrency: usize,
    /// Messages one pull asks for. Default 64.
    pub pull_batch: usize,
    /// Largest body that is written or read, in bytes; larger ones become dead letters. Default 524288.
    pub max_body_bytes: usize,
    /// Failures of one replica with a message before it becomes a dead letter; a replica that was restarted counts from
    /// the beginning. Default 1000.
    pub max_attempts: u64,
    /// First delay before a failed message is tried again, in milliseconds; it doubles each time. Default 100.
    pub retry_first_ms: u64,
    /// Longest delay before a failed message is tried again, in milliseconds. Default 15000.
    pub retry_longest_ms: u64,
    /// Longest time that a finished result is kept while the server is away, until it can be written, in milliseconds.
    /// Default 120000.
    pub hold_ms: u64,
    /// Interval at which a replica announces itself and looks for others, in milliseconds. Default 500.
    pub beat_ms: u64,
    /// Silence of a replica after which others take over its partitions, in milliseconds. Default 2500.
    pub member_expiry_ms: u64,
    /// Interval at which a partition owner writes a checkpoint, in milliseconds: the shorter, the less a new owner has
    /// to read. Default 2000.
    pub checkpoint_ms: u64,
    /// Longest wait of a handover for work in progress, such as a model's answer, in milliseconds; the next owner
    /// repeats work that takes longer. Default 30000.
    pub handover_ms: u64,
    /// Longest time that a stopping service may take to finish its work, in milliseconds. Default 10000.
    pub drain_ms: u64,
}

impl Default for NatsConfig {
    fn default() -> Self {
        Self {
            url: "nats://127.0.0.1:4222".to_owned(),
            user: String::new(),
            password: Secret::default(),
            nkey: Secret::default(),
            token: Secret::default(),
            tls_ca: String::new(),
            request_timeout_ms: 2_000,
            reader_timeout_ms: 60_000,
            isolated_after_ms: 5_000,
            replicas: 1,
            partitions: 64,
            epoch: 0,
            objects_max_bytes: 2 * 1024 * 1024 * 1024,
        }
    }
}

impl Default for BusConfig {
    fn default() -> Self {
        Self {
            ack_wait_ms: 5_000,
            max_ack_pending: 10_000,
            concurrency: 256,
            pull_batch: 64,
            max_body_bytes: 512 * 1024,
            max_attempts: 1_000,
            retry_first_ms: 100,
            retry_longest_ms: 15_000,
            hold_ms: 120_000,
            beat_ms: 500,
            member_expiry_ms: 2_500,
            checkpoint_ms: 2_000,
            handover_ms: 30_000,
            drain_ms: 10_000,
        }
    }
}

impl Validate for NatsConfig {
    fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        self.check_login(&mut mistakes);
        check(&mut mistakes, "request_timeout_ms", self.request_timeout_ms, 100..=60_000, "milliseconds");
        check(&mut mistakes, "reader_timeout_ms", self.reader_timeout_ms, 100..=600_000, "milliseconds");
        check(&mut mistakes, "isolated_after_ms", self.isolated_after_ms, 500..=600_000, "milliseconds");
        check(&mut mistakes, "replicas", self.replicas as u64, 1..=5, "copies");
        check(&mut mistakes, "partitions", self.partitions, 1..=Partitions::MOST, "partitions");
        check(&mut mistakes, "epoch", self.epoch, 0..=READER, "as an epoch");
        check(&mut mistakes, "objects_max_bytes", self.objects_max_bytes, 1_048_576..=1_000_000_000_000_000, "bytes");
        mistakes
    }
}

/// The prefix of the seeds of users' nkeys, and their length.
const SEED: &str = "SU";
const SEED_CHARS: usize = 58;

impl NatsConfig {
    fn check_login(&self, mistakes: &mut Vec<Mistake>) {
        let mut wrong = |key: &str, expected: &str, why: &str| mistakes.push(Mistake::new(key, expected, why));
        let given = [&self.password, &self.nkey, &self.token].into_iter().filter(|secret| !secret.is_empty());
        if given.count() > 1 {
            wrong("password", "expected one of nats.password, nats.nkey and nats.token", "a client logs in in one way");
        }
        if !self.user.is_empty() && self.password.is_empty() {
            wrong("user", "expected nats.password with it", "a user is known by a password");
        }
        let seed = self.nkey.expose();
        if !seed.is_empty() && (seed.len() != SEED_CHARS || !seed.starts_with(SEED)) {
            wrong(
                "nkey",
                "expected the seed of a user's nkey, 58 characters from SU on",
                "nats-server knows its public key",
            );
        }
        if self.url.contains('@') {
            wrong("url", "expected no user or password in it", "it is shown: give them as nats.user and nats.password");
        }
        let encrypted = self.url.split(',').filter(|url| url.trim().starts_with(TLS)).count();
        if encrypted != 0 && encrypted != self.url.split(',').count() {
            wrong("url", "expected tls:// for all servers or for none", "nothing is sent in the clear by accident");
        }
        if encrypted == 0 && !self.tls_ca.is_empty() {
            wrong("tls_ca", "expected tls:// in nats.url with it", "otherwise connections are not encrypted");
        }
    }
}

impl Validate for BusConfig {
    fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        check(&mut mistakes, "ack_wait_ms", self.ack_wait_ms, 300..=600_000, "milliseconds");
        check(&mut mistakes, "max_ack_pending", self.max_ack_pending, 1..=100_000, "messages");
        check(&mut mistakes, "concurrency", self.concurrency as u64, 1..=10_000, "messages");
        check(&mut mistakes, "pull_batch", self.pull_batch as u64, 1..=1_000, "messages");
        check(&mut mistakes, "max_body_bytes", self.max_body_bytes as u64, 1_024..=1_000_000, "bytes");
        check(&mut mistakes, "max_attempts", self.max_attempts, 1..=1_000_000, "failures");
        check(&mut mistakes, "retry_first_ms", self.retry_first_ms, 1..=60_000, "milliseconds");
        check(&mut mistakes, "retry_longest_ms", self.retry_longest_ms, 1..=600_000, "milliseconds");
        check(&mut mistakes, "hold_ms", self.hold_ms, 0..=86_400_000, "milliseconds");
        check(&mut mistakes, "beat_ms", self.beat_ms, 20..=60_000, "milliseconds");
        check(&mut mistakes, "member_expiry_ms", self.member_expiry_ms, 100..=600_000, "milliseconds");
        check(&mut mistakes, "checkpoint_ms", self.checkpoint_ms, 50..=600_000, "milliseconds");
        check(&mut mistakes, "handover_ms", self.handover_ms, 0..=600_000, "milliseconds");
        if self.member_expiry_ms < 3 * self.beat_ms {
            let problem = format!("expected at least three times bus.beat_ms, which is {}", self.beat_ms);
            mistakes.push(Mistake::new("member_expiry_ms", problem, "one lost beat must not cost a replica its work"));
        }
        check(&mut mistakes, "drain_ms", self.drain_ms, 100..=600_000, "milliseconds");
        mistakes
    }
}

/// A replica's way to the world, and what it signs with.
#[derive(Clone, Debug)]
pub struct Bus {
    pub service: Service,
    /// This replica, unique among all.
    pub instance: Name,
    pub limits: BusConfig,
    port: Arc<dyn Port>,
    log: Arc<OnceLock<LogIdentity>>,
    /// The partitions this replica owns and how far each has been read, for its status.
    pub standing: ReplicaProgress,
    /// Tracks the writes that have not reached the log yet.
    pub writes: stalled_writes::StalledWrites,
    /// The consumers this replica cannot join, with the reason for each.
    pub(crate) lacking: MissingConsumers,
    /// The metrics of this replica.
    pub metrics: Metrics,
    /// The data keys that seal users' content; `None` without a master key.
    data_keys: Option<Arc<DataKeys>>,
    /// The archive that holds the messages trimmed from the log; `None` if there is none.
    past: Option<Arc<dyn ArchiveReader>>,
}

/// The identity of a log, kept in its stream's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogIdentity {
    /// The id made with the log: a log that was made again has another.
    pub id: Uuid,
    pub partitions: Partitions,
    /// The epoch that it began in.
    pub epoch: u32,
}

/// The errors of the bus.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// Somebody else wrote first. Reload and decide again.
    #[error("the subject has moved on: expected its last sequence to be {expected}")]
    Conflict { expected: u64 },
    /// May succeed later: no leader, no connection, no answer in time.
    #[error("nats is unavailable ({doing}): {source}")]
    Unavailable {
        doing: &'static str,
        #[source]
        source: Cause,
    },
    /// Will never succeed as it is.
    #[error("body of {size} bytes is larger than an event may be (bus.max_body_bytes)")]
    TooLarge { size: usize },
    /// The stored state was made by a version that this one cannot work with.
    #[error("{0}")]
    Refused(String),
}

impl BusError {
    pub(crate) fn unavailable<E: Into<Cause>>(doing: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::Unavailable { doing, source: source.into() }
    }
}

impl Bus {
    /// Connects, waiting for as long as it takes: a service that starts before its server is not an error.
    pub async fn connect(
        service: Service,
        instance: Name,
        nats: &NatsConfig,
        limits: &BusConfig,
    ) -> Result<Self, BusError> {
        let connected = JetStream::connect(NatsIdentity::Service(service), &instance, nats, limits).await;
        let port = connected.map_err(BusError::unavailable("connecting"))?;
        Ok(Self::from_port(Arc::new(port), service, instance, limits))
    }

    /// A bus on any port.
    pub fn from_port(port: Arc<dyn Port>, service: Service, instance: Name, limits: &BusConfig) -> Self {
        Self {
            service,
            instance,
            limits: limits.clone(),
            port,
            log: Arc::default(),
            standing: ReplicaProgress::default(),
            writes: stalled_writes::StalledWrites::default(),
            lacking: MissingConsumers::default(),
            metrics: Metrics::default(),
            data_keys: None,
            past: None,
        }
    }

    /// Has the bus seal content of users as configured.
    #[must_use]
    pub fn with_sealing(self, privacy: &PrivacyConfig) -> Self {
        Self { data_keys: DataKeys::new(privacy).map(Arc::new), ..self }
    }

    /// Sets the metrics by which the bus counts and measures its work.
    #[must_use]
    pub fn with_metrics(self, metrics: &Metrics) -> Self {
        Self { metrics: metrics.clone(), ..self }
    }

    /// The connection to NATS, for what no simulation runs: gateway, projector, administration. An error when the bus is
    /// on another port.
    pub fn nats(&self) -> Result<&JetStream, BusError> {
        self.port.nats().ok_or("this bus is not on it").map_err(BusError::unavailable("reaching it"))
    }

    /// The wall clock.
    pub fn now(&self) -> Timestamp {
        self.port.now()
    }

    /// A new id, for what enters from outside.
    pub fn new_id(&self) -> Uuid {
        self.port.new_id()
    }

    /// Runs a task in the background, until it ends or the replica does.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        tokio::spawn(self.host_task(task))
    }

    /// A background task for whoever spawns it by other means than [`Bus::spawn`], such as a set of tasks.
    pub fn host_task(&self, task: impl Future<Output = ()> + Send + 'static) -> BoxFuture<'static, ()> {
        self.port.host_task(Box::pin(task))
    }

    /// Hears what is said on a subject from now on, wildcards allowed.
    pub async fn subscribe(&self, subject: impl Into<String>) -> Result<LiveSubscription, BusError> {
        self.port.subscribe(subject.into(), None).await.map_err(BusError::unavailable("subscribing"))
    }

    /// Like [`Bus::subscribe`], but each message is heard by one replica of this service.
    pub async fn subscribe_shared(&self, subject: impl Into<String>) -> Result<LiveSubscription, BusError> {
        let group = Some(self.service.name());
        self.port.subscribe(subject.into(), group).await.map_err(BusError::unavailable("subscribing"))
    }

    /// Says something to whoever listens on a subject right now, such as an answer to whoever asked.
    pub async fn send_live(&self, subject: &str, payload: impl Into<Bytes>) -> Result<(), Cause> {
        self.port.send_live(subject.to_owned(), port::Headers::new(), payload.into()).await
    }

    /// Asks whoever answers on a subject.
    pub async fn request(
        &self,
        subject: impl Into<String>,
        payload: impl Into<Bytes>,
        patience: Duration,
    ) -> Result<Bytes, NoAnswer> {
        self.port.request(subject.into(), payload.into(), patience).await
    }

    /// The connection as it is now.
    pub fn connection(&self) -> ConnectionStatus {
        self.port.connection()
    }

    /// Returns the permission violations the server has reported to this replica so far.
    pub fn violations(&self) -> violations::ViolationCount {
        self.port.violations()
    }

    /// Returns the identity of the log found by [`Bus::find_log`].
    ///
    /// # Errors
    /// Returns an error if [`Bus::find_log`] has not found the log yet.
    pub fn log_identity(&self) -> Result<&LogIdentity, BusError> {
        let unknown =
            || BusError::Unavailable { doing: "looking at the log", source: "it was not looked for yet".into() };
        self.log.get().ok_or_else(unknown)
    }

    /// A subject as it is stored. What has no owner's partition to be added, such as a filter, stays as it is.
    pub fn stored_subject(&self, subject: &str) -> String {
        let is_exact = subject.split('.').count() == 4 && !subject.contains(['*', '>']);
        match self.log.get().filter(|_| is_exact) {
            Some(log) => log.partitions.stored_subject(subject),
            None => subject.to_owned(),
        }
    }

    /// Returns the reason a message of the log is in the wrong partition, or `None` if it is in the right one.
    pub fn misplacement_of(&self, message: &RawMessage) -> Option<UnreadableRecord> {
        self.log.get().and_then(|log| message.misplacement(log.partitions))
    }

    /// Hands over all that was written, acks too, and closes.
    pub async fn close(&self) {
        self.port.close().await;
    }
}
