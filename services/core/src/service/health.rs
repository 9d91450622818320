//! Liveness and readiness over HTTP: liveness asks nothing of anybody else, readiness does.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use async_nats::connection::State;
use axum::{Router, http::StatusCode, routing::get};
use serde::{Deserialize, Serialize};
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;

use super::ServiceError;
use crate::config::{Mistake, Validate};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HealthConfig {
    /// Where `/healthz` and `/readyz` are served. Port 0 takes a free one, so that replicas need no configuration.
    /// Default `127.0.0.1:0`.
    pub listen: SocketAddr,
}

impl Default for HealthConfig {
    fn default() -> Self {
        Self { listen: SocketAddr::from(([127, 0, 0, 1], 0)) }
    }
}

impl Validate for HealthConfig {
    fn mistakes(&self) -> Vec<Mistake> {
        Vec::new()
    }
}

/// Whether the service takes work right now.
#[derive(Clone, Default)]
pub struct Readiness {
    ready: Arc<watch::Sender<bool>>,
    url: Arc<OnceLock<String>>,
    nats: Arc<OnceLock<async_nats::Client>>,
}

impl Readiness {
    /// True between [`Readiness::announce`] and the end, while there is a connection to NATS.
    pub fn get(&self) -> bool {
        let connected = |nats: &async_nats::Client| nats.connection_state() == State::Connected;
        *self.ready.borrow() && self.nats.get().is_none_or(connected)
    }

    pub(super) fn depend_on(&self, nats: &async_nats::Client) {
        let _ = self.nats.set(nats.clone());
    }

    pub fn set(&self, ready: bool) {
        self.ready.send_replace(ready);
    }

    /// Changes whenever it is set; the connection to NATS is not watched.
    pub fn changes(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }

    /// Turns readiness on and says so on standard output, in one line that whoever started the service can wait for.
    pub fn announce(&self, more: &str) {
        self.set(true);
        println!("ready health={}{}{more}", self.url(), if more.is_empty() { "" } else { " " });
    }

    /// Where health is served.
    pub fn url(&self) -> &str {
        self.url.get().map(String::as_str).unwrap_or_default()
    }

    /// The two routes, for a service that has an HTTP server of its own, too.
    pub fn routes<S: Clone + Send + Sync + 'static>(&self) -> Router<S> {
        let readiness = self.clone();
        let ready = move || async move {
            match readiness.get() {
                true => (StatusCode::OK, "ready\n"),
                false => (StatusCode::SERVICE_UNAVAILABLE, "not ready\n"),
            }
        };
        Router::new().route("/healthz", get(|| async { "alive\n" })).route("/readyz", get(ready))
    }

    pub(super) async fn serve(&self, config: &HealthConfig, shutdown: CancellationToken) -> Result<(), ServiceError> {
        let listener = TcpListener::bind(config.listen).await.map_err(|error| {
            ServiceError::Other(format!("health.listen: cannot listen on {}: {error}", config.listen))
        })?;
        let address = listener.local_addr().unwrap_or(config.listen);
        let _ = self.url.set(format!("http://{address}"));
        let routes = self.routes();
        tokio::spawn(async move {
            let server = axum::serve(listener, routes).with_graceful_shutdown(shutdown.cancelled_owned());
            if let Err(error) = server.await {
                tracing::error!(%error, "health is no longer served");
            }
        });
        Ok(())
    }
}
