//! What every endpoint works with.

use std::{net::IpAddr, ops::Deref, sync::Arc};

use kairo_core::{
    bus::{Bus, commands::DeclaredCommands, congestion::Congested, objects::Objects},
    sharing::places::{NoPlace, Permit, Places},
};
use kairo_read_model::{ReadModel, search::Search};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::{
    auth::{
        Caller,
        limits::{self, Limits, holder},
        oidc::Oidc,
        store::Keys,
        tickets::Tickets,
    },
    caps::spending::Spending,
    config::GatewayConfig,
    directory::Directory,
    forgetting::Orders,
    forks::Forks,
    http::Conversations,
    objects::inventory::Inventory,
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
    /// What users may call agents by.
    pub commands: DeclaredCommands,
    /// Conversations that chat clients were answered in.
    pub conversations: Conversations,
    /// Messages that were said of late.
    pub recent: Recent,
    /// Agents that take no more messages for now.
    pub congested: Congested,
    /// What is known of spending, for caps.
    pub spending: Spending,
    /// Who may use it, and how often.
    pub keys: Keys,
    /// Orders to forget somebody.
    pub orders: Orders,
    pub oidc: Oidc,
    pub limits: Arc<Limits>,
    /// What stands for a key in a URL.
    pub tickets: Tickets,
    /// Images and audio of messages.
    pub objects: Objects,
    pub inventory: Inventory,
    /// A permit for each of them that is on its way to or from a client.
    pub transfers: Places,
    /// A permit for each answer that takes reading an agent's whole part of the log.
    pub replays: Arc<Semaphore>,
    /// Agents that go on apart from the log.
    pub forks: Forks,
    /// A permit for each event stream, each WebSocket connection and each of its subscriptions.
    pub streams: Places,
    /// A permit for each request that needs a key where keys are required, until its answer begins.
    pub requests: Places,
    /// A permit for each request to what is open to everybody.
    pub open: Places,
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
    pub fn transfer_permit(&self, caller: &Caller) -> Result<Permit, Problem> {
        self.transfers.take_revocable(&holder(caller, None)).map_err(|no| match no {
            NoPlace::All => {
                Problem::unavailable("gateway.max_transfers objects are on their way; try again in a moment")
            }
            NoPlace::Own => Problem::too_many_at_once(
                "as many objects are on their way for this key as it may have of gateway.max_transfers \
                 (gateway.max_transfers_per_key at most)",
            ),
        })
    }

    /// For as long as an agent's part of the log is in memory. Only administrators take any, and have no shares among them.
    pub fn replay_permit(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let busy = "gateway.max_replays states and incident files are being made; try again in a moment";
        self.replays.clone().try_acquire_owned().map_err(|_| Problem::unavailable(busy))
    }

    /// For as long as a stream, a subscription or a connection lives, or until somebody is owed it who has fewer.
    pub fn stream_permit(&self, caller: &Caller, user: Option<&str>) -> Result<Permit, Problem> {
        self.streams.take_revocable(&holder(caller, user)).map_err(|no| match no {
            NoPlace::All => {
                Problem::unavailable("gateway.max_streams streams are open; try again when some have ended")
            }
            NoPlace::Own => Problem::too_many_at_once(
                "as many streams and subscriptions of this key are open as it may have of gateway.max_streams \
                 (gateway.max_streams_per_key at most)",
            ),
        })
    }

    /// What the read model answers to this caller, who waits no longer for others than their share says.
    pub fn read_model_for(&self, caller: &Caller, user: Option<&str>) -> ReadModel {
        self.read_model.for_holder(holder(caller, user))
    }

    /// Until the answer to a request begins.
    pub fn request_permit(&self, caller: &Caller, user: Option<&str>) -> Result<Permit, Problem> {
        self.requests.take_revocable(&holder(caller, user)).map_err(Self::no_request_permit)
    }

    pub fn no_request_permit(no: NoPlace) -> Problem {
        match no {
            NoPlace::All => Problem::unavailable("gateway.max_requests requests are dealt with; try again in a moment"),
            NoPlace::Own => Problem::too_many_at_once(
                "as many requests of this key are dealt with as it may have of gateway.max_requests \
                 (gateway.max_requests_per_key at most)",
            ),
        }
    }

    /// For as long as a request lasts to what is open to everybody.
    pub fn open_permit(&self, peer: IpAddr) -> Result<Permit, Problem> {
        self.open.take(&limits::peer(peer)).map_err(|no| match no {
            NoPlace::All => Problem::unavailable(
                "gateway.open_requests requests to what is open go on; try again when some are over",
            ),
            NoPlace::Own => Problem::too_many_at_once(
                "gateway.open_requests_per_peer requests to what is open go on from this address, or as many as it may have of \
                 gateway.open_requests",
            ),
        })
    }
}
