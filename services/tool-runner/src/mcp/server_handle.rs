//! A call's view of a server: its state, and signals to the task that keeps it running.

use std::path::PathBuf;
use std::sync::Arc;

use rmcp::ServiceError;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientNotification, ClientRequest, CustomNotification, JsonObject,
    RequestId, RequestMetaObject, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient};
use serde_json::json;
use tokio::sync::{Notify, watch};

use super::call_rounds::CallAnswer;
use super::client::ProgressRoutes;
use super::elicitation::ElicitationRouter;
use super::failure::{CallFailure, classify_error};
use super::reader::UnreadableAnswer;
use super::tasks;
use crate::tool::{CallContext, ToolError};

/// Key of the idempotency key in a request's `_meta`, for servers that know it.
pub const ACTION_ID_KEY: &str = "kairo/action-id";

/// The state of a server, by which a call knows if it can begin.
#[derive(Debug, Clone)]
pub enum McpServerState {
    /// Not tried yet.
    Starting,
    /// Connected, its tools known.
    Up(McpConnection),
    /// Not running. `attempts` counts the starts that failed in all, so that a call can tell
    /// whether one was tried since it asked.
    Down { reason: Arc<str>, attempts: u64 },
    /// Never again.
    Stopped,
}

/// A connection to a running server.
#[derive(Debug, Clone)]
pub struct McpConnection {
    pub peer: Peer<RoleClient>,
    pub progress: ProgressRoutes,
    /// Route for the server's questions to people.
    pub asking: ElicitationRouter,
    /// Folders announced to the server as its roots.
    pub roots: Arc<[PathBuf]>,
    /// Distinguishes it from the connections before it.
    pub generation: u64,
}

/// State that calls share with the task that keeps the server running.
#[derive(Debug, Clone)]
pub struct McpServerHandle {
    pub name: Arc<str>,
    pub state: watch::Receiver<McpServerState>,
    /// Cuts the wait before a restart short.
    pub wanted: Arc<Notify>,
    /// Asks to check whether the server still answers.
    pub suspected: Arc<Notify>,
}

impl McpServerHandle {
    /// A connection newer than generation `after`, waiting for one start if there is none.
    ///
    /// # Errors
    /// `failed` when the start fails: nothing was begun.
    pub async fn wait_for_connection(&self, after: u64) -> Result<McpConnection, ToolError> {
        let mut state = self.state.clone();
        let mut attempts_seen = None;
        loop {
            match &*state.borrow_and_update() {
                McpServerState::Up(connection) if connection.generation > after => {
                    return Ok(connection.clone());
                }
                McpServerState::Down { reason, attempts } => {
                    if attempts_seen.is_some_and(|seen| *attempts > seen) {
                        return Err(self.unavailable_error(reason));
                    }
                    attempts_seen = Some(*attempts);
                    self.wanted.notify_one();
                }
                McpServerState::Stopped => return Err(self.unavailable_error("it was stopped")),
                McpServerState::Starting | McpServerState::Up(_) => {}
            }
            if state.changed().await.is_err() {
                return Err(self.unavailable_error("it was stopped"));
            }
        }
    }

    fn unavailable_error(&self, reason: &str) -> ToolError {
        ToolError::failed(format!("the MCP server {} is not running: {reason}; try again later", self.name))
    }
}

impl McpConnection {
    /// Sends one request of a call of a tool; [`McpConnection::call_tool`] makes a whole call of such.
    pub async fn request_call(
        &self,
        params: CallToolRequestParams,
        ctx: &CallContext,
    ) -> Result<CallAnswer, CallFailure> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let response = self.send_request(request, ctx).await?;
        let is_task_wanted = self.uses_legacy_tasks()
            && match &response {
                Ok(ServerResult::CallToolResult(result)) => tasks::result_requires_task(result),
                Ok(_) => false,
                Err(error) => tasks::error_requires_task(error),
            };
        if is_task_wanted { Ok(CallAnswer::AsTask) } else { classify_response(response) }
    }

    /// Sends a request, and waits for its answer.
    pub async fn send_request(
        &self,
        request: ClientRequest,
        ctx: &CallContext,
    ) -> Result<Result<ServerResult, ServiceError>, CallFailure> {
        let mut meta = JsonObject::new();
        meta.insert(ACTION_ID_KEY.to_owned(), ctx.action_id.as_str().into());
        let options = PeerRequestOptions::no_options().with_meta(RequestMetaObject::from(meta));
        let mut request = self
            .peer
            .send_cancellable_request(request, options)
            .await
            .map_err(|error| CallFailure::NotSent(error.to_string()))?;
        let _route = self.progress.open(request.progress_token.clone(), ctx.progress.clone());
        let response = tokio::select! {
            response = &mut request.rx => response,
            () = ctx.cancel.cancelled() => {
                if ctx.exchange.is_late_answer_wanted() {
                    self.ask_to_stop(&request.id).await;
                    return request.rx.await.map_err(|_| CallFailure::Lost("the connection closed".to_owned()));
                }
                // The answer no longer matters, so neither does whether the server heard it.
                let _ = request.cancel(Some("no longer wanted".to_owned())).await;
                return Err(CallFailure::Canceled);
            }
        };
        response.map_err(|_| CallFailure::Lost("the connection closed".to_owned()))
    }

    /// Tells the server that a request is not wanted any more, and goes on waiting for its answer. The library would not, so it
    /// does not know what it sends.
    async fn ask_to_stop(&self, id: &RequestId) {
        let params = json!({ "requestId": id, "reason": "no longer wanted" });
        let told = CustomNotification::new("notifications/cancelled", Some(params));
        // One that cannot be told goes on, as one that does not listen.
        let _ = self.peer.send_notification(ClientNotification::CustomNotification(told)).await;
    }

    /// Returns true if the server uses the 2025-11-25 form of tasks, if it knows any.
    fn uses_legacy_tasks(&self) -> bool {
        self.peer.peer_info().is_some_and(|info| info.protocol_version.has_initialize())
    }
}

/// Classifies the server's response to one request of a call.
pub fn classify_response(response: Result<ServerResult, ServiceError>) -> Result<CallAnswer, CallFailure> {
    match response {
        Ok(ServerResult::CallToolResult(result)) => Ok(CallAnswer::Result(result)),
        Ok(ServerResult::InputRequiredResult(wanted)) => Ok(CallAnswer::Wants(wanted)),
        Ok(ServerResult::CreateTaskResult(task)) => Ok(CallAnswer::Task(task)),
        Ok(ServerResult::CustomResult(result)) => Err(CallFailure::Unreadable(UnreadableAnswer::from_result(&result))),
        Ok(_) => Err(CallFailure::Unreadable(UnreadableAnswer::new("with something other than a result", ""))),
        Err(error) => Err(classify_error(&error)),
    }
}
