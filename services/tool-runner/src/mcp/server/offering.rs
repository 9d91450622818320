//! Offering the tools of a server. Where each user has a connection, the tools are those that one of them is told of.

use std::sync::{Arc, Weak};

use kairo_core::ids::Name;
use rmcp::model::Tool as McpToolInfo;
use rmcp::service::{Peer, RoleClient};

use super::super::convert;
use super::super::health::Notes;
use super::super::reach::Reach;
use super::super::resource::{self, ResourceRead};
use super::super::tool::McpTool;
use super::users::Connections;
use super::{Keeper, OnTools};
use crate::catalogue::Rejection;
use crate::tool::Tool;

/// The destination of the tools of one connection.
pub enum Offering {
    /// The only connection to the server.
    Server(OnTools),
    /// The connection of one user. Without the others there is nothing to offer.
    User(Weak<Connections>, Name),
}

impl Offering {
    pub fn of_server(on_tools: OnTools) -> Self {
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

    fn offer(&self, tools: Vec<Arc<dyn Tool>>) -> Vec<Rejection> {
        match self {
            Self::Server(on_tools) => on_tools(tools),
            Self::User(connections, _) => {
                connections.upgrade().map(|connections| connections.offer(tools)).unwrap_or_default()
            }
        }
    }
}

impl Keeper {
    /// Returns the connections that calls of its tools may use.
    fn reach(&self) -> Reach {
        match &self.offering {
            Offering::Server(_) => Reach::Server(self.handle.clone()),
            Offering::User(connections, _) => Reach::Users(self.handle.name.clone(), connections.clone()),
        }
    }

    /// Returns the notes on the server's tool list; they are discarded if its tools are not offered.
    pub(super) fn notes_of_listing(&self) -> Notes {
        if self.offering.is_listing() { self.notes.clone() } else { Notes::default() }
    }

    /// Offers the tools of the server, if they are those that are offered.
    pub(super) fn publish(&self, peer: &Peer<RoleClient>, tools: &[McpToolInfo]) {
        if !self.offering.is_listing() {
            return;
        }
        let reading = self.resource_read(peer, tools);
        let tools = tools
            .iter()
            .map(|tool| {
                let spec = convert::tool_spec(&self.server, tool, self.limits.call_timeout);
                let name = tool.name.to_string();
                let tool = McpTool::new(spec, name, &self.server, self.reach());
                Arc::new(tool) as Arc<dyn Tool>
            })
            .chain(reading)
            .collect::<Vec<_>>();
        let listed = tools.len();
        let own = format!("{}.", self.handle.name);
        let rejected = self.offering.offer(tools);
        let rejected = rejected.iter().filter_map(|tool| Some((tool.name.strip_prefix(&own)?, &tool.reason)));
        let left_out = rejected.inspect(|(name, reason)| self.notes.leave_out(name, reason)).count();
        self.notes.offer(listed.saturating_sub(left_out));
    }

    /// The tool that reads resources, of a server that has any and no tool of that name.
    fn resource_read(&self, peer: &Peer<RoleClient>, tools: &[McpToolInfo]) -> Option<Arc<dyn Tool>> {
        let has_any = peer.peer_info()?.capabilities.resources.is_some();
        let is_free = tools.iter().all(|tool| tool.name != resource::NAME);
        let reading =
            || ResourceRead::new(&self.server, self.limits.call_timeout, self.limits.max_result_bytes, self.reach());
        (has_any && is_free).then(|| Arc::new(reading()) as Arc<dyn Tool>)
    }
}
