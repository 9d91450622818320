//! Tools of MCP servers, over stdio and streamable HTTP, in both eras of the protocol.
//!
//! One task per server keeps it running ([`server`]); calls find it through its state
//! ([`handle`]). What a server sends is read in [`reader`], whatever form it has, and translated in [`convert`]; why it said
//! nothing is told by [`failure`]; all three are pure. What it did that it should not is kept in [`health`].

mod asking;
mod attached;
mod client;
mod convert;
mod failure;
mod handle;
mod health;
mod listing;
pub mod oauth;
mod reach;
mod reader;
mod resource;
pub mod roots;
mod rounds;
mod server;
mod tasks;
mod tool;
mod transport;

use std::sync::Arc;

pub use self::health::{Health, HealthState};
pub(crate) use self::reader::shortened;
pub use self::server::{McpServer, OnTools, start};
use crate::questions::Questions;

/// The means by which servers reach the people they need.
#[derive(Debug, Clone)]
pub struct People {
    /// Storage of what people granted.
    pub vault: Arc<dyn oauth::Vault>,
    /// Delivers questions to people; none if nothing does.
    pub questions: Option<Arc<Questions>>,
}

impl Default for People {
    fn default() -> Self {
        Self { vault: Arc::new(oauth::MemoryVault::default()), questions: None }
    }
}
