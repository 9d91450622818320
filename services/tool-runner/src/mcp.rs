//! Tools of MCP servers, over stdio and streamable HTTP, in both eras of the protocol.
//!
//! One task per server keeps it running ([`server`]); calls find it through its state
//! ([`handle`]). What a server sends is read in [`reader`], whatever form it has, and translated in [`convert`]; why it said
//! nothing is told by [`failure`]; all three are pure. What it did that it should not is kept in [`health`].

mod attached;
mod client;
mod convert;
mod failure;
mod handle;
mod health;
mod listing;
mod reader;
mod resource;
mod server;
mod tool;
mod transport;

pub use self::health::{Health, HealthState};
pub use self::server::{McpServer, OnTools, start};
