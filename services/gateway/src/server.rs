//! Startup of the server, and its graceful shutdown.

use std::{sync::Arc, time::Duration};

use kairo_core::{
    bus::{Bus, commands::DeclaredCommands, congestion::Congested, objects::Objects},
    service::{Context, ServiceError},
    sharing::places::Places,
    signing::Signatures,
};
use kairo_read_model::{ReadModel, search::Search};
use tokio::{net::TcpListener, sync::Semaphore};
use tokio_util::sync::CancellationToken;

use crate::{
    auth::{limits::Limits, oidc::Oidc, store::Keys, tickets::Tickets},
    caps::{fencing, spending::Spending},
    config::{Config, GatewayConfig},
    connections,
    directory::Directory,
    entrance,
    forgetting::{self, Orders},
    forks::Forks,
    http::{self, Conversations},
    log_metrics,
    objects::{inventory::Inventory, sweep},
    recent::Recent,
    state::{Gateway, Parts},
    tail::Tail,
    tokens::Tokens,
};

/// Serves until `gateway.lame_duck_ms` after shutdown, for clients that have not noticed it yet; then accepts no more
/// connections and finishes the requests in progress, for `bus.drain_ms` at most.
pub async fn serve(config: Config, context: Context) -> Result<(), ServiceError> {
    let context = Context { bus: context.bus.with_past(config.archive.past()), ..context };
    let ending = ending(&context, Duration::from_millis(config.gateway.lame_duck_ms));
    let entrance = entrance::connect(&context.bus, &config).await?;
    let read_model = ReadModel::open(&config.postgres).map_err(|error| ServiceError::Other(error.to_string()))?;
    read_model.only_of_log(context.bus.log()?.id);
    let search = Search::open(read_model.clone(), &config.postgres, &config.search);
    let search = search.map_err(|error| ServiceError::Other(error.to_string()))?;
    let listen = config.gateway.listen;
    let listener = TcpListener::bind(listen).await.map_err(|error| {
        ServiceError::Other(format!("gateway.listen: cannot listen on {listen}: {error}; choose another address"))
    })?;
    let address = listener.local_addr().unwrap_or(listen);
    let drain = Duration::from_millis(config.bus.drain_ms);
    let settings = Arc::new(config.gateway.clone());
    let streams = Places::new(settings.max_streams, settings.max_streams_per_key);
    let signatures = Signatures::new(&config.signing);
    let open = || Keys::open(&context.bus, &config.gateway, &signatures, ending.clone());
    let keys = context.bus.in_time("the API keys cannot be read yet", open);
    let Some(keys) = ending.run_until_cancelled(keys).await else { return Ok(()) };
    if context.bus.seals() {
        let mark = || context.bus.mark_installation();
        let marked = context.bus.in_time("the bucket of data keys cannot be written yet", mark);
        let Some(()) = ending.run_until_cancelled(marked).await else { return Ok(()) };
    }
    let oidc = Oidc::open(&config.gateway.oidc, &ending);
    let oidc = oidc.map_err(|error| ServiceError::Other(format!("gateway.oidc: no HTTP client: {error}")))?;
    let limits = Limits::new(config.gateway.rate_per_s, config.gateway.rate_burst);
    let directory = Directory::new(&context.bus, config.gateway.known_agents);
    let commands = DeclaredCommands::follow(&context.bus, config.gateway.known_commands, ending.clone());
    let said_again = Duration::from_millis(2 * config.gateway.openai_retry_ms);
    let recent = Recent::new(&context.bus, said_again, config.gateway.remembered_messages);
    let conversations = Conversations::new(config.gateway.remembered_conversations);
    let witnesses = (&directory, &recent, &conversations);
    let Some(tail) = tail(&context.bus, &config.gateway, witnesses, &ending).await else { return Ok(()) };
    recent.look_back(config.gateway.stream_buffer, ending.clone());
    let (messages, buffer) = (config.gateway.conversation_look_back, config.gateway.stream_buffer);
    conversations.look_back(&context.bus, messages, buffer, ending.clone());
    let objects = Objects::new(&context.bus);
    let inventory = Inventory::follow(&objects, ending.clone()).await;
    let congested = Congested::follow(&context.bus, ending.clone()).await;
    let gateway: Gateway = Parts {
        keys,
        orders: Orders::new(&context.bus, &signatures),
        oidc,
        congested: congested.map_err(|error| ServiceError::Other(error.to_string()))?,
        spending: Spending::default(),
        directory,
        commands,
        recent,
        conversations,
        tail,
        tokens: Tokens::new(&context.bus),
        limits: Arc::new(limits),
        tickets: Tickets::new(&context.bus, &config.gateway, &signatures),
        objects,
        inventory,
        transfers: Places::new(settings.max_transfers, settings.max_transfers_per_key),
        replays: Arc::new(Semaphore::new(settings.max_replays)),
        forks: Forks::new(&settings, &config.models, ending.clone()),
        requests: Places::new(settings.max_requests, settings.max_requests_per_key),
        open: Places::new(settings.open_requests, settings.open_requests_per_peer),
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
    tokio::spawn(forgetting::carrying_out::run(gateway.clone()));
    tokio::spawn(forgetting::forks::run(gateway.clone()));
    let app = http::routes(gateway, &context.readiness);
    context.readiness.announce(&format!("url=http://{address}"));

    let leaving = connections::Leaving { told: context.shutdown, ends: ending.clone() };
    let server = async {
        connections::serve(listener, app, &settings, leaving).await;
        // The server no longer tracks WebSockets; each holds a permit until it is closed.
        streams.returned().await;
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
fn ending(context: &Context, lame_duck: Duration) -> CancellationToken {
    let (shutdown, readiness, ending) = (context.shutdown.clone(), context.readiness.clone(), CancellationToken::new());
    let ends = ending.clone();
    tokio::spawn(async move {
        shutdown.cancelled().await;
        if readiness.get() {
            readiness.set(false);
            tracing::info!(?lame_duck, "no longer ready, and serving on for those who have not heard of it");
            tokio::time::sleep(lame_duck).await;
        }
        ends.cancel();
    });
    ending
}

/// Follows the log from its end and keeps the caches up to date; returns none if the gateway is stopped before NATS
/// answers.
async fn tail(
    bus: &Bus,
    config: &GatewayConfig,
    (directory, recent, conversations): (&Directory, &Recent, &Conversations),
    ending: &CancellationToken,
) -> Option<Tail> {
    let follow = || {
        let (directory, recent, conversations) = (directory.clone(), recent.clone(), conversations.clone());
        let max_body = bus.limits.max_body_bytes;
        let witness = move |message: &_| {
            directory.witness(message);
            recent.witness(message);
            conversations.witness(message, max_body);
        };
        Tail::follow(bus, config.stream_buffer, config.shared_messages, witness, ending.clone())
    };
    ending.run_until_cancelled(bus.in_time("the log cannot be followed yet", follow)).await
}
