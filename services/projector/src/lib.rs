//! projector: writes the read model from the log.
//!
//! One replica leads, the others stand by, and Postgres decides who ([`session`]). The leader reads the log in order
//! ([`reader`]), sorts out what cannot be read ([`batch`]), lets every projection say which rows change
//! ([`projections`], [`changes`]), and writes them with the new position in one transaction ([`session`],
//! [`tables`]).

mod batch;
mod changes;
mod config;
mod leader;
mod projections;
mod reader;
mod session;
mod tables;

use kairo_core::{
    bus::consume::backoff,
    service::{Context, ServiceError},
};

pub use config::{Config, ProjectorConfig};

use leader::Leader;

/// Runs until told to stop.
pub async fn run(config: Config, context: Context) -> Result<(), ServiceError> {
    let Context { bus, shutdown, readiness } = context;
    let leader = Leader::new(&bus, &config, &readiness, &shutdown);
    let mut failures = 0;
    while !shutdown.is_cancelled() {
        let mut progress = false;
        let Err(error) = leader.run(&mut progress).await else { break };
        readiness.set(false);
        failures = if progress { 1 } else { failures + 1 };
        tracing::warn!(%error, failures, "the projection was interrupted, starting again");
        tokio::select! {
            () = tokio::time::sleep(backoff(&bus.limits, failures)) => {}
            () = shutdown.cancelled() => {}
        }
    }
    Ok(())
}
