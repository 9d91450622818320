//! process-supervisor: runs programs for agents, such that no program begins before it is recorded and none outlives
//! its supervisor.
//!
//! An invoke comes in ([`supervisor`]); the pure part ([`plan`]) says for each action whether its process may begin. A
//! request is checked against the [`policy`] and the [`limits`], which makes it a [`protocol::Spec`]; what the kernel can
//! keep programs from says [`confinement`]. [`guarded`] hands
//! that to a [`guard`], a process of its own made from the same binary ([`launcher`]), which gets the program as far as a gate and
//! holds it there. The supervisor records that the process exists ([`ledgers`]) and only then opens the gate
//! ([`running`]). From there on the guard passes on what the program writes and sees to it that program and descendants
//! end: by themselves, at a limit, when asked, or because the supervisor is gone ([`lease`]). What is written is looked
//! through for [`progress`], kept in part ([`account`]) and said to whoever listens ([`live`]). How it ended is recorded
//! ([`events`]). While it runs the log may order to write to it, to signal it and to
//! stop it ([`orders`]), and others may ask how it is doing ([`control`], [`requests`]). What
//! there is to run is published ([`announcement`]).

mod account;
mod announcement;
mod capabilities;
pub mod clock;
pub mod config;
pub mod confinement;
mod control;
mod events;
pub mod guard;
pub mod guarded;
mod job;
pub mod launcher;
mod lease;
mod ledgers;
pub mod limits;
mod lines;
mod live;
mod once;
mod orders;
mod output;
mod pieces;
pub mod plan;
pub mod policy;
mod process;
mod progress;
pub mod protocol;
mod registry;
mod requests;
mod ring_buffer;
mod room;
mod running;
mod supervisor;
pub mod tail;
mod watch;

use std::sync::Arc;

use kairo_core::{
    bus::{consume::consume, contact::Contact, liveness::Liveness, orders::Orders, retrying::Retries},
    service::{Context, ServiceError, waiting_for_nats},
    subjects::Consumer,
};
use tokio_util::sync::CancellationToken;

pub use config::Config;

use crate::{
    control::Answering,
    guarded::Guards,
    launcher::{Launch, Launcher},
    supervisor::Supervisor,
};

/// Runs until told to stop.
pub async fn run(config: Config, context: Context) -> Result<(), ServiceError> {
    let launcher = Launcher::default().adopting_orphans().map_err(|error| {
        ServiceError::Other(format!(
            "cannot adopt what killed guards leave behind: {error}; run it on Linux 3.4 or later"
        ))
    })?;
    run_with(config, context, Arc::new(launcher)).await
}

/// Runs until told to stop, with guards started by `launcher`.
pub async fn run_with(config: Config, context: Context, launcher: Arc<dyn Launch>) -> Result<(), ServiceError> {
    let Context { bus, shutdown, readiness } = context;
    let config = config.process_supervisor;
    check_room(config.limits.concurrent, bus.limits.concurrency)?;
    let enforced = launcher.enforced();
    let policy = config.policy(enforced);
    let capabilities = capabilities::capabilities(&policy, &config.limits);
    if !config.programs.is_empty() {
        for shortcoming in enforced.shortcomings(config.landlock.mode, config.pid_namespace, config.seccomp) {
            tracing::warn!("{shortcoming}");
            readiness.note(shortcoming);
        }
    }
    let guards = Arc::new(Guards::by(launcher).hosted_by(&bus));
    let contact = Contact::new(&bus);
    let _lease = lease::Lease::keep(&bus, guards.clone(), contact.clone());
    // Others may ask about a process until its end is in the log, hence longer than until shutdown.
    let liveness = Liveness::answering(&bus, CancellationToken::new()).await?;
    let supervisor = Arc::new(Supervisor::new(&bus, config, policy, guards, contact, liveness, shutdown.clone()));
    supervisor.observe();
    let Some(from_now_on) = waiting_for_nats(&bus, &shutdown, async || Orders::from_now_on(&bus).await).await? else {
        return Ok(());
    };
    let answering = Answering::begin(supervisor.requests(), from_now_on).await?;
    // After that: by the time that it is answered, the server knows whom to ask about processes.
    let published =
        waiting_for_nats(&bus, &shutdown, async || announcement::publish(&bus, &capabilities).await).await?;
    if published.is_none() {
        return Ok(());
    }
    readiness.announce("");
    let retries = Retries::new(&bus).by(Consumer::ProcessSupervisor, supervisor.clone());
    tokio::join!(
        consume(&bus, Consumer::ProcessSupervisor, supervisor.clone(), shutdown.clone()),
        consume(&bus, Consumer::ProcessSupervisorRetries, Arc::new(retries), shutdown),
        supervisor.end_in_time(),
    );
    answering.finish().await;
    Ok(())
}

/// An invoke is in hand until its processes have ended, so with as many processes as invokes in hand none would be left
/// to take one more, be it only to hand it on or to record what was lost.
fn check_room(concurrent: usize, in_hand: usize) -> Result<(), ServiceError> {
    match concurrent < in_hand {
        true => Ok(()),
        false => Err(ServiceError::Other(format!(
            "process_supervisor.limits.concurrent is {concurrent} and bus.concurrency {in_hand}: every running process \
             keeps a message in hand; lower the first below the second, or raise the second"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use kairo_core::bus::BusConfig;

    use super::*;
    use crate::limits::Limits;

    #[test]
    fn there_is_always_a_hand_free() {
        assert!(check_room(Limits::default().concurrent, BusConfig::default().concurrency).is_ok());
        let error = check_room(256, 256).expect_err("no hand is free").to_string();
        assert!(error.contains("limits.concurrent is 256") && error.contains("bus.concurrency 256"), "{error}");
    }
}
