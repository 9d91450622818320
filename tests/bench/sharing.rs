//! Waiting until replicas have shared the partitions out among them.

use std::time::{Duration, Instant};

use kairo_local::Service;
use tokio::time::sleep;

use crate::{Outcome, machine::Machine};

/// The longest that sharing may take, and the interval of checks.
const WITHIN: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Partitions of the log, and how many of them one replica owns.
#[derive(Clone, Copy)]
struct Owned {
    all: u64,
    own: u64,
}

/// Waits until every partition is owned by agent-runtime and by router, and no replica owns more than its share.
pub async fn shared(machine: &Machine) -> Outcome<()> {
    let deadline = Instant::now() + WITHIN;
    for service in [Service::AgentRuntime, Service::Router] {
        while !is_shared(&owned(machine, service).await?) {
            if Instant::now() > deadline {
                return Err(format!("{} has not shared the partitions within {WITHIN:?}", service.binary()).into());
            }
            sleep(LOOK_AGAIN).await;
        }
    }
    Ok(())
}

fn is_shared(replicas: &[Owned]) -> bool {
    let all = replicas.iter().map(|replica| replica.all).max().unwrap_or_default();
    let share = all.div_ceil((replicas.len() as u64).max(1));
    all > 0
        && replicas.iter().map(|replica| replica.own).sum::<u64>() == all
        && replicas.iter().all(|replica| replica.own <= share)
}

/// Returns the partitions that each replica reports.
async fn owned(machine: &Machine, service: Service) -> Outcome<Vec<Owned>> {
    let mut owned = Vec::new();
    for replica in machine.stack.replicas(service) {
        let url = replica.health_url().ok_or("a replica without /metrics")?;
        let metrics = machine.http.get(format!("{url}/metrics")).send().await?.error_for_status()?.text().await?;
        owned.push(Owned {
            all: gauge(&metrics, "kairo_partitions_count"),
            own: gauge(&metrics, "kairo_partitions_owned"),
        });
    }
    Ok(owned)
}

/// The value of a gauge without attributes; nothing yet is 0.
fn gauge(metrics: &str, name: &str) -> u64 {
    let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<f64>().ok());
    value.unwrap_or_default() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_shared_when_all_are_owned_and_nobody_has_too_many() {
        let of = |own: &[u64]| is_shared(&own.iter().map(|own| Owned { all: 64, own: *own }).collect::<Vec<_>>());
        assert!(of(&[64]) && of(&[32, 32]) && of(&[22, 22, 20]));
        assert!(!of(&[64, 0]) && !of(&[32, 31]) && !of(&[23, 22, 19]) && !of(&[]));
    }

    #[test]
    fn a_gauge_is_found_by_its_whole_name() {
        let metrics = "# TYPE kairo_partitions_count gauge\nkairo_partitions_count_of_others 3\nkairo_partitions_owned 16\nkairo_partitions_count 64.0\n";
        assert_eq!([gauge(metrics, "kairo_partitions_count"), gauge(metrics, "kairo_partitions_owned")], [64, 16]);
    }
}
