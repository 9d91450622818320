//! agent-runtime: the mind of every agent.
//!
//! Each agent is in a partition of the log, and each partition is owned by one replica ([`shard`]), which keeps its agents
//! in memory ([`resident`]), from their snapshots or from the log ([`snapshots`]). What the log brings is folded into their
//! states; when it is an agent's move, the pure core decides what to do ([`kairo_mind`]), asking models on the way
//! ([`models`], [`thinker`]), and the decision is committed under the guard of its subject. What others are to do at its
//! word is done only then ([`effects`]).

mod abandoned_calls;
mod agent_metrics;
mod answer_progress;
mod build_pin;
mod catalogue;
mod config;
mod decisions_in_flight;
mod drafts;
pub mod effects;
mod estimate;
mod failing_calls;
mod handover_state;
mod live_answer;
mod model_server;
mod models;
mod pauses;
mod resident;
mod shard;
mod skipped_messages;
mod snapshots;
mod spans;
mod thinker;
mod turn;

use std::sync::{Arc, atomic::AtomicUsize};

use kairo_core::{
    bus::{
        consume::consume, dead_letter_retry::DeadLetterRetrier, epoch::EpochInForce, fence::ModelFence,
        objects::MediaStore,
    },
    ownership::member,
    service::{ServiceContext, ServiceError},
    subjects::Consumer,
};
use tokio::sync::Semaphore;

use self::{decisions_in_flight::DecisionsInFlight, failing_calls::FailingCalls};
pub use answer_progress::{AnswerProgress, ProgressHandle};
pub use config::{AgentRuntimeConfig, Config, ModelConfig, ModelsConfig};
pub use live_answer::LiveAnswer;
pub use models::{EmptyPartStore, ModelClient, Models, PartLookup, PartStore, StoredPart};
pub use pauses::Pauses;
pub use snapshots::{FORMAT as SNAPSHOT_FORMAT, decode as decode_snapshot, key as snapshot_key};
pub use thinker::complete_with_deadline;

/// Runs until told to stop.
pub async fn run(config: Config, context: ServiceContext) -> Result<(), ServiceError> {
    let models =
        Models::new(&config.models, Arc::new(MediaStore::new(&context.bus)), config.agent_runtime.max_loaded_bytes);
    let models = Arc::new(models.with_metrics(&context.bus.metrics));
    models.observe();
    let known = models.clone();
    context.readiness.refused_tools.set_source(move || known.refused_tools());
    let context = ServiceContext { bus: context.bus.with_archive(config.archive.archive_reader()), ..context };
    run_with(config, context, models).await
}

/// Runs until told to stop, with `models` in place of the configured ones.
pub async fn run_with(
    config: Config,
    context: ServiceContext,
    models: Arc<dyn ModelClient>,
) -> Result<(), ServiceError> {
    let ServiceContext { bus, shutdown, readiness } = context;
    let Some(basis) = shutdown.run_until_cancelled(build_pin::write_with_retry(&bus, &config)).await else {
        return Ok(());
    };
    let catalogue = catalogue::CatalogueInForce::follow(&bus, shutdown.clone());
    let epoch = EpochInForce::follow(&bus, shutdown.clone())?;
    let drafts = drafts::Drafts::default();
    let fence = ModelFence::follow(&bus, shutdown.clone()).await;
    let shards = Arc::new(shard::Shards {
        bus: bus.clone(),
        thinker: thinker::Thinker::new(&bus, &config, &basis, models, catalogue, epoch, drafts.clone())
            .with_fence(fence),
        loads: Semaphore::new(config.agent_runtime.loads_at_once),
        bytes: AtomicUsize::new(0),
        config: config.agent_runtime,
        failing: FailingCalls::new(readiness.clone()),
        under_way: DecisionsInFlight::default(),
    });
    let under_way = shards.under_way.clone();
    readiness.waits_of_work.set_source(move || under_way.row().into_iter().collect());
    shards.observe();
    readiness.announce_ready("");
    let effects = Arc::new(effects::Effects::new(&bus));
    let retries = DeadLetterRetrier::new(&bus)
        .with_handler(Consumer::AgentRuntime, Arc::new(skipped_messages::SkippedMessageHandler))
        .with_handler(Consumer::AgentRuntimeEffects, effects.clone());
    let (owned, (), (), repeated) = tokio::join!(
        member::run(&bus, shards, shutdown.clone()),
        consume(&bus, Consumer::AgentRuntimeEffects, effects, shutdown.clone()),
        consume(&bus, Consumer::AgentRuntimeRetries, Arc::new(retries), shutdown.clone()),
        drafts.serve_requests(bus.clone(), shutdown.clone()),
    );
    owned?;
    Ok(repeated?)
}
