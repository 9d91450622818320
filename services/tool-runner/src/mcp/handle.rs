//! What calls see of a server: its state, and a way to ask for its attention.

use std::sync::Arc;

use rmcp::ServiceError;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, JsonObject, RequestMetaObject, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient};
use tokio::sync::{Notify, watch};

use super::client::ProgressRoutes;
use super::failure::{Failure, classify};
use super::reader::Unreadable;
use crate::tool::{CallContext, ToolError};

/// Key of the idempotency key in a request's `_meta`, for servers that know it.
const ACTION_ID_KEY: &str = "kairo/action-id";

/// Whether a server can be called.
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
    /// Distinguishes it from the connections before it.
    pub generation: u64,
}

/// What calls share with the task that keeps the server running.
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
    /// Calls a tool by the server's own name for it.
    pub async fn call(&self, tool: &str, arguments: JsonObject, ctx: &CallContext) -> Result<CallToolResult, Failure> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        outcome_of(self.request(request, ctx).await?)
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
                // The answer no longer matters, so neither does whether the server heard it.
                let _ = request.cancel(Some("no longer wanted".to_owned())).await;
                return Err(Failure::Canceled);
            }
        };
        response.map_err(|_| Failure::Lost("the connection closed".to_owned()))
    }
}

/// What came of a call, by what its server answered.
pub fn outcome_of(response: Result<ServerResult, ServiceError>) -> Result<CallToolResult, Failure> {
    match response {
        Ok(ServerResult::CallToolResult(result)) => Ok(result),
        Ok(ServerResult::InputRequiredResult(_)) => {
            Err(Failure::Refused(ToolError::failed("the tool asks for more input, which agents cannot give")))
        }
        Ok(ServerResult::CustomResult(result)) => Err(Failure::Unreadable(Unreadable::of(&result))),
        Ok(_) => Err(Failure::Unreadable(Unreadable::new("with something other than a result", ""))),
        Err(error) => Err(classify(&error)),
    }
}
