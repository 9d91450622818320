//! The services as they run in production, several replicas of each, on the port in memory.

use std::{sync::Arc, time::Duration};

use jiff::SignedDuration;
use kairo_core::{
    bus::{Bus, BusConfig},
    ids::Name,
    service::{Readiness, ServiceContext, ServiceError},
    subjects::Service,
};
use tokio_util::sync::CancellationToken;

use crate::{
    guards::Invented,
    models::Scripted,
    port::Memory,
    replica::{Lane, Life, Replica},
    tools,
    world::Shared,
};

/// The services of a run.
pub const SERVICES: [Service; 4] =
    [Service::Router, Service::AgentRuntime, Service::ToolRunner, Service::ProcessSupervisor];
/// Time for which the server waits for a sign of life.
pub const ACK_WAIT: Duration = Duration::from_millis(1_500);

/// Everything is quick, so that a run is short.
fn limits() -> BusConfig {
    BusConfig {
        ack_wait_ms: ACK_WAIT.as_millis() as u64,
        retry_first_ms: 20,
        retry_longest_ms: 600,
        hold_ms: 20_000,
        beat_ms: 500,
        member_expiry_ms: 1_500,
        checkpoint_ms: 600,
        handover_ms: 1_000,
        drain_ms: 1_500,
        ..BusConfig::default()
    }
}

/// Starts a replica of a service.
pub fn start(world: &Shared, service: Service) -> usize {
    let shutdown = CancellationToken::new();
    let (replica, instance, little_memory) = {
        let mut here = world.lock().unwrap();
        let number = here.replicas.len();
        let instance = format!("{}-{number}", service.name());
        let skew = here.faults.skew as usize;
        let skew = SignedDuration::from_millis(here.below(2 * skew + 1) as i64 - skew as i64);
        here.replicas.push(Replica {
            service,
            instance: instance.clone(),
            life: Arc::new(Life::default()),
            up: Lane::open(),
            down: Lane::open(),
            cut: None,
            connections: 1,
            skew,
            shutdown: shutdown.clone(),
            running: None,
        });
        here.note(&instance, || "starts".to_owned());
        (number, instance, here.faults.little_memory)
    };
    let port = Memory { world: world.clone(), replica };
    let instance = Name::parse(&instance).expect("a name");
    let privacy = world.lock().unwrap().privacy.clone();
    let bus = Bus::from_port(Arc::new(port), service, instance, &limits()).with_sealing(&privacy);
    let work = Box::pin(serve(world.clone(), replica, bus, shutdown, little_memory));
    let work = world.lock().unwrap().replicas[replica].life.host(work);
    let running = tokio::task::spawn_local(work);
    world.lock().unwrap().replicas[replica].running = Some(running);
    replica
}

/// Does the work of every service's `main`, without signals and probes.
async fn serve(world: Shared, replica: usize, bus: Bus, shutdown: CancellationToken, little_memory: bool) {
    let found = kairo_core::service::retry_until_nats(&bus, &shutdown, async || bus.find_log().await).await;
    let outcome = match found {
        Ok(Some(())) => {
            let context = ServiceContext { bus: bus.clone(), shutdown, readiness: Readiness::silent() };
            run(&world, replica, bus.service, context, little_memory).await
        }
        Ok(None) => Ok(()),
        Err(error) => Err(error.into()),
    };
    if let Err(error) = outcome {
        let mut world = world.lock().unwrap();
        let who = world.replicas[replica].instance.clone();
        world.violation(format!("{who} stopped by itself: {error}"));
    }
}

async fn run(
    world: &Shared,
    replica: usize,
    service: Service,
    context: ServiceContext,
    little_memory: bool,
) -> Result<(), ServiceError> {
    match service {
        Service::Router => {
            let mut config = kairo_router::Config::default();
            config.router.commands_kept_after = 20;
            kairo_router::run(config, context).await
        }
        Service::AgentRuntime => {
            let mut config = kairo_agent_runtime::Config::default();
            config.agent_runtime.retry_pause_ms = 20;
            if world.lock().unwrap().seed.is_multiple_of(3) {
                // What agents offer to models takes half of that.
                config.models.heavy.context_tokens = 8_000;
            }
            if little_memory {
                config.agent_runtime.cached_bytes = 1;
            }
            let models = Arc::new(Scripted { world: world.clone(), replica });
            kairo_agent_runtime::run_with(config, context, models).await
        }
        Service::ToolRunner => {
            let mut config = kairo_tool_runner::Config::default();
            config.tool_runner.cancel_grace_ms = 200;
            config.tool_runner.call_timeout_ms = 20_000;
            let tools = tools::all(world, context.bus.instance.as_str());
            kairo_tool_runner::run_with(config, context, tools).await
        }
        Service::ProcessSupervisor => {
            let mut config = kairo_process_supervisor::Config::default();
            let program = serde_json::from_value(serde_json::json!("/invented/work")).expect("a program");
            config.process_supervisor.programs.insert("work".to_owned(), program);
            kairo_process_supervisor::run_with(config, context, Arc::new(Invented { world: world.clone() })).await
        }
        Service::Gateway | Service::Projector => Ok(()),
    }
}
