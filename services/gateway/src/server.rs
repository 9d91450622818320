//! Listening, and an orderly end.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use kairo_core::{
    bus::objects::Objects,
    service::{Context, ServiceError},
};
use kairo_read_model::{ReadModel, search::Search};
use tokio::{net::TcpListener, sync::Semaphore};

use crate::{
    auth::{limits::Limits, store::Keys, tickets::Tickets},
    config::Config,
    http::{self, Gateway},
    tail::Tail,
};

/// Serves until shutdown, then takes no more and finishes what was begun, for `bus.drain_ms` at most.
pub async fn serve(config: Config, context: Context) -> Result<(), ServiceError> {
    let read_model = ReadModel::open(&config.postgres).map_err(|error| ServiceError::Other(error.to_string()))?;
    let search = Search::open(read_model.clone(), &config.postgres, &config.search);
    let search = search.map_err(|error| ServiceError::Other(error.to_string()))?;
    let listen = config.gateway.listen;
    let listener = TcpListener::bind(listen).await.map_err(|error| {
        ServiceError::Other(format!("gateway.listen: cannot listen on {listen}: {error}; choose another address"))
    })?;
    let address = listener.local_addr().unwrap_or(listen);
    let drain = Duration::from_millis(config.bus.drain_ms);
    let max_streams = u32::try_from(config.gateway.max_streams).unwrap_or(u32::MAX);
    let streams = Arc::new(Semaphore::new(config.gateway.max_streams));
    let keys = Keys::open(&context.bus, &config.gateway, context.shutdown.clone()).await;
    let keys = keys.map_err(|error| ServiceError::Other(error.to_string()))?;
    let limits = Limits::new(config.gateway.rate_per_s, config.gateway.rate_burst);
    let gateway = Gateway {
        keys,
        limits: Arc::new(limits),
        tickets: Tickets::new(&context.bus, &config.gateway),
        tail: Tail::new(&context.bus, config.gateway.stream_buffer, config.gateway.shared_messages),
        objects: Objects::new(&context.bus),
        transfers: Arc::new(Semaphore::new(config.gateway.max_transfers)),
        bus: context.bus,
        read_model,
        search,
        streams: streams.clone(),
        config: Arc::new(config.gateway),
        shutdown: context.shutdown.clone(),
    };
    let app = http::routes(gateway, &context.readiness);
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    context.readiness.announce(&format!("url=http://{address}"));

    let shutdown = context.shutdown.clone();
    let stopping = async move {
        shutdown.cancelled().await;
        context.readiness.set(false);
    };
    let server = async {
        axum::serve(listener, app).with_graceful_shutdown(stopping).await?;
        // WebSockets have left the server's hands; each holds a permit until it has said its last words.
        drop(streams.acquire_many(max_streams).await);
        Ok::<_, std::io::Error>(())
    };
    let overdue = async {
        context.shutdown.cancelled().await;
        tokio::time::sleep(drain).await;
    };
    tokio::select! {
        ended = server => ended.map_err(|error| ServiceError::Other(format!("cannot serve: {error}"))),
        () = overdue => {
            tracing::warn!("stopped before every request was answered");
            Ok(())
        }
    }
}
