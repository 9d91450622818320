//! Our side of an MCP connection: what we say we are, and what servers tell us unasked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::ClientHandler;
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken};
use rmcp::service::{NotificationContext, RoleClient};
use tokio::sync::Notify;

use crate::tool::{Progress, ProgressReporter};

/// Which call a report of progress belongs to.
#[derive(Debug, Clone, Default)]
pub struct ProgressRoutes(Arc<Mutex<HashMap<ProgressToken, ProgressReporter>>>);

impl ProgressRoutes {
    /// Passes reports on until the route is dropped.
    pub fn open(&self, token: ProgressToken, reporter: ProgressReporter) -> ProgressRoute {
        self.lock().insert(token.clone(), reporter);
        ProgressRoute { routes: self.clone(), token }
    }

    // Nothing panics while holding it, and a lost report would be harmless.
    fn lock(&self) -> MutexGuard<'_, HashMap<ProgressToken, ProgressReporter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the route of one call when the call ends, however it ends.
#[derive(Debug)]
pub struct ProgressRoute {
    routes: ProgressRoutes,
    token: ProgressToken,
}

impl Drop for ProgressRoute {
    fn drop(&mut self) {
        self.routes.lock().remove(&self.token);
    }
}

/// Receives the notifications of one server. It declares no capabilities, so a server may ask us
/// neither for completions nor for user input.
#[derive(Debug, Clone, Default)]
pub struct Client {
    pub progress: ProgressRoutes,
    /// Told when the server says that its tools changed.
    pub tools_changed: Arc<Notify>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new("kairo-tool-runner", env!("CARGO_PKG_VERSION")),
        )
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        let reporter = self.progress.lock().get(&params.progress_token).cloned();
        if let Some(reporter) = reporter {
            reporter.report(Progress {
                fraction: params
                    .total
                    .filter(|total| *total > 0.0)
                    .map(|total| (params.progress / total).clamp(0.0, 1.0)),
                message: params.message,
            });
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.tools_changed.notify_one();
    }
}
