//! router: which agent it is for what a user says, or what happens in another system.
//!
//! The pure part reads the address ([`address`]) and what the agent is to be told ([`inputs`]); the shell ([`routing`])
//! looks up whether such an agent exists, and delivers it or says why it cannot. What happens outside is read by another
//! pure part ([`outside`]) and told ([`events`]) to the agents whose tasks wait for it ([`hooks`]).

pub mod address;
mod config;
mod directory;
pub mod events;
mod hooks;
pub mod inputs;
pub mod outside;
mod routing;

use std::sync::Arc;

use kairo_core::{
    bus::consume::{consume, consume_raw},
    service::{Context, ServiceError},
    subjects::Consumer,
};

pub use config::{Config, RouterConfig};

/// Runs until told to stop.
pub async fn run(config: Config, context: Context) -> Result<(), ServiceError> {
    let Context { bus, shutdown, readiness } = context;
    let router = routing::Router::new(&bus, &config.router);
    readiness.announce("");
    tokio::join!(
        consume(&bus, Consumer::Router, Arc::new(router), shutdown.clone()),
        consume_raw(&bus, Consumer::RouterEvents, Arc::new(events::Events::new(&bus)), shutdown),
    );
    Ok(())
}
