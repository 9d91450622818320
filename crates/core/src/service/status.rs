//! Answering who is there: every replica replies to a request on [`STATUS_PING`].

use futures::StreamExt;
use kairo_proto::v1::{OwnedPartition, ReplicaRow};
use prost::Message;
use tokio::time::Instant;

use super::Readiness;
use crate::{bus::Bus, subjects::STATUS_PING, vocabulary::READER};

/// Parked agents that a replica names at most.
const PARKED: usize = 100;

pub(super) async fn answer_pings(bus: Bus, readiness: Readiness, started: Instant) {
    let mut pings = match bus.subscribe(STATUS_PING).await {
        Ok(pings) => pings,
        Err(error) => {
            tracing::warn!(%error, "this replica will not show in the status");
            return;
        }
    };
    while let Some(ping) = pings.next().await {
        let Some(reply) = ping.reply else { continue };
        let violations = bus.violations();
        let status = ReplicaRow {
            service: bus.service.name().to_owned(),
            instance: bus.instance.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_s: started.elapsed().as_secs(),
            ready: readiness.is_ready(),
            health_url: readiness.url().to_owned(),
            not_ready_because: readiness.unready_reason().unwrap_or_default(),
            partitions: owned_partitions(&bus),
            takeovers: bus.standing.takeovers(),
            handovers: bus.standing.handovers(),
            decisions: bus.standing.decisions(),
            model_requests: bus.standing.model_requests(),
            reader: READER,
            parked: bus.standing.parked_agents().into_iter().take(PARKED).collect(),
            violations: violations.count,
            last_violation: violations.last,
            notes: readiness.notes(),
            tool_servers: readiness.tool_servers.current_rows(),
            refused_tools: readiness.refused_tools.current_rows(),
            waits: readiness.waits_of_work.current_rows(),
        };
        if let Err(error) = bus.send_live(&reply, status.encode_to_vec()).await {
            tracing::debug!(%error, "a status answer went nowhere");
        }
    }
}

fn owned_partitions(bus: &Bus) -> Vec<OwnedPartition> {
    let owned = bus.standing.partitions().into_iter();
    owned.map(|(partition, at)| OwnedPartition { partition, read: at.read, waiting: at.waiting }).collect()
}
