//! Tools of MCP servers, over stdio and streamable HTTP, in both eras of the protocol.
//!
//! One task per server keeps it running ([`server`]); calls find it through its state
//! ([`handle`]). What a server says is translated in [`convert`], and why it said nothing in
//! [`failure`]; both are pure.

mod asking;
mod client;
mod convert;
mod failure;
mod handle;
pub mod oauth;
pub mod roots;
mod rounds;
mod server;
mod tasks;
mod tool;
mod transport;

use std::sync::Arc;

pub use self::server::{McpServer, OnTools, start};
use crate::questions::Questions;

/// How servers reach the people that they need.
#[derive(Debug, Clone)]
pub struct People {
    /// Where it is kept what they granted.
    pub vault: Arc<dyn oauth::Vault>,
    /// What brings them questions; none where nobody does.
    pub questions: Option<Arc<Questions>>,
}

impl Default for People {
    fn default() -> Self {
        Self { vault: Arc::new(oauth::MemoryVault::default()), questions: None }
    }
}
