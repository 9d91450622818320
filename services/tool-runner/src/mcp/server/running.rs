//! A running server as the rest of this service sees it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::super::handle::State;
use super::super::health::{Health, HealthState, Notes};
use super::super::oauth::SignIns;
use crate::config::ToolsConfig;

/// A server that is being kept running until it is stopped.
#[derive(Debug)]
pub struct McpServer {
    pub(super) name: Arc<str>,
    pub(super) state: watch::Receiver<State>,
    pub(super) notes: Notes,
    pub(super) sign_ins: Option<SignIns>,
    pub(super) task: JoinHandle<()>,
}

impl McpServer {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits until the first start succeeded or failed.
    pub async fn first_start(&self) {
        let mut state = self.state.clone();
        // An error means that the task is gone, which is an outcome too.
        let _ = state.wait_for(|state| !matches!(state, State::Starting)).await;
    }

    /// The version of the protocol that is spoken with it; none while it is down.
    pub fn protocol(&self) -> Option<String> {
        match &*self.state.borrow() {
            State::Up(connection) => {
                let info = connection.peer.peer_info()?;
                Some(info.protocol_version.to_string())
            }
            State::Starting | State::Down { .. } | State::Stopped => None,
        }
    }

    /// Returns the present health of the server.
    pub fn health(&self) -> Health {
        let state = match &*self.state.borrow() {
            State::Starting => HealthState::Starting,
            State::Up(_) => HealthState::Up,
            State::Down { .. } => HealthState::Down,
            State::Stopped => HealthState::Stopped,
        };
        self.notes.health(state, self.protocol())
    }

    /// Tells when its health changed, except for its standard error.
    pub fn health_changes(&self) -> watch::Receiver<u64> {
        self.notes.changes()
    }

    /// Returns the sign-ins at the server; none if sign-in is not configured.
    pub fn sign_ins(&self) -> Option<SignIns> {
        self.sign_ins.clone()
    }

    /// Waits until the server has ended; to be called after its token was canceled.
    pub async fn stopped(self) {
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the task of an MCP server ended badly");
        }
    }
}

/// The limits of a connection to a server.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub start_timeout: Duration,
    pub probe_timeout: Duration,
    pub restart_min: Duration,
    pub restart_max: Duration,
    pub call_timeout: Duration,
    pub parallel: usize,
    pub max_tools: usize,
    pub max_result_bytes: usize,
}

impl Limits {
    pub fn of(config: &ToolsConfig) -> Self {
        let lifecycle = &config.mcp_lifecycle;
        Self {
            start_timeout: Duration::from_millis(lifecycle.start_timeout_ms),
            probe_timeout: Duration::from_millis(lifecycle.probe_timeout_ms),
            restart_min: Duration::from_millis(lifecycle.restart_min_ms),
            restart_max: Duration::from_millis(lifecycle.restart_max_ms),
            call_timeout: config.call_timeout(),
            parallel: config.parallel,
            max_tools: config.max_tools,
            max_result_bytes: config.max_result_bytes,
        }
    }
}
