//! router: which agent it is for what a user says.
//!
//! The pure part reads the address ([`address`]) and what the agent is to be told ([`inputs`]); the shell ([`routing`])
//! looks up whether such an agent exists, and delivers it or says why it cannot.

pub mod address;
mod config;
mod directory;
pub mod inputs;
mod routing;

use std::sync::Arc;

use kairo_core::{
    bus::consume::consume,
    service::{Context, ServiceError},
    subjects::Consumer,
};

pub use config::{Config, RouterConfig};

/// Runs until told to stop.
pub async fn run(config: Config, context: Context) -> Result<(), ServiceError> {
    let Context { bus, shutdown, readiness } = context;
    let router = routing::Router::new(&bus, &config.router);
    readiness.announce("");
    consume(&bus, Consumer::Router, Arc::new(router), shutdown).await;
    Ok(())
}
