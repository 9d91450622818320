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

use super::asking::Asking;
use super::client::ProgressRoutes;
use super::failure::{Failure, classify};
use super::reader::Unreadable;
use super::rounds::Answered;
use super::tasks;
use crate::tool::{CallContext, ToolError};

/// Key of the idempotency key in a request's `_meta`, for servers that know it.
pub const ACTION_ID_KEY: &str = "kairo/action-id";

/// The state of a server, by which a call knows if it can begin.
#[derive(Debug, Clone)]
pub enum State {
    /// Not tried yet.
    Starting,
    /// Connected, its tools known.
    Up(Connection),
    /// Not running. `attempts` counts the starts that failed in all, so that a call can tell
    /// whether one was tried since it asked.
    Down { reason: Arc<str>, attempts: u64 },
    /// Never again.
    Stopped,
}

/// A connection to a running server.
#[derive(Debug, Clone)]
pub struct Connection {
    pub peer: Peer<RoleClient>,
    pub progress: ProgressRoutes,
    /// Route for the server's questions to people.
    pub asking: Asking,
    /// Folders announced to the server as its roots.
    pub roots: Arc<[PathBuf]>,
    /// Distinguishes it from the connections before it.
    pub generation: u64,
}

/// State that calls share with the task that keeps the server running.
#[derive(Debug, Clone)]
pub struct Handle {
    pub name: Arc<str>,
    pub state: watch::Receiver<State>,
    /// Cuts the wait before a restart short.
    pub wanted: Arc<Notify>,
    /// Asks to check whether the server still answers.
    pub suspected: Arc<Notify>,
}

impl Handle {
    /// A connection newer than generation `after`, waiting for one start if there is none.
    ///
    /// # Errors
    /// `failed` when the start fails: nothing was begun.
    pub async fn connection(&self, after: u64) -> Result<Connection, ToolError> {
        let mut state = self.state.clone();
        let mut attempts_seen = None;
        loop {
            match &*state.borrow_and_update() {
                State::Up(connection) if connection.generation > after => {
                    return Ok(connection.clone());
                }
                State::Down { reason, attempts } => {
                    if attempts_seen.is_some_and(|seen| *attempts > seen) {
                        return Err(self.unavailable(reason));
                    }
                    attempts_seen = Some(*attempts);
                    self.wanted.notify_one();
                }
                State::Stopped => return Err(self.unavailable("it was stopped")),
                State::Starting | State::Up(_) => {}
            }
            if state.changed().await.is_err() {
                return Err(self.unavailable("it was stopped"));
            }
        }
    }

    fn unavailable(&self, reason: &str) -> ToolError {
        ToolError::failed(format!("the MCP server {} is not running: {reason}; try again later", self.name))
    }
}

impl Connection {
    /// Sends one request of a call of a tool; [`Connection::call`] makes a whole call of such.
    pub async fn request_call(&self, params: CallToolRequestParams, ctx: &CallContext) -> Result<Answered, Failure> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let response = self.request(request, ctx).await?;
        let is_task_wanted = self.knows_former_tasks()
            && match &response {
                Ok(ServerResult::CallToolResult(result)) => tasks::is_refused(result),
                Ok(_) => false,
                Err(error) => tasks::is_required(error),
            };
        if is_task_wanted { Ok(Answered::AsTask) } else { outcome_of(response) }
    }

    /// Sends a request, and waits for its answer.
    pub async fn request(
        &self,
        request: ClientRequest,
        ctx: &CallContext,
    ) -> Result<Result<ServerResult, ServiceError>, Failure> {
        let mut meta = JsonObject::new();
        meta.insert(ACTION_ID_KEY.to_owned(), ctx.action_id.as_str().into());
        let options = PeerRequestOptions::no_options().with_meta(RequestMetaObject::from(meta));
        let mut request = self
            .peer
            .send_cancellable_request(request, options)
            .await
            .map_err(|error| Failure::NotSent(error.to_string()))?;
        let _route = self.progress.open(request.progress_token.clone(), ctx.progress.clone());
        let response = tokio::select! {
            response = &mut request.rx => response,
            () = ctx.cancel.cancelled() => {
                if ctx.exchange.is_wanted_late() {
                    self.ask_to_stop(&request.id).await;
                    return request.rx.await.map_err(|_| Failure::Lost("the connection closed".to_owned()));
                }
                // The answer no longer matters, so neither does whether the server heard it.
                let _ = request.cancel(Some("no longer wanted".to_owned())).await;
                return Err(Failure::Canceled);
            }
        };
        response.map_err(|_| Failure::Lost("the connection closed".to_owned()))
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
    fn knows_former_tasks(&self) -> bool {
        self.peer.peer_info().is_some_and(|info| info.protocol_version.has_initialize())
    }
}

/// Classifies the server's response to one request of a call.
pub fn outcome_of(response: Result<ServerResult, ServiceError>) -> Result<Answered, Failure> {
    match response {
        Ok(ServerResult::CallToolResult(result)) => Ok(Answered::Result(result)),
        Ok(ServerResult::InputRequiredResult(wanted)) => Ok(Answered::Wants(wanted)),
        Ok(ServerResult::CreateTaskResult(task)) => Ok(Answered::Task(task)),
        Ok(ServerResult::CustomResult(result)) => Err(Failure::Unreadable(Unreadable::of(&result))),
        Ok(_) => Err(Failure::Unreadable(Unreadable::new("with something other than a result", ""))),
        Err(error) => Err(classify(&error)),
    }
}
