//! A nats-server in memory, as far as Kairo uses one, and the port that services run on it with.
//!
//! The simulation drives services on [`server::Server`] through a port of its own that loses, delays and repeats. A fork of
//! an agent runs on the calm one: [`port::InMemory`].

pub mod chance;
pub mod durable;
pub mod port;
pub mod server;
pub mod stream;
mod timers;
