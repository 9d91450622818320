//! Startup of the server, and its graceful shutdown.

use std::{sync::Arc, time::Duration};

use kairo_core::{
    bus::{Bus, commands::DeclaredCommands, congestion::CongestedQueues, objects::MediaStore},
    service::{ServiceContext, ServiceError},
    sharing::permit_pool::PermitPool,
    signing::EntrySigner,
};
use kairo_read_model::{ReadModel, search::SearchService};
use tokio::{net::TcpListener, sync::Semaphore};
use tokio_util::sync::CancellationToken;

use crate::{
    auth::{limits::RequestRates, oidc::TrustedIssuers, store::KeyStore, tickets::TicketStore},
    caps::{fencing, spending::SpendingCache},
    config::{Config, GatewayConfig},
    connections,
    directory::AgentDirectory,
    entrance,
    forgetting::{self, OrderStore},
    forks::HostedForks,
    http::{self, ConversationIndex},
    log_metrics,
    objects::{inventory::ObjectInventory, sweep},
    recent_messages::RecentMessages,
    state::{Gateway, GatewayState},
    tail::LogTail,
    tokens::LiveTokens,
};

/// Serves until `gateway.lame_duck_ms` after shutdown, for clients that have not noticed it yet; then accepts no more
/// connections and finishes the requests in progress, for `bus.drain_ms` at most.
pub async fn serve(config: Config, context: ServiceContext) -> Result<(), ServiceError> {
    let context = ServiceContext { bus: context.bus.with_archive(config.archive.archive_reader()), ..context };
    let ending = spawn_lame_duck(&context, Duration::from_millis(config.gateway.lame_duck_ms));
    let entrance = entrance::connect(&context.bus, &config).await?;
    let read_model = ReadModel::open(&config.postgres).map_err(|error| ServiceError::Other(error.to_string()))?;
    read_model.restrict_to_log(context.bus.log_identity()?.id);
    let search = SearchService::open(read_model.clone(), &config.postgres, &config.search);
    let search = search.map_err(|error| ServiceError::Other(error.to_string()))?;
    let listen = config.gateway.listen;
    let listener = TcpListener::bind(listen).await.map_err(|error| {
        ServiceError::Other(format!("gateway.listen: cannot listen on {listen}: {error}; choose another address"))
    })?;
    let address = listener.local_addr().unwrap_or(listen);
    let drain = Duration::from_millis(config.bus.drain_ms);
    let settings = Arc::new(config.gateway.clone());
    let streams = PermitPool::new(settings.max_streams, settings.max_streams_per_key);
    let signatures = EntrySigner::new(&config.signing);
    let open = || KeyStore::open(&context.bus, &config.gateway, &signatures, ending.clone());
    let keys = context.bus.retry_until_success("the API keys cannot be read yet", open);
    let Some(keys) = ending.run_until_cancelled(keys).await else { return Ok(()) };
    if context.bus.has_master_key() {
        let mark = || context.bus.mark_installation();
        let marked = context.bus.retry_until_success("the bucket of data keys cannot be written yet", mark);
        let Some(()) = ending.run_until_cancelled(marked).await else { return Ok(()) };
    }
    let oidc = TrustedIssuers::open(&config.gateway.oidc, &ending);
    let oidc = oidc.map_err(|error| ServiceError::Other(format!("gateway.oidc: no HTTP client: {error}")))?;
    let limits = RequestRates::new(config.gateway.rate_per_s, config.gateway.rate_burst);
    let directory = AgentDirectory::new(&context.bus, config.gateway.known_agents);
    let commands = DeclaredCommands::follow(&context.bus, config.gateway.known_commands, ending.clone());
    let said_again = Duration::from_millis(2 * config.gateway.openai_retry_ms);
    let recent = RecentMessages::new(&context.bus, said_again, config.gateway.remembered_messages);
    let conversations = ConversationIndex::new(config.gateway.remembered_conversations);
    let witnesses = (&directory, &recent, &conversations);
    let Some(tail) = follow_tail(&context.bus, &config.gateway, witnesses, &ending).await else { return Ok(()) };
    recent.look_back(config.gateway.stream_buffer, ending.clone());
    let messages = config.gateway.conversation_look_back;
    let buffer = config.gateway.stream_buffer;
    conversations.restore_from_log(&context.bus, messages, buffer, ending.clone());
    let objects = MediaStore::new(&context.bus);
    let inventory = ObjectInventory::follow(&objects, ending.clone()).await;
    let congested = CongestedQueues::follow(&context.bus, ending.clone()).await;
    let gateway: Gateway = GatewayState {
        keys,
        orders: OrderStore::new(&context.bus, &signatures),
        oidc,
        congested: congested.map_err(|error| ServiceError::Other(error.to_string()))?,
        spending: SpendingCache::default(),
        directory,
        commands,
        recent,
        conversations,
        tail,
        tokens: LiveTokens::new(&context.bus),
        limits: Arc::new(limits),
        tickets: TicketStore::new(&context.bus, &config.gateway, &signatures),
        objects,
        inventory,
        transfers: PermitPool::new(settings.max_transfers, settings.max_transfers_per_key),
        replays: Arc::new(Semaphore::new(settings.max_replays)),
        forks: HostedForks::new(&settings, &config.models, ending.clone()),
        requests: PermitPool::new(settings.max_requests, settings.max_requests_per_key),
        open: PermitPool::new(settings.open_requests, settings.open_requests_per_peer),
        bus: context.bus,
        read_model,
        search,
        streams: streams.clone(),
        config: settings.clone(),
        shutdown: ending.clone(),
    }
    .into();
    tokio::spawn(sweep::run(gateway.clone()));
    tokio::spawn(log_metrics::run(gateway.clone()));
    tokio::spawn(fencing::run(gateway.clone()));
    tokio::spawn(entrance::run(gateway.clone(), entrance));
    tokio::spawn(forgetting::order_execution::run(gateway.clone()));
    tokio::spawn(forgetting::forks::run(gateway.clone()));
    let app = http::routes(gateway, &context.readiness);
    context.readiness.announce_ready(&format!("url=http://{address}"));

    let leaving = connections::ShutdownSignals { announcement: context.shutdown, closing: ending.clone() };
    let server = async {
        connections::serve(listener, app, &settings, leaving).await;
        // The server no longer tracks WebSockets; each holds a permit until it is closed.
        streams.wait_until_idle().await;
    };
    let overdue = async {
        ending.cancelled().await;
        tokio::time::sleep(drain).await;
    };
    tokio::select! {
        () = server => Ok(()),
        () = overdue => {
            tracing::warn!("stopped before every request was answered");
            Ok(())
        }
    }
}

