//! The services of a fork, as they run in production, one replica of each, on the server in memory.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::LocalBoxFuture};
use kairo_agent_runtime::{ModelClient, ModelConfig, ModelsConfig};
use kairo_core::{
    bus::{Bus, BusConfig},
    ids::Name,
    service::{Readiness, ServiceContext, ServiceError},
    subjects::Service,
};
use kairo_in_memory::port::InMemory;
use kairo_proto::v1::DecisionBasis;
use kairo_tool_runner::tool::Tool;
use tokio::{sync::mpsc, task::LocalSet};
use tokio_util::sync::CancellationToken;

/// Time within which a delivery must be acknowledged before it is delivered again; a service at work extends it.
pub(crate) const ACK_WAIT: Duration = Duration::from_secs(5);

/// Nobody else is there, so nothing is waited for.
fn bus_config() -> BusConfig {
    BusConfig {
        ack_wait_ms: u64::try_from(ACK_WAIT.as_millis()).unwrap_or(u64::MAX),
        beat_ms: 50,
        // As long as a machine may stand still, after which it would read everything again.
        member_expiry_ms: 60_000,
        handover_ms: 1_000,
        ..BusConfig::default()
    }
}

/// The parts that the services of a fork are built from.
pub(crate) struct ServiceParts {
    pub config: kairo_agent_runtime::Config,
    pub basis: Option<DecisionBasis>,
    pub answers: Arc<dyn ModelClient>,
    pub tools: Vec<Arc<dyn Tool>>,
}

/// Services at work, on a thread of their own.
pub(crate) struct RunningServices {
    shutdown: CancellationToken,
    /// The reasons for which services stopped unasked; the channel closes when all have stopped.
    stopped: mpsc::UnboundedReceiver<String>,
}

impl RunningServices {
    /// Starts them.
    pub fn start(server: InMemory, parts: ServiceParts) -> std::io::Result<Self> {
        let (tell, stopped) = mpsc::unbounded_channel();
        let shutdown = CancellationToken::new();
        let until = shutdown.clone();
        std::thread::Builder::new().name("fork".to_owned()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => LocalSet::new().block_on(&runtime, run(&server, parts, &until, &tell)),
                Err(error) => _ = tell.send(error.to_string()),
            }
        })?;
        Ok(Self { shutdown, stopped })
    }

    /// Waits until one of them stops by itself, and says why.
    pub async fn wait_for_stop(&mut self) -> String {
        self.stopped.recv().await.unwrap_or_else(|| "it came to an end".to_owned())
    }

    /// Stops them, however long that takes.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        while self.stopped.recv().await.is_some() {}
    }
}

impl Drop for RunningServices {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

async fn run(
    server: &InMemory,
    parts: ServiceParts,
    shutdown: &CancellationToken,
    tell: &mpsc::UnboundedSender<String>,
) {
    let ServiceParts { config, basis, answers, tools } = parts;
    let router = async {
        let context = context(server, Service::Router, shutdown).await?;
        kairo_router::run(kairo_router::Config::default(), context).await
    };
    let agents = async {
        let context = context(server, Service::AgentRuntime, shutdown).await?;
        kairo_agent_runtime::run_with(with_recorded_limits(config, basis.as_ref()), context, answers).await
    };
    let tools = async {
        let context = context(server, Service::ToolRunner, shutdown).await?;
        kairo_tool_runner::run_only(kairo_tool_runner::Config::default(), context, tools).await
    };
    let watched = async |name: &str, service: BoxLocalFuture<'_>| {
        let ended = service.await;
        if !shutdown.is_cancelled() {
            let why = ended.err().map_or_else(|| "it came to an end".to_owned(), |error| error.to_string());
            let _ = tell.send(format!("{name}: {why}"));
        }
    };
    tokio::join!(
        watched("router", router.boxed_local()),
        watched("agent-runtime", agents.boxed_local()),
        watched("tool-runner", tools.boxed_local()),
        async { _ = shutdown.run_until_cancelled(server.run_clock()).await },
    );
}

type BoxLocalFuture<'f> = LocalBoxFuture<'f, Result<(), ServiceError>>;

async fn context(
    server: &InMemory,
    service: Service,
    shutdown: &CancellationToken,
) -> Result<ServiceContext, ServiceError> {
    let instance =
        Name::parse(&format!("{}-fork", service.name())).map_err(|error| ServiceError::Other(error.to_string()))?;
    let bus = Bus::from_port(Arc::new(server.clone()), service, instance, &bus_config());
    bus.find_log().await?;
    Ok(ServiceContext { bus, shutdown: shutdown.clone(), readiness: Readiness::silent() })
}

/// The configuration with the limits that decisions rested on, so that what is asked again is asked as it was.
fn with_recorded_limits(
    mut config: kairo_agent_runtime::Config,
    basis: Option<&DecisionBasis>,
) -> kairo_agent_runtime::Config {
    let Some(basis) = basis else { return config };
    let own = &mut config.agent_runtime;
    (own.max_steps, own.model_tries) = (basis.max_steps, basis.model_tries);
    // A basis of before epoch 10 says none.
    own.outage_tries = if basis.outage_tries == 0 { basis.model_tries } else { basis.outage_tries };
    (own.parallel_tools, own.chain_steps) = (basis.parallel_tools as usize, basis.chain_steps as usize);
    let [heavy, fast, light] = config.models.tiers().map(|(tier, model)| {
        let recorded = basis.models.iter().find(|recorded| recorded.tier == tier && recorded.context_tokens > 0);
        match recorded.map(|recorded| recorded.context_tokens) {
            Some(context_tokens) => ModelConfig { context_tokens, token_factor: Some(1.0), ..model.clone() },
            None => model.clone(),
        }
    });
    let models = std::mem::take(&mut config.models);
    config.models = ModelsConfig { heavy, fast: Some(fast), light: Some(light), ..models };
    config
}
