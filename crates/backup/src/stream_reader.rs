//! Reading a stream of the server: what it is, and its messages in order up to its end.

use std::{collections::BTreeMap, time::Duration};

use async_nats::jetstream::{ErrorCode, response::Response};
use kairo_core::{
    bus::{
        BusError,
        jetstream::JetStream,
        port::{ReadSource, StoreError, StreamStore, TailStart},
    },
    ownership::checkpoint::Checkpoint,
    subjects::{Consumer, SNAPSHOTS_BUCKET, Service},
};
use serde_json::{Value, json};
use tokio::time::timeout;
use uuid::Uuid;

use crate::{error::BackupError, manifest::ConsumerPosition, message_line::MessageLine};

/// Silence after which it is looked whether there is more to come.
const SILENCE: Duration = Duration::from_secs(5);
/// Times in a row that reading may break off without a message.
const TRIES: u32 = 5;
/// The stream behind the bucket of snapshots.
const SNAPSHOTS: &str = "KV_KAIRO_SNAPSHOTS";
/// Prefix of the metadata that a server adds by itself.
const OF_THE_SERVER: &str = "_nats.";

/// A stream, as its leader has it.
#[derive(Clone, Debug)]
pub struct LeaderStreamInfo {
    pub config: Value,
    pub first_sequence: u64,
    pub last_sequence: u64,
}

impl LeaderStreamInfo {
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.config.get("metadata")?.get(key)?.as_str()
    }
}

/// The stream of this name, if there is one.
pub async fn load_stream_info(nats: &JetStream, stream: &str) -> Result<Option<LeaderStreamInfo>, BackupError> {
    let info = request_info(nats, format!("STREAM.INFO.{stream}"), ErrorCode::STREAM_NOT_FOUND).await?;
    Ok(info.map(|info| LeaderStreamInfo {
        config: portable_config(&info),
        first_sequence: number(&info, "state", "first_seq"),
        last_sequence: number(&info, "state", "last_seq"),
    }))
}

/// Returns the positions of a stream's durable consumers.
pub async fn load_consumer_positions(nats: &JetStream, stream: &str) -> Result<Vec<ConsumerPosition>, BackupError> {
    let mut standings = Vec::new();
    for consumer in Consumer::DURABLE.into_iter().filter(|consumer| consumer.stream() == stream) {
        let name = consumer.name();
        let subject = format!("CONSUMER.INFO.{stream}.{name}");
        let Some(info) = request_info(nats, subject, ErrorCode::CONSUMER_NOT_FOUND).await? else { continue };
        standings.push(ConsumerPosition {
            name: name.to_owned(),
            config: portable_config(&info),
            delivered: number(&info, "ack_floor", "consumer_seq"),
            sequence: number(&info, "ack_floor", "stream_seq"),
        });
    }
    Ok(standings)
}

/// Returns the position up to which the router has handed on what users said in this log, by the keys of its
/// checkpoints.
pub async fn load_router_positions(nats: &JetStream, log: Uuid) -> Result<BTreeMap<String, u64>, BackupError> {
    let filter = format!("{}checkpoint.{}.*", snapshot_subject(""), Service::Router.name());
    let entries = match nats.last_of_each(SNAPSHOTS, &[filter]).await {
        Err(StoreError::NoStream) => return Ok(BTreeMap::new()),
        entries => entries.map_err(BackupError::not_read(SNAPSHOTS))?,
    };
    let routed = entries.iter().filter_map(|entry| {
        let key = entry.subject.strip_prefix(&snapshot_subject(""))?.to_owned();
        let checkpoint: Checkpoint = serde_json::from_slice(&entry.payload).ok()?;
        (checkpoint.log == log).then_some((key, checkpoint.through))
    });
    Ok(routed.collect())
}

/// Returns the subject of a key's entry in the bucket of snapshots and checkpoints.
pub fn snapshot_subject(key: &str) -> String {
    format!("$KV.{SNAPSHOTS_BUCKET}.{key}")
}

async fn request_info(nats: &JetStream, subject: String, missing: ErrorCode) -> Result<Option<Value>, BackupError> {
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| BusError::Unavailable {
        doing: "looking at streams",
        source,
    };
    match nats.jetstream.request(subject, &json!({})).await.map_err(|error| failed(error.into()))? {
        Response::Ok::<Value>(info) => Ok(Some(info)),
        Response::Err { error } if error.error_code() == missing => Ok(None),
        Response::Err { error } => Err(failed(error.into()).into()),
    }
}

/// A number that a server tells; 0 where it does not.
fn number(info: &Value, of: &str, name: &str) -> u64 {
    info.get(of).and_then(|of| of.get(name)).and_then(Value::as_u64).unwrap_or(0)
}

/// The configuration without what the server says of itself in it.
fn portable_config(info: &Value) -> Value {
    let mut config = info.get("config").cloned().unwrap_or_default();
    if let Some(metadata) = config.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| !key.starts_with(OF_THE_SERVER));
    }
    config
}

/// Reads what a filter names behind one sequence, up to and including another, as far as the leader has it now.
pub async fn read_messages(
    nats: &JetStream,
    stream: &str,
    filter: &str,
    after: u64,
    through: u64,
    mut take: impl FnMut(MessageLine) -> Result<(), BackupError>,
) -> Result<(), BackupError> {
    let mut read = after;
    let mut failures = 0;
    let filters = [filter.to_owned()];
    loop {
        // A server that lags behind the leader brings it in a moment.
        let last =
            nats.last_message(stream, filter, ReadSource::Leader).await.map_err(BackupError::not_read(stream))?;
        let end = last.map_or(0, |last| last.sequence).min(through);
        if read >= end {
            return Ok(());
        }
        let mut tail =
            nats.tail_stream(stream, &filters, TailStart::After(read)).await.map_err(BackupError::not_read(stream))?;
        // None where what was the end is gone by now.
        while let Ok(batch) = timeout(SILENCE, tail.next_batch()).await {
            let batch = match batch {
                Ok(batch) => batch,
                Err(_) if failures < TRIES => break,
                Err(cause) => {
                    return Err(BackupError::NotRead { stream: stream.to_owned(), why: cause.to_string() });
                }
            };
            failures = 0;
            for raw in batch.iter().filter(|raw| raw.sequence <= through) {
                read = raw.sequence;
                take(MessageLine::from_raw(raw))?;
            }
            if read >= end || batch.last().is_some_and(|raw| raw.sequence >= through) {
                return Ok(());
            }
        }
        failures += 1;
        if failures > TRIES {
            let why = format!("nothing comes behind {read}, and it goes on to {end}");
            return Err(BackupError::NotRead { stream: stream.to_owned(), why });
        }
    }
}