/// Returns a token that is cancelled `lame_duck` after shutdown, since load balancers need time to notice it. A
/// gateway that is not ready has no clients, and its token is cancelled at once.
fn spawn_lame_duck(context: &ServiceContext, lame_duck: Duration) -> CancellationToken {
    let shutdown = context.shutdown.clone();
    let readiness = context.readiness.clone();
    let ending = CancellationToken::new();
    let ends = ending.clone();
    tokio::spawn(async move {
        shutdown.cancelled().await;
        if readiness.is_ready() {
            readiness.set_ready(false);
            tracing::info!(?lame_duck, "no longer ready, and serving on for those who have not heard of it");
            tokio::time::sleep(lame_duck).await;
        }
        ends.cancel();
    });
    ending
}

/// Follows the log from its end and keeps the caches up to date; returns none if the gateway is stopped before NATS
/// answers.
async fn follow_tail(
    bus: &Bus,
    config: &GatewayConfig,
    (directory, recent, conversations): (&AgentDirectory, &RecentMessages, &ConversationIndex),
    ending: &CancellationToken,
) -> Option<LogTail> {
    let follow = || {
        let directory = directory.clone();
        let recent = recent.clone();
        let conversations = conversations.clone();
        let max_body = bus.limits.max_body_bytes;
        let witness = move |message: &_| {
            directory.witness(message);
            recent.witness(message);
            conversations.apply_message(message, max_body);
        };
        LogTail::follow(bus, config.stream_buffer, config.shared_messages, witness, ending.clone())
    };
    ending.run_until_cancelled(bus.retry_until_success("the log cannot be followed yet", follow)).await
}
