//! process-supervisor: runs programs for agents, such that no program begins before it is recorded and none outlives
//! its supervisor.
//!
//! An invoke comes in ([`supervisor`]); the pure part ([`plan`]) says for each action whether its process may begin. A
//! request is checked against the [`policy`] and the [`limits`], which makes it a [`protocol::Spec`]. [`guarded`] hands
//! that to a [`guard`], a process of its own made from the same binary, which gets the program as far as a gate and
//! holds it there. The supervisor records that the process exists and only then opens the gate ([`running`]). From
//! there on the guard passes on what the program writes and sees to it that program and descendants end: by
//! themselves, at a limit, when asked, or because the supervisor is gone ([`lease`]). How it ended is recorded
//! ([`events`]). What there is to run is published ([`offer`]).

mod capabilities;
pub mod config;
mod events;
pub mod guard;
pub mod guarded;
mod lease;
pub mod limits;
mod lines;
mod offer;
mod output;
mod pieces;
pub mod plan;
pub mod policy;
pub mod protocol;
mod running;
mod supervisor;
pub mod tail;
mod watch;
mod workplace;

use std::sync::Arc;

use kairo_core::{
    bus::{consume::consume, contact::Contact, holding::Holding},
    service::{Context, ServiceError},
    subjects::Consumer,
};
use tokio_util::sync::CancellationToken;

pub use config::Config;

/// Runs until told to stop.
pub async fn run(config: Config, context: Context) -> Result<(), ServiceError> {
    let Context { bus, shutdown, readiness } = context;
    let config = config.process_supervisor;
    offer::publish(&bus, &capabilities::capabilities(&config.policy(), &config.limits)).await?;
    let guards = Arc::new(guarded::Guards::default());
    let contact = Contact::new(&bus);
    let _lease = lease::Lease::keep(&bus.limits, guards.clone(), contact.clone());
    // Others may ask about a process until its end is in the log, hence longer than until shutdown.
    let holding = Holding::answering(&bus, CancellationToken::new()).await?;
    let supervisor = supervisor::Supervisor::new(&bus, config, guards, contact, holding, shutdown.clone());
    let supervisor = Arc::new(supervisor);
    readiness.announce("");
    tokio::join!(consume(&bus, Consumer::ProcessSupervisor, supervisor.clone(), shutdown), supervisor.end_in_time(),);
    Ok(())
}
