//! agent-runtime: the mind of every agent.
//!
//! A message or a tool's result rings the doorbell ([`runtime`]); the agent's state is brought up to date from the log
//! ([`memory`]); the pure core decides what to do ([`mind`]), asking models on the way ([`models`]) under a claim
//! ([`claims`]); the decision is committed under the guard of its subject. What others are to do at its word is done only
//! then ([`effects`]).

mod catalogue;
mod claims;
mod config;
pub mod effects;
mod interjections;
mod live;
mod memory;
pub mod mind;
mod models;
mod runtime;

use std::sync::Arc;

use kairo_core::{
    bus::{consume::consume, holding::Holding},
    service::{Context, ServiceError, waiting_for_nats},
    subjects::Consumer,
};
use tokio_util::sync::CancellationToken;

pub use config::{AgentRuntimeConfig, Config, ModelConfig, ModelsConfig};

/// Runs until told to stop.
pub async fn run(config: Config, context: Context) -> Result<(), ServiceError> {
    let Context { bus, shutdown, readiness } = context;
    let catalogue = catalogue::CatalogueInForce::follow(&bus, shutdown.clone());
    // For as long as this replica lives: while it drains, it still works.
    let holding = Holding::answering(&bus, CancellationToken::new()).await?;
    let buckets = async || {
        Ok((memory::Memory::open(&bus, config.agent_runtime.cached_agents).await?, claims::Claims::open(&bus).await?))
    };
    let Some((memory, claims)) = waiting_for_nats(&bus, &shutdown, buckets).await? else { return Ok(()) };
    let runtime = runtime::AgentRuntime::new(&bus, &config, memory, claims, catalogue, holding);
    readiness.announce("");
    let effects = effects::Effects::new(&bus);
    tokio::join!(
        consume(&bus, Consumer::AgentRuntime, Arc::new(runtime), shutdown.clone()),
        consume(&bus, Consumer::AgentRuntimeEffects, Arc::new(effects), shutdown),
    );
    Ok(())
}
