//! Liveness and readiness over HTTP: liveness asks nothing of anybody else, readiness does. And, for whoever may probe,
//! metrics.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use axum::{
    Router,
    http::{StatusCode, header::CONTENT_TYPE},
    routing::get,
};
use kairo_proto::v1::{RefusedToolRow, ToolServerRow, WaitRow};
use serde::{Deserialize, Serialize};
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;

use super::{ServiceError, status_rows::StatusRows};
use crate::{
    bus::Bus,
    config::{Mistake, Validate},
    metrics::{self, Metrics},
};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HealthConfig {
    /// Address that serves `/healthz`, `/readyz` and `/metrics`. Port 0 takes a free one, so that replicas need no
    /// configuration. Default `127.0.0.1:0`.
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

/// The readiness of the service for work, and its notes for operators.
#[derive(Clone, Default)]
pub struct Readiness {
    /// True for a service that runs within another program: it prints no line once it is ready.
    is_silent: bool,
    ready: Arc<watch::Sender<bool>>,
    /// The dependency the service still waits for before it starts.
    waits: Arc<watch::Sender<Option<String>>>,
    url: Arc<OnceLock<String>>,
    bus: Arc<OnceLock<Bus>>,
    /// Notes for operators, by topic.
    notes: Arc<Mutex<BTreeMap<&'static str, Vec<String>>>>,
    /// The MCP servers and tool workers that it calls.
    pub tool_servers: StatusRows<ToolServerRow>,
    /// Tools that the endpoints of models refuse.
    pub refused_tools: StatusRows<RefusedToolRow>,
    /// The work of agents that it has under way.
    pub waits_of_work: StatusRows<WaitRow>,
}

impl Readiness {
    /// For a service that runs within another program.
    pub fn silent() -> Self {
        Self { is_silent: true, ..Self::default() }
    }

    /// True between [`Readiness::announce_ready`] and the end, while there is a connection to NATS and the log takes what is
    /// written.
    pub fn is_ready(&self) -> bool {
        self.unready_reason().is_none()
    }

    /// Returns the reason the service takes no work, or `None` if it is ready.
    pub fn unready_reason(&self) -> Option<String> {
        if !*self.ready.borrow() {
            let waits = self.waits.borrow().clone();
            return waits.or_else(|| Some("it has not started yet, or is stopping".to_owned()));
        }
        let bus = self.bus.get()?;
        if !bus.connection().up {
            return Some("there is no connection to nats".to_owned());
        }
        let stalled =
            bus.writes.stall_reason().map(|reason| format!("the log does not take what is written: {reason}"));
        stalled.or_else(|| bus.lacking.first_problem())
    }

    pub(super) fn set_waiting_for(&self, what: Option<String>) {
        self.waits.send_replace(what);
    }

    /// Has the status say what operators should know of this replica, though it takes work. For what is found out at the
    /// start: nothing takes it back.
    pub fn add_note(&self, text: &str) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).entry("").or_default().push(text.to_owned());
    }

    /// Has the status show these notes on something that changes; they replace the earlier notes about it.
    pub fn set_notes(&self, about: &'static str, texts: Vec<String>) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).insert(about, texts);
    }

    /// Returns all notes.
    pub fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).values().flatten().cloned().collect()
    }

    pub(super) fn watch_bus(&self, bus: &Bus) {
        let _ = self.bus.set(bus.clone());
    }

    pub fn set_ready(&self, ready: bool) {
        self.ready.send_replace(ready);
    }

    /// Changes whenever it is set; the connection to NATS is not watched.
    pub fn subscribe(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }

    /// Turns readiness on and says so on standard output, in one line that whoever started the service can wait for.
    pub fn announce_ready(&self, more: &str) {
        self.set_ready(true);
        if !self.is_silent {
            println!("ready health={}{}{more}", self.url(), if more.is_empty() { "" } else { " " });
        }
    }

    /// Returns the URL of the health endpoints.
    pub fn url(&self) -> &str {
        self.url.get().map(String::as_str).unwrap_or_default()
    }

    /// The two routes, for a service that has an HTTP server of its own, too.
    pub fn routes<S: Clone + Send + Sync + 'static>(&self) -> Router<S> {
        let readiness = self.clone();
        let ready = move || async move {
            match readiness.unready_reason() {
                None => (StatusCode::OK, "ready\n".to_owned()),
                Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reason}\n")),
            }
        };
        Router::new().route("/healthz", get(|| async { "alive\n" })).route("/readyz", get(ready))
    }

    /// Serves them, and metrics, which stand nowhere else.
    pub(super) async fn serve_probes(
        &self,
        config: &HealthConfig,
        metrics: Metrics,
        shutdown: CancellationToken,
    ) -> Result<(), ServiceError> {
        let listener = TcpListener::bind(config.listen).await.map_err(|error| {
            ServiceError::Other(format!("health.listen: cannot listen on {}: {error}", config.listen))
        })?;
        let address = listener.local_addr().unwrap_or(config.listen);
        let _ = self.url.set(format!("http://{address}"));
        let metrics = move || {
            let text = metrics.to_openmetrics();
            async { ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text) }
        };
        let routes = self.routes().route("/metrics", get(metrics));
        tokio::spawn(async move {
            let server = axum::serve(listener, routes).with_graceful_shutdown(shutdown.cancelled_owned());
            if let Err(error) = server.await {
                tracing::error!(%error, "health is no longer served");
            }
        });
        Ok(())
    }
}
