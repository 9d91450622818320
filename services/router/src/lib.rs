//! router: which agent it is for what a user says, or what happens in another system.
//!
//! Each user is in a partition of the log, and each partition is owned by one replica ([`shard`]), so that what a user says
//! reaches agents in the order in which it was said. The pure part reads the address ([`kairo_core::address`]) and what the
//! agent is to be told ([`inputs`]); the shell ([`routing`]) looks up whether such an agent exists, and delivers it or says
//! why it cannot. What names no agent is for the one the user speaks with ([`current`]), which `@agent` or a `/command` at its
//! beginning changes: that is found out first ([`addressing`]), in the order of what the user says. What happens outside is read by another pure part ([`outside`]) and told ([`events`]) to the agents whose
//! tasks wait for it ([`hooks`]), also to those of which that becomes known a little later ([`missed`]).

mod addressing;
mod config;
mod current;
mod directory;
pub mod events;
mod hooks;
pub mod inputs;
mod lines;
pub mod missed;
pub mod outside;
mod routing;
mod shard;

use std::sync::Arc;

use kairo_core::{
    bus::{commands::DeclaredCommands, consume::consume_raw, epoch::EpochInForce},
    ownership::member,
    service::{Context, ServiceError},
    subjects::Consumer,
};

pub use config::{Config, RouterConfig};

/// Runs until told to stop.
pub async fn run(config: Config, context: Context) -> Result<(), ServiceError> {
    let Context { bus, shutdown, readiness } = context;
    let commands = DeclaredCommands::follow(&bus, config.router.known_commands, shutdown.clone());
    let epoch = EpochInForce::follow(&bus, shutdown.clone())?;
    let shards = Arc::new(shard::Shards {
        bus: bus.clone(),
        router: routing::Router::new(&bus, &config.router, commands, epoch)?,
        known_users: config.router.known_users,
        pending_messages: config.router.pending_messages,
    });
    readiness.announce("");
    let (owned, (), ()) = tokio::join!(
        member::run(&bus, shards, shutdown.clone()),
        consume_raw(&bus, Consumer::RouterEvents, Arc::new(events::Events::new(&bus)), shutdown.clone()),
        consume_raw(&bus, Consumer::RouterHooks, Arc::new(missed::Missed::new(&bus)), shutdown.clone()),
    );
    Ok(owned?)
}
