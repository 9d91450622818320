//! agent-runtime: the mind of every agent.
//!
//! Each agent is in a partition of the log, and each partition is owned by one replica ([`shard`]), which keeps its agents
//! in memory ([`resident`]), from their snapshots or from the log ([`snapshots`]). What the log brings is folded into their
//! states; when it is an agent's move, the pure core decides what to do ([`kairo_mind`]), asking models on the way
//! ([`models`], [`thinking`]), and the decision is committed under the guard of its subject. What others are to do at its
//! word is done only then ([`effects`]).

mod again;
mod basis;
mod catalogue;
mod config;
mod drafts;
pub mod effects;
mod estimate;
mod failing_calls;
mod given_up;
mod handed_over;
mod live;
mod measures;
mod models;
mod pauses;
mod providers;
mod received;
mod resident;
mod shard;
mod snapshots;
mod spans;
mod thinking;
mod turn;
mod under_way;

use std::sync::{Arc, atomic::AtomicUsize};

use kairo_core::{
    bus::{consume::consume, epoch::EpochInForce, fence::Fence, objects::Objects, retrying::Retries},
    ownership::member,
    service::{Context, ServiceError},
    subjects::Consumer,
};
use tokio::sync::Semaphore;

use self::{failing_calls::FailingCalls, under_way::DecisionsUnderWay};
pub use config::{AgentRuntimeConfig, Config, ModelConfig, ModelsConfig};
pub use live::Live;
pub use models::{Answers, Found, Models, NoParts, Parts, Stored};
pub use pauses::Pauses;
pub use received::{Received, SoFar};
pub use snapshots::{FORMAT as SNAPSHOT_FORMAT, decode as decode_snapshot, key as snapshot_key};
pub use thinking::answered;

/// Runs until told to stop.
pub async fn run(config: Config, context: Context) -> Result<(), ServiceError> {
    let models =
        Models::new(&config.models, Arc::new(Objects::new(&context.bus)), config.agent_runtime.max_loaded_bytes);
    let models = Arc::new(models.measured(&context.bus.metrics));
    models.observe();
    let known = models.clone();
    context.readiness.refused_tools.set(move || known.refused_tools());
    let context = Context { bus: context.bus.with_past(config.archive.past()), ..context };
    run_with(config, context, models).await
}

/// Runs until told to stop, with `models` in place of the configured ones.
pub async fn run_with(config: Config, context: Context, models: Arc<dyn Answers>) -> Result<(), ServiceError> {
    let Context { bus, shutdown, readiness } = context;
    let Some(basis) = shutdown.run_until_cancelled(basis::write_in_time(&bus, &config)).await else { return Ok(()) };
    let catalogue = catalogue::CatalogueInForce::follow(&bus, shutdown.clone());
    let epoch = EpochInForce::follow(&bus, shutdown.clone())?;
    let drafts = drafts::Drafts::default();
    let fence = Fence::follow(&bus, shutdown.clone()).await;
    let shards = Arc::new(shard::Shards {
        bus: bus.clone(),
        thinker: thinking::Thinker::new(&bus, &config, &basis, models, catalogue, epoch, drafts.clone()).within(fence),
        loads: Semaphore::new(config.agent_runtime.loads_at_once),
        bytes: AtomicUsize::new(0),
        config: config.agent_runtime,
        failing: FailingCalls::new(readiness.clone()),
        under_way: DecisionsUnderWay::default(),
    });
    let under_way = shards.under_way.clone();
    readiness.waits_of_work.set(move || under_way.row().into_iter().collect());
    shards.observe();
    readiness.announce("");
    let effects = Arc::new(effects::Effects::new(&bus));
    let retries = Retries::new(&bus)
        .by(Consumer::AgentRuntime, Arc::new(again::PassedOver))
        .by(Consumer::AgentRuntimeEffects, effects.clone());
    let (owned, (), (), repeated) = tokio::join!(
        member::run(&bus, shards, shutdown.clone()),
        consume(&bus, Consumer::AgentRuntimeEffects, effects, shutdown.clone()),
        consume(&bus, Consumer::AgentRuntimeRetries, Arc::new(retries), shutdown.clone()),
        drafts.repeat(bus.clone(), shutdown.clone()),
    );
    owned?;
    Ok(repeated?)
}
