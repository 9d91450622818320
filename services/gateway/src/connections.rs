//! Client connections, bounded in all and per peer, and closed when idle.
//!
//! The head of the first request must arrive within `gateway.header_timeout_ms`. After that a connection may be idle
//! for `gateway.idle_timeout_ms`: no request is in progress, and the client has taken no bytes of a response. Bytes
//! that never complete a request do not count as activity, so a client cannot keep a connection open with a partial
//! head.

mod activity;

use std::{convert::Infallible, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::{
    BoxError, Router,
    body::{Body, Bytes, HttpBody},
    extract::{ConnectInfo, Request},
    http::{self, HeaderValue, StatusCode, Version, header::CONNECTION},
    response::Response,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
    service::TowerToHyperService,
};
use kairo_core::sharing::permit_pool::{Permit, PermitPool};
use tokio::{
    net::{TcpListener, TcpStream},
    time::sleep,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::{Service, ServiceExt, service_fn};

use crate::{auth::limits, config::GatewayConfig};
use activity::{ConnectionActivity, MonitoredStream};

/// Pause before the next accept when the system has no room for another connection.
const PAUSE: Duration = Duration::from_secs(1);
/// The time that an idle connection gets to shut down gracefully before it is dropped.
const FAREWELL: Duration = Duration::from_secs(1);

/// Timeouts of a connection: for its first request head, and while idle.
#[derive(Clone, Copy)]
struct ConnectionTimeouts {
    header: Duration,
    idle: Duration,
}

/// The two stages of a shutdown: `told` announces it, and some time later `ends` stops accepting connections.
#[derive(Clone, Default)]
pub struct ShutdownSignals {
    pub announcement: CancellationToken,
    pub closing: CancellationToken,
}

/// Accepts and serves connections until `leaving.ends`, then finishes the requests in progress. Once `leaving.told` is
/// cancelled, HTTP/1 connections close with their next response, so that none is closed during a request.
pub async fn serve(listener: TcpListener, app: Router, config: &GatewayConfig, leaving: ShutdownSignals) {
    let places = PermitPool::new(config.max_connections, config.max_connections_per_peer);
    let patience = ConnectionTimeouts {
        header: Duration::from_millis(config.header_timeout_ms),
        idle: Duration::from_millis(config.idle_timeout_ms),
    };
    let connections = TaskTracker::new();
    while let Some(accepted) = leaving.closing.run_until_cancelled(listener.accept()).await {
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                pause_after_failed_accept(&error).await;
                continue;
            }
        };
        // Dropped without a response: a peer with so many connections would not heed it, and it would take time.
        let Ok(permit) = places.try_acquire(&limits::holder_for_peer(peer.ip())) else {
            tracing::debug!(%peer, "no more connections are taken from there, or at all");
            continue;
        };
        connections.spawn(serve_connection(stream, peer, app.clone(), patience, leaving.clone(), permit));
    }
    connections.close();
    connections.wait().await;
}

/// Handles a failed accept. Errors of a single connection are ignored; after any other, such as a lack of file
/// descriptors, it pauses, since trying again at once is of no use.
async fn pause_after_failed_accept(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if !matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        tracing::warn!(%error, "no connection can be taken");
        sleep(PAUSE).await;
    }
}

/// Serves one connection to its end. A WebSocket goes on without it.
async fn serve_connection(
    stream: TcpStream,
    peer: SocketAddr,
    app: Router,
    patience: ConnectionTimeouts,
    leaving: ShutdownSignals,
    _permit: Permit,
) {
    // A piece of a stream is sent when it is written: without this it would wait for the client to acknowledge the one
    // before, which clients put off.
    drop(stream.set_nodelay(true));
    let activity = Arc::new(ConnectionActivity::default());
    let service = connection_service(app, peer, activity.clone(), leaving.announcement);
    let mut builder = Builder::new(TokioExecutor::new());
    // WebSockets over HTTP/2 need it.
    builder.http2().enable_connect_protocol();
    let stream = TokioIo::new(MonitoredStream::new(stream, activity.clone()));
    let mut served = pin!(builder.serve_connection_with_upgrades(stream, TowerToHyperService::new(service)));
    let silent = tokio::select! {
        _ = served.as_mut() => return,
        () = leaving.closing.cancelled() => false,
        () = activity.wait_for_silence(patience.header, patience.idle) => true,
    };
    served.as_mut().graceful_shutdown();
    if silent {
        drop(tokio::time::timeout(FAREWELL, served).await);
    } else {
        drop(served.await);
    }
}

/// Wraps the endpoints for the connections of this peer: tracks activity and closes HTTP/1 connections on shutdown.
fn connection_service<B>(
    app: Router,
    peer: SocketAddr,
    activity: Arc<ConnectionActivity>,
    told_to_leave: CancellationToken,
) -> impl Service<http::Request<B>, Response = Response, Error = Infallible, Future: Send> + Clone + Send
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    service_fn(move |request: http::Request<B>| {
        let dealt_with = activity.begin_request();
        let is_http1 = request.version() < Version::HTTP_2;
        let told_to_leave = told_to_leave.clone();
        let mut request: Request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        let answer = app.clone().oneshot(request);
        async move {
            let mut answer = answer.await?;
            drop(dealt_with);
            if is_http1 && told_to_leave.is_cancelled() && answer.status() != StatusCode::SWITCHING_PROTOCOLS {
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok(answer)
        }
    })
}
