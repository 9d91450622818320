//! Reports the gateway's readiness through `grpc.health.v1.Health`.

use std::time::Duration;

use kairo_core::service::Readiness;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tonic_health::{ServingStatus, server::HealthReporter};

/// Interval at which the connection to NATS is checked.
const EVERY: Duration = Duration::from_millis(500);

/// Reports of these services until shutdown, when those who watch are told and let go.
pub async fn report_readiness(
    reporter: HealthReporter,
    services: Vec<&'static str>,
    readiness: Readiness,
    shutdown: CancellationToken,
) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut changes = readiness.subscribe();
    let mut last = None;
    loop {
        let ready = !shutdown.is_cancelled() && readiness.is_ready();
        // Whoever watches is told of changes only.
        if last != Some(ready) {
            let serving = if ready { ServingStatus::Serving } else { ServingStatus::NotServing };
            for service in &services {
                reporter.set_service_status(service, serving).await;
            }
            last = Some(ready);
        }
        if shutdown.is_cancelled() {
            break;
        }
        tokio::select! {
            () = shutdown.cancelled() => {}
            Ok(()) = changes.changed() => {}
            _ = ticks.tick() => {}
        }
    }
    let mut reporter = reporter;
    for service in services {
        // A watch that goes on would keep the gateway from stopping.
        reporter.clear_service_status(service).await;
    }
}
