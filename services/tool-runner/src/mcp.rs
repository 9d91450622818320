//! Tools of MCP servers, over stdio and streamable HTTP, in both eras of the protocol.
//!
//! One task per server keeps it running ([`server`]); calls find it through its state
//! ([`server_handle`]). What a server sends is read in [`reader`], whatever form it has, and translated in [`conversion`]; why it said
//! nothing is told by [`failure`]; all three are pure. What it did that it should not is kept in [`health`].

mod attachment_store;
mod call_rounds;
mod client;
mod connection_source;
mod conversion;
mod elicitation;
mod failure;
mod health;
pub mod oauth;
mod reader;
mod resource;
pub mod roots;
mod server;
mod server_handle;
mod tasks;
mod tool;
mod tool_listing;
mod transport;

use std::sync::Arc;

pub use self::health::{HealthState, ServerHealth};
pub(crate) use self::reader::shorten_text;
pub use self::server::{McpServer, OnTools, start};
use crate::questions::Questions;

/// The means by which servers reach the people they need.
#[derive(Debug, Clone)]
pub struct PeopleAccess {
    /// Storage of what people granted.
    pub vault: Arc<dyn oauth::SignInVault>,
    /// Delivers questions to people; none if nothing does.
    pub questions: Option<Arc<Questions>>,
}

impl Default for PeopleAccess {
    fn default() -> Self {
        Self { vault: Arc::new(oauth::MemoryVault::default()), questions: None }
    }
}
