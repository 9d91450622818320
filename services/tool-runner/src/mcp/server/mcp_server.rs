//! A running server as the rest of this service sees it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::super::health::{HealthNotes, HealthState, ServerHealth};
use super::super::oauth::SignIns;
use super::super::server_handle::McpServerState;
use crate::config::ToolsConfig;

/// A server that is being kept running until it is stopped.
#[derive(Debug)]
pub struct McpServer {
    pub(super) name: Arc<str>,
    pub(super) state: watch::Receiver<McpServerState>,
    pub(super) notes: HealthNotes,
    pub(super) sign_ins: Option<SignIns>,
    pub(super) task: JoinHandle<()>,
}

impl McpServer {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits until the first start succeeded or failed.
    pub async fn wait_for_first_start(&self) {
        let mut state = self.state.clone();
        // An error means that the task is gone, which is an outcome too.
        let _ = state.wait_for(|state| !matches!(state, McpServerState::Starting)).await;
    }

    /// The version of the protocol that is spoken with it; none while it is down.
    pub fn protocol_version(&self) -> Option<String> {
        match &*self.state.borrow() {
            McpServerState::Up(connection) => {
                let info = connection.peer.peer_info()?;
                Some(info.protocol_version.to_string())
            }
            McpServerState::Starting | McpServerState::Down { .. } | McpServerState::Stopped => None,
        }
    }

    /// Returns the present health of the server.
    pub fn health(&self) -> ServerHealth {
        let state = match &*self.state.borrow() {
            McpServerState::Starting => HealthState::Starting,
            McpServerState::Up(_) => HealthState::Up,
            McpServerState::Down { .. } => HealthState::Down,
            McpServerState::Stopped => HealthState::Stopped,
        };
        self.notes.to_health(state, self.protocol_version())
    }

    /// Tells when its health changed, except for its standard error.
    pub fn health_changes(&self) -> watch::Receiver<u64> {
        self.notes.subscribe_changes()
    }

    /// Returns the sign-ins at the server; none if sign-in is not configured.
    pub fn sign_ins(&self) -> Option<SignIns> {
        self.sign_ins.clone()
    }

    /// Waits until the server has ended; to be called after its token was canceled.
    pub async fn wait_until_stopped(self) {
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the task of an MCP server ended badly");
        }
    }
}

/// The limits of a connection to a server.
#[derive(Debug, Clone, Copy)]
pub struct ServerLimits {
    pub start_timeout: Duration,
    pub probe_timeout: Duration,
    pub restart_min: Duration,
    pub restart_max: Duration,
    pub call_timeout: Duration,
    pub parallel: usize,
    pub max_tools: usize,
    pub max_result_bytes: usize,
}

impl ServerLimits {
    pub fn from_config(config: &ToolsConfig) -> Self {
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
