//! Finds the connection to the server for the call of a tool.

use std::sync::{Arc, Weak};

use super::server::per_user_server::{ConnectionUse, UserConnections};
use super::server_handle::McpServerHandle;
use crate::tool::{CallContext, ToolError};

/// The connections that calls of a tool may go over.
pub enum ConnectionSource {
    /// One for all.
    Server(McpServerHandle),
    /// One for each user, at the server of that name. Held by the task that looks after them.
    Users(Arc<str>, Weak<UserConnections>),
}

/// The connection of one call, and the word that it is in use.
pub struct CallRoute {
    pub handle: McpServerHandle,
    _in_use: Option<ConnectionUse>,
}

impl ConnectionSource {
    /// The server's name.
    pub fn server_name(&self) -> &str {
        match self {
            Self::Server(handle) => &handle.name,
            Self::Users(name, _) => name,
        }
    }

    /// The connection of a call.
    ///
    /// # Errors
    /// `failed` when the user of the call has none and cannot have one. Nothing was sent.
    pub async fn find_route(&self, ctx: &CallContext) -> Result<CallRoute, ToolError> {
        match self {
            Self::Server(handle) => Ok(CallRoute { handle: handle.clone(), _in_use: None }),
            Self::Users(_, connections) => {
                let connections = connections.upgrade().ok_or_else(|| self.stopped_error())?;
                let canceled = || Err(ToolError::canceled("nothing was begun"));
                let found = ctx.cancel.run_until_cancelled(connections.open_for_call(ctx)).await;
                let (handle, in_use) = found.unwrap_or_else(canceled)?;
                Ok(CallRoute { handle, _in_use: Some(in_use) })
            }
        }
    }

    /// Waits until a call could begin; whose it is, is not known yet.
    ///
    /// # Errors
    /// `failed` when it would fail before it had begun anything.
    pub async fn wait_until_ready(&self) -> Result<(), ToolError> {
        match self {
            Self::Server(handle) => handle.wait_for_connection(0).await.map(drop),
            Self::Users(_, connections) if connections.strong_count() > 0 => Ok(()),
            Self::Users(..) => Err(self.stopped_error()),
        }
    }

    fn stopped_error(&self) -> ToolError {
        ToolError::failed(format!(
            "the MCP server {} is not running: it was stopped; try again later",
            self.server_name()
        ))
    }
}
