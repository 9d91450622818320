//! What every endpoint works with.

use std::{net::IpAddr, ops::Deref, sync::Arc};

use kairo_core::bus::{Bus, commands::DeclaredCommands, congestion::Congested, objects::Objects};
use kairo_read_model::{ReadModel, search::Search};
use tokio_util::sync::CancellationToken;

use crate::{
    auth::{
        Caller,
        limits::{Limits, Whose},
        oidc::Oidc,
        shares::{NoPermit, Permit, Shares},
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
    pub transfers: Shares,
    /// A permit for each answer that takes reading an agent's whole part of the log.
    pub replays: Shares,
    /// Agents that go on apart from the log.
    pub forks: Forks,
    /// A permit for each event stream and each WebSocket connection.
    pub streams: Shares,
    /// A permit for each request that needs a key where keys are required, until its answer begins.
    pub requests: Shares,
    /// A permit for each request to what is open to everybody.
    pub open: Shares,
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
        self.transfers.take(Whose::of(caller)).map_err(|no| match no {
            NoPermit::All => {
                Problem::unavailable("gateway.max_transfers objects are on their way; try again in a moment")
            }
            NoPermit::Own => {
                Problem::too_many_at_once("gateway.max_transfers_per_key objects of this key are on their way")
            }
        })
    }

    /// For as long as an agent's part of the log is in memory.
    pub fn replay_permit(&self) -> Result<Permit, Problem> {
        let busy = "gateway.max_replays states and incident files are being made; try again in a moment";
        self.replays.take(None).map_err(|_| Problem::unavailable(busy))
    }

    /// For as long as a stream or connection lives.
    pub fn stream_permit(&self, caller: &Caller) -> Result<Permit, Problem> {
        self.streams.take(Whose::of(caller)).map_err(|no| match no {
            NoPermit::All => {
                Problem::unavailable("gateway.max_streams streams are open; try again when some have ended")
            }
            NoPermit::Own => Problem::too_many_at_once("gateway.max_streams_per_key streams of this key are open"),
        })
    }

    /// Until the answer to a request begins.
    pub fn request_permit(&self, caller: &Caller) -> Result<Permit, Problem> {
        self.requests.take(Whose::of(caller)).map_err(|no| match no {
            NoPermit::All => {
                Problem::unavailable("gateway.max_requests requests are dealt with; try again in a moment")
            }
            NoPermit::Own => {
                Problem::too_many_at_once("gateway.max_requests_per_key requests of this key are dealt with")
            }
        })
    }

    /// For as long as a request lasts to what is open to everybody.
    pub fn open_permit(&self, peer: IpAddr) -> Result<Permit, Problem> {
        self.open.take(Some(Whose::peer(peer))).map_err(|no| match no {
            NoPermit::All => Problem::unavailable(
                "gateway.open_requests requests to what is open go on; try again when some are over",
            ),
            NoPermit::Own => Problem::too_many_at_once(
                "gateway.open_requests_per_peer requests to what is open go on from this address",
            ),
        })
    }
}
