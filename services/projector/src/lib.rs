//! projector: writes the read model from the log.
//!
//! Replicas share the log by partitions ([`partition_progress`], [`rebalance`]), each held by a lock of Postgres
//! ([`session`]). A [`worker`] reads the log in order for the partitions it holds ([`reader`],
//! [`partition_progress`]), sorts out what cannot be read ([`batch`]), lets every projection say which rows change
//! ([`projections`], [`changes`]), and writes them with the new positions in one transaction ([`session`],
//! [`tables`]), while the next stretch is read ([`pipeline`]). There is one for each generation of the tables that is
//! followed ([`replica`]); a [`rebuild_controller`] builds further ones, step by step ([`transition`], [`generation`]). What
//! the tables say is handed on to the search engine, if there is one ([`search`]).

mod batch;
mod changes;
mod config;
mod connection;
mod generation;
mod health;
mod partition_progress;
mod pipeline;
mod projections;
mod rate;
mod reader;
mod rebalance;
mod rebuild_controller;
mod replica;
mod search;
mod session;
mod tables;
mod transition;
mod worker;

use kairo_core::service::{ServiceContext, ServiceError};

pub use config::{Config, ProjectorConfig};

use health::ProjectionHealth;
use replica::ProjectorReplica;

/// Runs until told to stop.
pub async fn run(config: Config, context: ServiceContext) -> Result<(), ServiceError> {
    let ServiceContext { bus, shutdown, readiness } = context;
    let bus = bus.with_archive(config.archive.archive_reader());
    let health = ProjectionHealth::new(&readiness);
    let mut replica = ProjectorReplica::new(&bus, config.clone(), health.clone());
    tokio::select! {
        () = shutdown.cancelled() => Ok(()),
        () = health.wait_until_ready(), if config.projector.until_live => {
            tracing::info!("the read model of this version is live");
            Ok(())
        }
        never = replica.run() => match never {},
        ended = search::run(&config) => ended,
    }
}
