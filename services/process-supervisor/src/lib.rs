//! process-supervisor: runs programs for agents, such that no program begins before it is recorded and none outlives
//! its supervisor.
//!
//! An invoke comes in ([`supervisor`]); the pure part ([`action_plan`]) says for each action whether its process may begin. A
//! request is checked against the [`policy`] and the [`limits`], which makes it a [`protocol::Spec`]; what the kernel can
//! keep programs from says [`confinement`]. [`guarded_process`] hands
//! that to a [`guard`], a process of its own made from the same binary ([`launcher`]), which gets the program as far as a gate and
//! holds it there. The supervisor records that the process exists ([`ledgers`]) and only then opens the gate
//! ([`process_run`]). From there on the guard passes on what the program writes and sees to it that program and descendants
//! end: by themselves, at a limit, when asked, or because the supervisor is gone ([`lease`]). What is written is looked
//! through for [`progress`], kept in part ([`output_account`]) and said to whoever listens ([`live_output`]). How it ended is recorded
//! ([`events`]). While it runs the log may order to write to it, to signal it and to
//! stop it ([`order_execution`]), and others may ask how it is doing ([`control_listener`], [`request_handler`]). What
//! there is to run is published ([`announcement`]).

pub mod action_plan;
mod announcement;
mod capabilities;
pub mod clock;
pub mod config;
pub mod confinement;
mod control_listener;
mod events;
pub mod guard;
pub mod guarded_process;
mod job;
pub mod launcher;
mod lease;
mod ledgers;
pub mod limits;
mod line_buffer;
mod live_output;
mod live_pieces;
mod order_execution;
mod output_account;
mod output_capture;
pub mod policy;
mod process_room;
mod process_run;
mod progress;
pub mod protocol;
mod registry;
mod request_dedup;
mod request_handler;
mod ring_buffer;
mod running_process;
mod supervisor;
pub mod tail;
mod watch;

use std::sync::Arc;

use kairo_core::{
    bus::{
        connection_monitor::ConnectionMonitor, consume::consume, dead_letter_retry::DeadLetterRetrier,
        liveness::ActionLiveness, orders::OrderFollower,
    },
    service::{ServiceContext, ServiceError, retry_until_nats},
    subjects::Consumer,
};
use tokio_util::sync::CancellationToken;

pub use config::Config;

use crate::{
    control_listener::ControlListener,
    guarded_process::GuardFleet,
    launcher::{Launch, Launcher},
    supervisor::Supervisor,
};

/// Runs until told to stop.
pub async fn run(config: Config, context: ServiceContext) -> Result<(), ServiceError> {
    let launcher = Launcher::default().adopting_orphans().map_err(|error| {
        ServiceError::Other(format!(
            "cannot adopt what killed guards leave behind: {error}; run it on Linux 3.4 or later"
        ))
    })?;
    run_with(config, context, Arc::new(launcher)).await
}

/// Runs until told to stop, with guards started by `launcher`.
pub async fn run_with(config: Config, context: ServiceContext, launcher: Arc<dyn Launch>) -> Result<(), ServiceError> {
    let ServiceContext { bus, shutdown, readiness } = context;
    let config = config.process_supervisor;
    check_concurrency(config.limits.concurrent, bus.limits.concurrency)?;
    let enforced = launcher.kernel_confinement();
    let policy = config.policy(enforced);
    let capabilities = capabilities::build_capabilities(&policy, &config.limits);
    if !config.programs.is_empty() {
        for shortcoming in enforced.shortcomings(config.landlock.mode, config.pid_namespace, config.seccomp) {
            tracing::warn!("{shortcoming}");
            readiness.add_note(shortcoming);
        }
    }
    let guards = Arc::new(GuardFleet::new(launcher).with_bus(&bus));
    let contact = ConnectionMonitor::new(&bus);
    let _lease = lease::Lease::start(&bus, guards.clone(), contact.clone());
    // Others may ask about a process until its end is in the log, hence longer than until shutdown.
    let liveness = ActionLiveness::start_answering(&bus, CancellationToken::new()).await?;
    let supervisor = Arc::new(Supervisor::new(&bus, config, policy, guards, contact, liveness, shutdown.clone()));
    supervisor.register_metrics();
    let Some(from_now_on) = retry_until_nats(&bus, &shutdown, async || OrderFollower::from_now_on(&bus).await).await?
    else {
        return Ok(());
    };
    let answering = ControlListener::start(supervisor.request_handler(), from_now_on).await?;
    // After that: by the time that it is answered, the server knows whom to ask about processes.
    let published =
        retry_until_nats(&bus, &shutdown, async || announcement::publish(&bus, &capabilities).await).await?;
    if published.is_none() {
        return Ok(());
    }
    readiness.announce_ready("");
    let retries = DeadLetterRetrier::new(&bus).with_handler(Consumer::ProcessSupervisor, supervisor.clone());
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
fn check_concurrency(concurrent: usize, in_hand: usize) -> Result<(), ServiceError> {
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
    use crate::limits::ProcessLimits;

    #[test]
    fn there_is_always_a_hand_free() {
        assert!(check_concurrency(ProcessLimits::default().concurrent, BusConfig::default().concurrency).is_ok());
        let error = check_concurrency(256, 256).expect_err("no hand is free").to_string();
        assert!(error.contains("limits.concurrent is 256") && error.contains("bus.concurrency 256"), "{error}");
    }
}
