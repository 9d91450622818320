//! The bus: how services speak through JetStream, and the only place that knows how.
//!
//! [`append`] writes (guarded or not), [`ledger`] writes at most once, [`read`] and [`follow`] look things up,
//! [`objects`] keeps images and audio, [`consume`] drives a service, [`timers`] and [`hooks`] wait for a time and for others, [`provision`] makes streams and
//! consumers from the table of subjects.

pub mod append;
pub mod consume;
pub mod contact;
mod dead_letter;
pub mod follow;
pub mod holding;
pub mod hooks;
pub mod ledger;
pub mod objects;
pub mod patience;
pub mod provision;
pub mod read;
pub mod timers;

use std::time::Duration;

use async_nats::jetstream::{self, context::ContextBuilder};
use serde::{Deserialize, Serialize};

use self::read::Inboxes;
use crate::{
    config::{Mistake, Secret, Validate, check},
    ids::Name,
    subjects::Service,
};

/// How to reach NATS.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NatsConfig {
    /// One server or several, separated by commas. Default `nats://127.0.0.1:4222`.
    pub url: String,
    /// Token to authenticate with; empty for none.
    pub token: Secret,
    /// Longest wait for an answer of the server, in milliseconds. Default 2000.
    pub request_timeout_ms: u64,
    /// Copies of streams and buckets when they are first made: 1, 3 or 5. Default 1; 3 in production.
    pub replicas: usize,
    /// Images and audio that the object store keeps, in bytes, when it is first made; when they are so many, no more are
    /// taken. Default 2147483648.
    pub objects_max_bytes: u64,
}

/// Limits of consuming and publishing.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BusConfig {
    /// How long the server waits for a sign of life before it gives a message to another replica, in milliseconds.
    /// It is also how long a takeover takes. Default 5000.
    pub ack_wait_ms: u64,
    /// Messages a consumer may have out, over all replicas, those to be tried later included. Default 10000.
    pub max_ack_pending: u64,
    /// Messages one replica works on at once. Default 256.
    pub concurrency: usize,
    /// Messages one pull asks for. Default 64.
    pub pull_batch: usize,
    /// Largest body that is written or read, in bytes; larger ones become dead letters. Default 524288.
    pub max_body_bytes: usize,
    /// Deliveries before a message that keeps failing becomes a dead letter. Default 1000.
    pub max_attempts: u64,
    /// First delay before a failed message is tried again, in milliseconds; it doubles each time. Default 100.
    pub retry_first_ms: u64,
    /// Longest delay before a failed message is tried again, in milliseconds. Default 15000.
    pub retry_longest_ms: u64,
    /// How long something that was done is kept while the server is away, until it can be written, in milliseconds.
    /// Default 120000.
    pub hold_ms: u64,
    /// How long a stopping service may finish what it began, in milliseconds. Default 10000.
    pub drain_ms: u64,
}

impl Default for NatsConfig {
    fn default() -> Self {
        Self {
            url: "nats://127.0.0.1:4222".to_owned(),
            token: Secret::default(),
            request_timeout_ms: 2_000,
            replicas: 1,
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
            drain_ms: 10_000,
        }
    }
}

impl Validate for NatsConfig {
    fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        check(&mut mistakes, "request_timeout_ms", self.request_timeout_ms, 100..=60_000, "milliseconds");
        check(&mut mistakes, "replicas", self.replicas as u64, 1..=5, "copies");
        check(&mut mistakes, "objects_max_bytes", self.objects_max_bytes, 1_048_576..=1_000_000_000_000_000, "bytes");
        mistakes
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
        check(&mut mistakes, "max_attempts", self.max_attempts, 1..=1_000_000, "deliveries");
        check(&mut mistakes, "retry_first_ms", self.retry_first_ms, 1..=60_000, "milliseconds");
        check(&mut mistakes, "retry_longest_ms", self.retry_longest_ms, 1..=600_000, "milliseconds");
        check(&mut mistakes, "hold_ms", self.hold_ms, 0..=86_400_000, "milliseconds");
        check(&mut mistakes, "drain_ms", self.drain_ms, 100..=600_000, "milliseconds");
        mistakes
    }
}

/// A service's one connection, and what it signs with.
#[derive(Clone, Debug)]
pub struct Bus {
    pub service: Service,
    /// This replica, unique among all.
    pub instance: Name,
    pub limits: BusConfig,
    pub client: async_nats::Client,
    pub jetstream: jetstream::Context,
    replicas: usize,
    objects_max_bytes: u64,
    request_timeout: Duration,
    inboxes: Inboxes,
}

/// Why the bus could not do what was asked.
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
        source: async_nats::Error,
    },
    /// Will never succeed as it is.
    #[error("body of {size} bytes is larger than an event may be (bus.max_body_bytes)")]
    TooLarge { size: usize },
}

impl BusError {
    pub(crate) fn unavailable(doing: &'static str) -> impl FnOnce(async_nats::Error) -> Self {
        move |source| Self::Unavailable { doing, source }
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
        let mut options = async_nats::ConnectOptions::new()
            .name(format!("kairo-{}-{instance}", service.name()))
            .request_timeout(Some(Duration::from_millis(nats.request_timeout_ms)))
            .ping_interval(Duration::from_secs(5))
            .retry_on_initial_connect()
            .reconnect_delay_callback(|attempts| Duration::from_millis((50 << attempts.min(5)) as u64));
        if !nats.token.expose().is_empty() {
            options = options.token(nats.token.expose().to_owned());
        }
        let servers: Vec<&str> = nats.url.split(',').map(str::trim).collect();
        let client = options
            .connect(servers)
            .await
            .map_err(|error| BusError::Unavailable { doing: "connecting", source: error.into() })?;
        let timeout = Duration::from_millis(nats.request_timeout_ms);
        let jetstream = ContextBuilder::new().timeout(timeout).ack_timeout(timeout).build(client.clone());
        Ok(Self {
            service,
            instance,
            limits: limits.clone(),
            client,
            jetstream,
            replicas: nats.replicas,
            objects_max_bytes: nats.objects_max_bytes,
            request_timeout: timeout,
            inboxes: Inboxes::default(),
        })
    }

    /// Hands over all that was written, acks too, and closes.
    pub async fn close(&self) {
        if let Err(error) = self.client.flush().await {
            tracing::warn!(%error, "last words may not have reached nats");
        }
        if let Err(error) = self.client.drain().await {
            tracing::debug!(%error, "nats was closed already");
        }
    }
}
