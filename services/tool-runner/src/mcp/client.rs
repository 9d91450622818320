//! Our side of an MCP connection: what we say we are, and what servers tell us unasked.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationCapability, ErrorData,
    FormElicitationCapability, Implementation, JsonObject, ProgressNotificationParam, ProgressToken,
    TASKS_EXTENSION_ID, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use tokio::sync::Notify;

use super::elicitation::ElicitationRouter;
use super::roots;
use crate::tool::{ProgressReport, ProgressReporter};

/// Longest message of a server that is logged, in characters.
const MAX_LOG_CHARS: usize = 2_000;

/// Routes progress reports to their calls, by token.
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

/// Receives the notifications of one server. What it declares is what a server may ask for: its roots, where some are
/// configured, people, where somebody brings them the questions, and that calls become tasks; not completions of models.
#[derive(Debug, Clone)]
pub struct McpClient {
    /// The server's name.
    server: Arc<str>,
    /// Route for the server's questions to people.
    pub asking: ElicitationRouter,
    /// Folders announced to the server as its roots.
    pub roots: Arc<[PathBuf]>,
    pub progress: ProgressRoutes,
    /// Told when the server says that its tools changed.
    pub tools_changed: Arc<Notify>,
}

impl McpClient {
    pub fn new(server: Arc<str>, roots: Arc<[PathBuf]>, asking: ElicitationRouter) -> Self {
        Self { server, asking, roots, progress: ProgressRoutes::default(), tools_changed: Arc::default() }
    }
}

impl ClientHandler for McpClient {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.extensions.get_or_insert_default().insert(TASKS_EXTENSION_ID.to_owned(), JsonObject::new());
        capabilities.elicitation = self.asking.can_ask().then(|| {
            let form = FormElicitationCapability::new().with_schema_validation(true);
            ElicitationCapability::new().with_form(form).with_url(UrlElicitationCapability::new())
        });
        capabilities.roots = (!self.roots.is_empty()).then(Default::default);
        ClientConfig::new(capabilities, Implementation::new("kairo-tool-runner", env!("CARGO_PKG_VERSION")))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        let reporter = self.progress.lock().get(&params.progress_token).cloned();
        if let Some(reporter) = reporter {
            reporter.report(ProgressReport {
                fraction: params
                    .total
                    .filter(|total| *total > 0.0)
                    .map(|total| (params.progress / total).clamp(0.0, 1.0)),
                message: params.message,
            });
        }
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(self.asking.elicit_for_any(params).await)
    }

    #[expect(deprecated, reason = "servers of the versions that know roots are there")]
    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Ok(roots::list_result(&self.roots))
    }

    #[expect(deprecated, reason = "servers of the versions that send such messages are there")]
    async fn on_logging_message(
        &self,
        params: rmcp::model::LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        use rmcp::model::LoggingLevel;
        let text: String = params.data.to_string().chars().take(MAX_LOG_CHARS).collect();
        let server = &*self.server;
        let logger = params.logger.as_deref().unwrap_or_default();
        match params.level {
            LoggingLevel::Debug | LoggingLevel::Info | LoggingLevel::Notice => {
                tracing::debug!(server, logger, text, "an MCP server says");
            }
            LoggingLevel::Warning => tracing::info!(server, logger, text, "an MCP server warns"),
            _ => tracing::warn!(server, logger, text, "an MCP server reports an error"),
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.tools_changed.notify_one();
    }
}
