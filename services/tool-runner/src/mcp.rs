//! Tools of MCP servers, over stdio and streamable HTTP, in both eras of the protocol.
//!
//! One task per server keeps it running ([`server`]); calls find it through its state
//! ([`handle`]). What a server says is translated in [`convert`], and why it said nothing in
//! [`failure`]; both are pure.

mod client;
mod convert;
mod failure;
mod handle;
mod health;
mod server;
mod tool;
mod transport;

pub use self::health::{Health, HealthState};
pub use self::server::{McpServer, OnTools, start};
