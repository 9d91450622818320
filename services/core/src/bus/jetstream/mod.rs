//! The real world of a service: NATS with JetStream, the machine's clock and its random numbers.

mod batch;
mod durable;
mod publish;
mod read;
mod tail;
mod wire;

use std::time::Duration;

use async_nats::jetstream::{Context, context::ContextBuilder};
use futures::future::BoxFuture;
use jiff::Timestamp;
use uuid::Uuid;

use self::batch::Inboxes;
use super::{
    BusConfig, NatsConfig,
    port::{Cause, Machine, Port},
};
use crate::{ids, ids::Name, subjects::Service};

/// A replica's one connection.
#[derive(Clone, Debug)]
pub struct JetStream {
    pub client: async_nats::Client,
    pub jetstream: Context,
    pub(super) limits: BusConfig,
    pub(super) replicas: usize,
    /// As configured: what holds is what the log says.
    pub(super) partitions: u32,
    pub(super) epoch: u32,
    pub(super) objects_max_bytes: u64,
    pub(super) request_timeout: Duration,
    inboxes: Inboxes,
}

impl JetStream {
    /// Connects, waiting for as long as it takes: a service that starts before its server is not an error.
    pub async fn connect(
        service: Service,
        instance: &Name,
        nats: &NatsConfig,
        limits: &BusConfig,
    ) -> Result<Self, Cause> {
        let timeout = Duration::from_millis(nats.request_timeout_ms);
        let mut options = async_nats::ConnectOptions::new()
            .name(format!("kairo-{}-{instance}", service.name()))
            .request_timeout(Some(timeout))
            .ping_interval(Duration::from_secs(5))
            .retry_on_initial_connect()
            .reconnect_delay_callback(|attempts| Duration::from_millis((50 << attempts.min(5)) as u64));
        if !nats.token.expose().is_empty() {
            options = options.token(nats.token.expose().to_owned());
        }
        let servers: Vec<&str> = nats.url.split(',').map(str::trim).collect();
        let client = options.connect(servers).await?;
        let jetstream = ContextBuilder::new().timeout(timeout).ack_timeout(timeout).build(client.clone());
        Ok(Self {
            client,
            jetstream,
            limits: limits.clone(),
            replicas: nats.replicas,
            partitions: nats.partitions,
            epoch: nats.epoch,
            objects_max_bytes: nats.objects_max_bytes,
            request_timeout: timeout,
            inboxes: Inboxes::default(),
        })
    }
}

impl Port for JetStream {
    fn nats(&self) -> Option<&JetStream> {
        Some(self)
    }
}

impl Machine for JetStream {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn new_id(&self) -> Uuid {
        ids::entering()
    }

    fn host(&self, task: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        task
    }
}
