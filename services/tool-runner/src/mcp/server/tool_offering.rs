//! Offering the tools of a server. Where each user has a connection, the tools are those that one of them is told of.

use std::sync::{Arc, Weak};

use kairo_core::ids::Name;
use rmcp::model::Tool as McpToolInfo;
use rmcp::service::{Peer, RoleClient};

use super::super::connection_source::ConnectionSource;
use super::super::conversion;
use super::super::health::HealthNotes;
use super::super::resource::{self, ResourceRead};
use super::super::tool::McpTool;
use super::per_user_server::UserConnections;
use super::{ConnectionKeeper, OnTools};
use crate::catalogue::Rejection;
use crate::tool::Tool;

/// The destination of the tools of one connection.
pub enum ToolDestination {
    /// The only connection to the server.
    Server(OnTools),
    /// The connection of one user. Without the others there is nothing to offer.
    User(Weak<UserConnections>, Name),
}

impl ToolDestination {
    pub fn for_server(on_tools: OnTools) -> Self {
        Self::Server(on_tools)
    }

    /// Returns true if the tools of this connection are the ones offered.
    pub fn is_listing(&self) -> bool {
        match self {
            Self::Server(_) => true,
            Self::User(connections, user) => {
                connections.upgrade().is_some_and(|connections| connections.is_lister(user))
            }
        }
    }

    fn offer_tools(&self, tools: Vec<Arc<dyn Tool>>) -> Vec<Rejection> {
        match self {
            Self::Server(on_tools) => on_tools(tools),
            Self::User(connections, _) => {
                connections.upgrade().map(|connections| connections.offer_tools(tools)).unwrap_or_default()
            }
        }
    }
}

impl ConnectionKeeper {
    /// Returns the connections that calls of its tools may use.
    fn connection_source(&self) -> ConnectionSource {
        match &self.offering {
            ToolDestination::Server(_) => ConnectionSource::Server(self.handle.clone()),
            ToolDestination::User(connections, _) => {
                ConnectionSource::Users(self.handle.name.clone(), connections.clone())
            }
        }
    }

    /// Returns the notes on the server's tool list; they are discarded if its tools are not offered.
    pub(super) fn listing_notes(&self) -> HealthNotes {
        if self.offering.is_listing() { self.notes.clone() } else { HealthNotes::default() }
    }

    /// Offers the tools of the server, if they are those that are offered.
    pub(super) fn publish_tools(&self, peer: &Peer<RoleClient>, tools: &[McpToolInfo]) {
        if !self.offering.is_listing() {
            return;
        }
        let reading = self.resource_tool(peer, tools);
        let tools = tools
            .iter()
            .map(|tool| {
                let spec = conversion::tool_spec(&self.server, tool, self.limits.call_timeout);
                let name = tool.name.to_string();
                let tool = McpTool::new(spec, name, &self.server, self.connection_source());
                Arc::new(tool) as Arc<dyn Tool>
            })
            .chain(reading)
            .collect::<Vec<_>>();
        let listed = tools.len();
        let own = format!("{}.", self.handle.name);
        let rejected = self.offering.offer_tools(tools);
        let rejected = rejected.iter().filter_map(|tool| Some((tool.name.strip_prefix(&own)?, &tool.reason)));
        let left_out = rejected.inspect(|(name, reason)| self.notes.leave_out(name, reason)).count();
        self.notes.set_tool_count(listed.saturating_sub(left_out));
    }

    /// The tool that reads resources, of a server that has any and no tool of that name.
    fn resource_tool(&self, peer: &Peer<RoleClient>, tools: &[McpToolInfo]) -> Option<Arc<dyn Tool>> {
        let has_any = peer.peer_info()?.capabilities.resources.is_some();
        let is_free = tools.iter().all(|tool| tool.name != resource::NAME);
        let reading = || {
            ResourceRead::new(
                &self.server,
                self.limits.call_timeout,
                self.limits.max_result_bytes,
                self.connection_source(),
            )
        };
        (has_any && is_free).then(|| Arc::new(reading()) as Arc<dyn Tool>)
    }
}
