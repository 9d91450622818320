//! router: which agent it is for what a user says, or what happens in another system.
//!
//! Each user is in a partition of the log, and each partition is owned by one replica ([`shard`]), so that what a user says
//! reaches agents in the order in which it was said. The pure part reads the address ([`kairo_core::address`]) and what the
//! agent is to be told ([`inputs`]); the shell ([`routing`]) looks up whether such an agent exists, and delivers it or says
//! why it cannot. What names no agent is for the one the user speaks with ([`current_agent`]), which `@agent` or a `/command` at its
//! beginning changes: that is found out first ([`addressing`]), in the order of what the user says. What happens outside is read by another pure part ([`outside_event`]) and told ([`events`]) to the agents whose
//! tasks wait for it ([`hooks`]), also to those of which that becomes known a little later ([`missed_events`]). What was set aside is
//! dealt with again when somebody orders it ([`message_retry`]).

mod addressing;
mod config;
mod current_agent;
mod directory;
pub mod events;
mod hooks;
pub mod inputs;
mod keyed_queues;
mod message_retry;
pub mod missed_events;
pub mod outside_event;
mod routing;
mod shard;

use std::sync::Arc;

use kairo_core::{
    bus::{
        commands::DeclaredCommands,
        consume::{consume, consume_raw},
        dead_letter_retry::DeadLetterRetrier,
        epoch::EpochInForce,
    },
    ownership::member,
    service::{ServiceContext, ServiceError},
    subjects::Consumer,
};

pub use config::{Config, RouterConfig};

/// Runs until told to stop.
pub async fn run(config: Config, context: ServiceContext) -> Result<(), ServiceError> {
    let ServiceContext { bus, shutdown, readiness } = context;
    let commands = DeclaredCommands::follow(&bus, config.router.known_commands, shutdown.clone());
    commands.save_periodically(config.router.commands_kept_after, shutdown.clone());
    let epoch = EpochInForce::follow(&bus, shutdown.clone())?;
    let shards = Arc::new(shard::RouterContext {
        bus: bus.clone(),
        router: routing::Router::new(&bus, &config.router, commands, epoch)?,
        known_users: config.router.known_users,
        pending_messages: config.router.pending_messages,
    });
    readiness.announce_ready("");
    let events = Arc::new(events::OutsideEventHandler::new(&bus));
    let missed = Arc::new(missed_events::MissedEventHandler::new(&bus));
    let retries = DeadLetterRetrier::new(&bus)
        .with_handler(Consumer::Router, Arc::new(message_retry::UserMessageRetrier(shards.clone())))
        .with_raw_handler(Consumer::RouterEvents, events.clone())
        .with_raw_handler(Consumer::RouterHooks, missed.clone());
    let (owned, (), (), ()) = tokio::join!(
        member::run(&bus, shards, shutdown.clone()),
        consume_raw(&bus, Consumer::RouterEvents, events, shutdown.clone()),
        consume_raw(&bus, Consumer::RouterHooks, missed, shutdown.clone()),
        consume(&bus, Consumer::RouterRetries, Arc::new(retries), shutdown.clone()),
    );
    Ok(owned?)
}
