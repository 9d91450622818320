//! The readers that have not reached the place up to which the log is to be trimmed: durable consumers, and partition
//! owners.

use std::collections::BTreeMap;

use async_nats::jetstream::{ErrorCode, response::Response};
use kairo_core::{
    bus::{
        BusError,
        jetstream::JetStream,
        port::{StoreError, StreamStore},
    },
    ids::Name,
    ownership::checkpoint::Checkpoint,
    subjects::{Consumer, EVENTS_STREAM, Service},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::survey::Survey;
use crate::{error::BackupError, stream_reader};

/// The stream behind the bucket of checkpoints.
const CHECKPOINTS: &str = "KV_KAIRO_SNAPSHOTS";

/// The first durable consumer of the log that has not dealt with all up to the cut, in words.
pub async fn find_lagging_consumer(nats: &JetStream, cut: u64) -> Result<Option<String>, BackupError> {
    for consumer in Consumer::DURABLE.into_iter().filter(|consumer| consumer.stream() == EVENTS_STREAM) {
        let name = consumer.name();
        let Some(info) = load_consumer_info(nats, name).await? else {
            return Ok(Some(format!("there is no consumer {name}: run `kairo provision`")));
        };
        let dealt_with = info.pointer("/ack_floor/stream_seq").and_then(Value::as_u64).unwrap_or(0);
        // The first message behind that is none that it has dealt with.
        for filter in consumer.filters() {
            let next = nats.next_at_leader(EVENTS_STREAM, &filter, dealt_with).await;
            let next = next.map_err(BackupError::not_read(EVENTS_STREAM))?;
            if let Some(raw) = next.filter(|raw| raw.sequence <= cut) {
                return Ok(Some(format!("the consumer {name} has yet to deal with message {}", raw.sequence)));
            }
        }
    }
    Ok(None)
}

async fn load_consumer_info(nats: &JetStream, consumer: &str) -> Result<Option<Value>, BackupError> {
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| BusError::Unavailable {
        doing: "looking at consumers",
        source,
    };
    let subject = format!("CONSUMER.INFO.{EVENTS_STREAM}.{consumer}");
    match nats.jetstream.request(subject, &json!({})).await.map_err(|error| failed(error.into()))? {
        Response::Ok::<Value>(info) => Ok(Some(info)),
        Response::Err { error } if error.error_code() == ErrorCode::CONSUMER_NOT_FOUND => Ok(None),
        Response::Err { error } => Err(failed(error.into()).into()),
    }
}

/// The first partition whose owner has not read, or not dealt with, what is to go or what was carried forward, in words.
pub async fn find_lagging_owner(
    nats: &JetStream,
    log: Uuid,
    survey: &Survey,
    carried: &BTreeMap<u32, u64>,
) -> Result<Option<String>, BackupError> {
    let (all, users) = survey.required_positions();
    let routers = checkpoints(nats, log, Service::Router).await?;
    for (partition, needed) in users {
        if let Some(what) = describe_lag(&routers, *partition, *needed) {
            return Ok(Some(format!("the router has handed on what stands in {what}")));
        }
    }
    let runtimes = checkpoints(nats, log, Service::AgentRuntime).await?;
    for partition in all.keys().chain(carried.keys()) {
        let needed = all.get(partition).max(carried.get(partition)).copied().unwrap_or(0);
        if let Some(what) = describe_lag(&runtimes, *partition, needed) {
            return Ok(Some(format!("agent-runtime has read and saved {what}")));
        }
    }
    let busy = runtimes.values().flat_map(|checkpoint| &checkpoint.busy);
    let waits = |agent: &&Name| !survey.has_decided_since(agent);
    Ok(busy
        .into_iter()
        .find(waits)
        .map(|agent| format!("the agent {agent} has something ahead, and decided nothing since")))
}

/// Describes how far a service has got with a partition, if that is not far enough. A partition owner writes a
/// checkpoint when its position changes, so one that lost its bucket says nothing of a partition to which nothing comes
/// any more.
fn describe_lag(read: &BTreeMap<u32, Checkpoint>, partition: u32, needed: u64) -> Option<String> {
    let through = match read.get(&partition) {
        Some(checkpoint) if checkpoint.through >= needed => return None,
        Some(checkpoint) => checkpoint.through.to_string(),
        None => "0 (it has no checkpoint; restart it if the bucket of snapshots was removed)".to_owned(),
    };
    Some(format!("partition {partition} up to {through}, and {needed} is needed"))
}

/// Returns the checkpoint of a service for each partition of this log: the farthest one, of whatever build.
async fn checkpoints(nats: &JetStream, log: Uuid, of: Service) -> Result<BTreeMap<u32, Checkpoint>, BackupError> {
    let filter = format!("{}checkpoint.{}.>", stream_reader::snapshot_subject(""), of.name());
    let entries = match nats.last_of_each(CHECKPOINTS, &[filter]).await {
        Err(StoreError::NoStream) => Vec::new(),
        entries => entries.map_err(BackupError::not_read(CHECKPOINTS))?,
    };
    let mut farthest: BTreeMap<u32, Checkpoint> = BTreeMap::new();
    let prefix = format!("{}checkpoint.{}.", stream_reader::snapshot_subject(""), of.name());
    for entry in entries {
        let key = entry.subject.strip_prefix(&prefix).and_then(|key| key.split('.').next());
        let Some(partition) = key.and_then(|partition| partition.parse().ok()) else { continue };
        let Ok(checkpoint) = serde_json::from_slice::<Checkpoint>(&entry.payload) else { continue };
        let is_farther = farthest.get(&partition).is_none_or(|known| known.through < checkpoint.through);
        if checkpoint.log == log && is_farther {
            farthest.insert(partition, checkpoint);
        }
    }
    Ok(farthest)
}
