//! What every endpoint works with.

use std::sync::Arc;

use kairo_core::bus::{Bus, objects::Objects};
use kairo_read_model::{ReadModel, search::Search};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::{
    auth::{limits::Limits, store::Keys, tickets::Tickets},
    config::GatewayConfig,
    problem::Problem,
    tail::Tail,
};

/// The state of the gateway; cloning it is cheap.
#[derive(Clone)]
pub struct Gateway {
    pub bus: Bus,
    pub read_model: ReadModel,
    pub search: Search,
    pub config: Arc<GatewayConfig>,
    /// Where event streams come from.
    pub tail: Tail,
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
