//! The shared state of all endpoints.

use std::{net::IpAddr, ops::Deref, sync::Arc};

use kairo_core::{
    bus::{Bus, commands::DeclaredCommands, congestion::CongestedQueues, objects::MediaStore},
    sharing::permit_pool::{NoPermit, Permit, PermitPool},
};
use kairo_read_model::{ReadModel, search::SearchService};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::{
    auth::{
        Caller,
        limits::{self, RequestRates, holder_for_caller},
        oidc::TrustedIssuers,
        store::KeyStore,
        tickets::TicketStore,
    },
    caps::spending::SpendingCache,
    config::GatewayConfig,
    directory::AgentDirectory,
    forgetting::OrderStore,
    forks::HostedForks,
    http::ConversationIndex,
    objects::inventory::ObjectInventory,
    problem::Problem,
    recent_messages::RecentMessages,
    tail::LogTail,
    tokens::LiveTokens,
};

/// The state of the gateway. Every request clones it several times, so a clone is one reference count.
#[derive(Clone)]
pub struct Gateway(Arc<GatewayState>);

/// The fields of [`Gateway`].
pub struct GatewayState {
    pub bus: Bus,
    pub read_model: ReadModel,
    pub search: SearchService,
    pub config: Arc<GatewayConfig>,
    /// The tail of the log, the source of event streams.
    pub tail: LogTail,
    /// Tokens that models are writing now.
    pub tokens: LiveTokens,
    pub directory: AgentDirectory,
    /// Commands that agents have declared for users.
    pub commands: DeclaredCommands,
    /// Conversations that chat clients were answered in.
    pub conversations: ConversationIndex,
    /// Recently sent messages.
    pub recent: RecentMessages,
    /// Agents that take no more messages for now.
    pub congested: CongestedQueues,
    /// Spending on models so far, for caps.
    pub spending: SpendingCache,
    /// API keys in force.
    pub keys: KeyStore,
    /// Orders to forget somebody.
    pub orders: OrderStore,
    pub oidc: TrustedIssuers,
    pub limits: Arc<RequestRates>,
    /// Short-lived tickets that stand for a key in a URL.
    pub tickets: TicketStore,
    /// Images and audio of messages.
    pub objects: MediaStore,
    pub inventory: ObjectInventory,
    /// Permits, one for each object on its way to or from a client.
    pub transfers: PermitPool,
    /// Permits, one for each response that reads an agent's whole part of the log.
    pub replays: Arc<Semaphore>,
    /// Forks of agents, which run apart from the log.
    pub forks: HostedForks,
    /// Permits, one for each event stream, each WebSocket connection and each of its subscriptions.
    pub streams: PermitPool,
    /// Permits, one for each request that needs a key where keys are required, held until its response begins.
    pub requests: PermitPool,
    /// Permits, one for each request to an endpoint that is open to everybody.
    pub open: PermitPool,
    /// Event streams and connections end when it is cancelled.
    pub shutdown: CancellationToken,
}

impl Deref for Gateway {
    type Target = GatewayState;

    fn deref(&self) -> &GatewayState {
        &self.0
    }
}

impl From<GatewayState> for Gateway {
    fn from(parts: GatewayState) -> Self {
        Self(Arc::new(parts))
    }
}

impl Gateway {
    /// Takes a permit to hold while a whole object is in memory.
    pub fn transfer_permit(&self, caller: &Caller) -> Result<Permit, Problem> {
        self.transfers.try_acquire_revocable(&holder_for_caller(caller, None)).map_err(|no| match no {
            NoPermit::All => {
                Problem::unavailable("gateway.max_transfers objects are on their way; try again in a moment")
            }
            NoPermit::Own => Problem::too_many_at_once(
                "as many objects are on their way for this key as it may have of gateway.max_transfers \
                 (gateway.max_transfers_per_key at most)",
            ),
        })
    }

    /// Takes a permit to hold while an agent's part of the log is in memory. Only administrators take these permits, so
    /// they are not divided into shares.
    pub fn replay_permit(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let busy = "gateway.max_replays states and incident files are being made; try again in a moment";
        self.replays.clone().try_acquire_owned().map_err(|_| Problem::unavailable(busy))
    }

    /// Takes a permit to hold while a stream, a subscription or a connection lives. It is revoked if a caller with
    /// fewer permits is owed it.
    pub fn stream_permit(&self, caller: &Caller, user: Option<&str>) -> Result<Permit, Problem> {
        self.streams.try_acquire_revocable(&holder_for_caller(caller, user)).map_err(|no| match no {
            NoPermit::All => {
                Problem::unavailable("gateway.max_streams streams are open; try again when some have ended")
            }
            NoPermit::Own => Problem::too_many_at_once(
                "as many streams and subscriptions of this key are open as it may have of gateway.max_streams \
                 (gateway.max_streams_per_key at most)",
            ),
        })
    }

    /// Returns the read model for queries of this caller, who shares its capacity fairly with others.
    pub fn read_model_for(&self, caller: &Caller, user: Option<&str>) -> ReadModel {
        self.read_model.for_holder(holder_for_caller(caller, user))
    }

    /// Takes a permit to hold until the response to a request begins.
    pub fn request_permit(&self, caller: &Caller, user: Option<&str>) -> Result<Permit, Problem> {
        self.requests.try_acquire_revocable(&holder_for_caller(caller, user)).map_err(Self::request_permit_problem)
    }

    pub fn request_permit_problem(no: NoPermit) -> Problem {
        match no {
            NoPermit::All => {
                Problem::unavailable("gateway.max_requests requests are dealt with; try again in a moment")
            }
            NoPermit::Own => Problem::too_many_at_once(
                "as many requests of this key are dealt with as it may have of gateway.max_requests \
                 (gateway.max_requests_per_key at most)",
            ),
        }
    }

    /// Takes a permit to hold while a request to an open endpoint lasts.
    pub fn open_permit(&self, peer: IpAddr) -> Result<Permit, Problem> {
        self.open.try_acquire(&limits::holder_for_peer(peer)).map_err(|no| match no {
            NoPermit::All => Problem::unavailable(
                "gateway.open_requests requests to what is open go on; try again when some are over",
            ),
            NoPermit::Own => Problem::too_many_at_once(
                "gateway.open_requests_per_peer requests to what is open go on from this address, or as many as it may have of \
                 gateway.open_requests",
            ),
        })
    }
}
