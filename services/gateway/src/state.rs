//! What every endpoint works with.

use std::{ops::Deref, sync::Arc};

use kairo_core::bus::{Bus, congestion::Congested, objects::Objects};
use kairo_read_model::{ReadModel, search::Search};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::{
    auth::{limits::Limits, store::Keys, tickets::Tickets},
    config::GatewayConfig,
    directory::Directory,
    problem::Problem,
    recent::Recent,
    tail::Tail,
    tokens::Tokens,
};

/// The state of the gateway. Every request clones it several times, so it is one count.
#[derive(Clone)]
pub struct Gateway(Arc<Parts>);

/// What it is made of.
pub struct Parts {
    pub bus: Bus,
    pub read_model: ReadModel,
    pub search: Search,
    pub config: Arc<GatewayConfig>,
    /// Where event streams come from.
    pub tail: Tail,
    /// What models are writing.
    pub tokens: Tokens,
    pub directory: Directory,
    /// Messages that were said of late.
    pub recent: Recent,
    /// Agents that take no more messages for now.
    pub congested: Congested,
    /// Who may use it, and how often.
    pub keys: Keys,
    pub limits: Arc<Limits>,
    /// What stands for a key in a URL.
    pub tickets: Tickets,
    /// Images and audio of messages.
    pub objects: Objects,
    /// A permit for each of them that is on its way to or from a client.
    pub transfers: Arc<Semaphore>,
    /// A permit for each event stream and each WebSocket connection.
    pub streams: Arc<Semaphore>,
    /// Event streams and connections end when it is cancelled.
    pub shutdown: CancellationToken,
}

impl Deref for Gateway {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl From<Parts> for Gateway {
    fn from(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Gateway {
    /// For as long as a whole object is in memory.
    pub fn transfer_permit(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let full = |_| Problem::unavailable("gateway.max_transfers objects are on their way; try again in a moment");
        self.transfers.clone().try_acquire_owned().map_err(full)
    }

    /// For as long as a stream or connection lives.
    pub fn stream_permit(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let full = |_| Problem::unavailable("gateway.max_streams streams are open; try again when some have ended");
        self.streams.clone().try_acquire_owned().map_err(full)
    }
}
