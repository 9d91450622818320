//! The real world of a service: NATS with JetStream, the machine's clock and its random numbers.

mod batch;
mod durable_pull;
mod isolation;
mod live_transport;
mod login;
mod provision;
mod publish;
mod read;
mod reconnects;
mod tail;
mod trimming;

use std::{sync::Arc, time::Duration};

use async_nats::jetstream::{Context, context::ContextBuilder};
use futures::future::BoxFuture;
use jiff::Timestamp;
use kairo_events::sealing::SealingKey;
use tokio::sync::Semaphore;
use uuid::Uuid;

use self::{batch::InboxPool, isolation::IsolationDetector, reconnects::Reconnects};
pub use self::{
    login::TLS,
    tail::{RECOUNT_AFTER, count_pending},
};
use super::{
    BusConfig, NatsConfig,
    port::{Cause, Machine, Port},
    provision::topology::DesiredTopology,
    violations::ViolationCounter,
};
use crate::{ids, ids::Name, permissions::NatsIdentity, privacy::new_key};

/// Readers of the log that a replica has opened at once. Requests of this kind are done by the server one after the other, and it has
/// others to answer.
const OPENED_AT_ONCE: usize = 4;

/// A replica's one connection.
#[derive(Clone, Debug)]
pub struct JetStream {
    pub client: async_nats::Client,
    pub jetstream: Context,
    pub(super) limits: BusConfig,
    pub(super) request_timeout: Duration,
    /// The unique name of this replica.
    instance: Name,
    wanted: DesiredTopology,
    violations: ViolationCounter,
    inboxes: InboxPool,
    isolation: IsolationDetector,
    reconnects: Reconnects,
    /// Readers of the log that may be opened at once, and how long that is waited for.
    opening: Arc<Semaphore>,
    reader_timeout: Duration,
}

impl JetStream {
    /// Connects, waiting for as long as it takes: a service that starts before its server is not an error.
    pub async fn connect(
        identity: NatsIdentity,
        instance: &Name,
        nats: &NatsConfig,
        limits: &BusConfig,
    ) -> Result<Self, Cause> {
        let timeout = Duration::from_millis(nats.request_timeout_ms);
        let violations = ViolationCounter::default();
        let options = login::connect_options(identity, nats, &violations)?
            .name(format!("kairo-{}-{instance}", identity.name()))
            .request_timeout(Some(timeout))
            .ping_interval(Duration::from_secs(5))
            .retry_on_initial_connect()
            .reconnect_delay_callback(|attempts| Duration::from_millis((50 << attempts.min(5)) as u64));
        let servers: Vec<&str> = nats.url.split(',').map(str::trim).collect();
        // Several may have one name, as behind a service of Kubernetes.
        let has_others = servers.len() > 1 || nats.replicas > 1;
        let isolated_after = has_others.then_some(Duration::from_millis(nats.isolated_after_ms));
        let client = options.connect(servers).await?;
        let reconnects = Reconnects::watch(client.clone());
        let jetstream = ContextBuilder::new().timeout(timeout).ack_timeout(timeout).build(client.clone());
        Ok(Self {
            client,
            jetstream,
            limits: limits.clone(),
            request_timeout: timeout,
            instance: instance.clone(),
            wanted: DesiredTopology::new(nats, limits),
            violations,
            inboxes: InboxPool::default(),
            isolation: IsolationDetector::new(isolated_after),
            reconnects,
            opening: Arc::new(Semaphore::new(OPENED_AT_ONCE)),
            reader_timeout: Duration::from_millis(nats.reader_timeout_ms),
        })
    }

    /// A name for a consumer that nobody else reads by. It stands in the subject of the request that makes it, which is
    /// how NATS knows that it is none of those that replicas share.
    pub fn reader_name(&self) -> String {
        format!("{}-{}", self.instance, ids::generate().simple())
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
        ids::generate()
    }

    fn new_key(&self) -> Result<SealingKey, Cause> {
        Ok(new_key().map_err(|error| format!("the machine has no random numbers: {error}"))?)
    }

    fn host_task(&self, task: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        task
    }
}
