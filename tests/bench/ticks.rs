//! The latency of publishing into the log while something else happens.

use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::{Outcome, load::percentile, machine::Machine, projection::connect, report::milliseconds};

/// Between two publishes that are measured.
const TICK: Duration = Duration::from_millis(10);

/// Acknowledged publishes into the log at a steady pace.
pub struct Ticks {
    over: CancellationToken,
    running: JoinHandle<Outcome<Vec<Duration>>>,
}

impl Ticks {
    /// Begins to publish.
    pub async fn start(machine: &Machine) -> Outcome<Self> {
        let bus = connect(&machine.nats.operator()).await?;
        let over = CancellationToken::new();
        let ended = over.clone();
        let running = tokio::spawn(async move {
            let mut latencies = Vec::new();
            while !ended.is_cancelled() {
                let begun = Instant::now();
                // What another system says, which no hook waits for.
                bus.nats()?.jetstream.publish("kairo.system.bench.tick", "{}".into()).await?.await?;
                latencies.push(begun.elapsed());
                sleep(TICK).await;
            }
            latencies.sort_unstable();
            Ok(latencies)
        });
        Ok(Self { over, running })
    }

    /// Latencies, shortest first.
    pub async fn stop(self) -> Outcome<Vec<Duration>> {
        self.over.cancel();
        self.running.await?
    }
}

/// Statistics of waits.
#[derive(Debug, Serialize)]
pub struct Figures {
    pub count: usize,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub longest_ms: f64,
}

impl Figures {
    /// Of the shortest first.
    pub fn of(sorted: &[Duration]) -> Self {
        let at = |share| milliseconds(percentile(sorted, share));
        Self { count: sorted.len(), p50_ms: at(0.5), p99_ms: at(0.99), longest_ms: at(1.0) }
    }
}
