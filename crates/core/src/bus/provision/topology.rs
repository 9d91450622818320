//! The streams and consumers that Kairo needs, made from the table of subjects, and how those that are there differ.
//!
//! A bucket is a stream, and declared here as one, so that all are made, looked at and compared alike.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use async_nats::jetstream::{
    consumer::{self, AckPolicy, pull},
    stream::{self, DiscardPolicy, Source, StorageType, SubjectTransform},
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{EPOCH, LOG_ID, PARTITIONS, TRIMMED, TRIMMING};
use crate::{
    bus::{BusConfig, NatsConfig, congestion, data_keys::MOST_ENTRIES},
    subjects::{
        CONGESTION_BUCKET, Consumer, DATA_KEYS_BUCKET, DLQ_STREAM, EVENTS_STREAM, EVENTS_SUBJECTS, HOOKS_BUCKET,
        KEYS_BUCKET, MEMBERS_BUCKET, OBJECTS_BUCKET, OWNERS_BUCKET, SIGN_INS_BUCKET, SNAPSHOTS_BUCKET, TASK_DUE,
        TICKETS_BUCKET, TIMERS_STREAM, TIMERS_SUBJECTS, WITHOUT_PARTITION,
    },
    vocabulary::READER,
};

/// The time a silent member stays listed. Owners never expire: their keys are not renewed.
const MEMBERS_LIFETIME: Duration = Duration::from_secs(120);
/// Within this window the same event id is written once.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);
/// The lifetime of the marker the server leaves for an expired bucket entry.
const EXPIRY_MARK: Duration = Duration::from_secs(60);
/// Entries kept of each API key: its grant and its revocation, with room for those the gateway removes.
const KEYS_HISTORY: i64 = 8;
/// Room for tickets; each takes some 300 bytes.
const TICKETS_BYTES: i64 = 64 * 1024 * 1024;
/// Dead letters kept.
const DEAD_LETTERS: i64 = 100_000;
/// The fields of a stream's configuration that are compared, by the server's names; operators may choose the rest.
const COMPARED: [&str; 21] = [
    "storage",
    "retention",
    "num_replicas",
    "max_msgs",
    "max_msgs_per_subject",
    "max_bytes",
    "max_age",
    "discard",
    "discard_new_per_subject",
    "allow_direct",
    "deny_delete",
    "deny_purge",
    "allow_rollup_hdrs",
    "allow_msg_ttl",
    "allow_msg_schedules",
    "sources",
    "mirror",
    "republish",
    "subject_transform",
    "sealed",
    "no_ack",
];

/// As configured: what holds of a log that is there is what it says.
#[derive(Clone, Debug)]
pub struct DesiredTopology {
    replicas: usize,
    partitions: u32,
    epoch: u32,
    objects_max_bytes: u64,
    ack_wait: Duration,
    max_ack_pending: u64,
}

impl DesiredTopology {
    pub fn new(nats: &NatsConfig, limits: &BusConfig) -> Self {
        Self {
            replicas: nats.replicas,
            partitions: nats.partitions,
            epoch: nats.epoch,
            objects_max_bytes: nats.objects_max_bytes,
            ack_wait: Duration::from_millis(limits.ack_wait_ms),
            max_ack_pending: limits.max_ack_pending,
        }
    }

    /// Returns a copy with the number of partitions of an existing log.
    pub fn with_partitions(&self, partitions: u32) -> Self {
        Self { partitions, ..self.clone() }
    }

    /// Every stream. The log comes last: who finds it finds the others.
    pub fn streams(&self) -> Vec<stream::Config> {
        vec![
            self.timers_stream(),
            self.dead_letters_stream(),
            stream::Config { storage: StorageType::File, ..self.bucket_stream(SNAPSHOTS_BUCKET) },
            // Whoever is there writes again what a server that was restarted has forgotten.
            stream::Config { max_age: MEMBERS_LIFETIME, ..self.bucket_stream(MEMBERS_BUCKET) },
            self.bucket_stream(OWNERS_BUCKET),
            // Entries that are not refreshed expire.
            stream::Config { max_age: congestion::LIFETIME, ..self.bucket_stream(CONGESTION_BUCKET) },
            // Entries of tasks that are over expire.
            with_entry_ttl(stream::Config { storage: StorageType::File, ..self.bucket_stream(HOOKS_BUCKET) }),
            // What is destroyed is written over, for which it has to be there still when something else stands in its place. What was
            // written first stays, whatever else is written.
            stream::Config {
                storage: StorageType::File,
                deny_delete: false,
                max_messages_per_subject: MOST_ENTRIES as i64,
                discard_new_per_subject: true,
                ..self.bucket_stream(DATA_KEYS_BUCKET)
            },
            stream::Config {
                storage: StorageType::File,
                deny_delete: false,
                max_messages_per_subject: KEYS_HISTORY,
                discard_new_per_subject: true,
                ..self.bucket_stream(KEYS_BUCKET)
            },
            // Entries expire by themselves.
            with_entry_ttl(stream::Config {
                storage: StorageType::File,
                max_bytes: TICKETS_BYTES,
                ..self.bucket_stream(TICKETS_BUCKET)
            }),
            stream::Config { storage: StorageType::File, ..self.bucket_stream(SIGN_INS_BUCKET) },
            self.objects_stream(),
            self.events_stream(),
        ]
    }

    /// Timers that are set, and what they say when they go off.
    fn timers_stream(&self) -> stream::Config {
        stream::Config {
            name: TIMERS_STREAM.to_owned(),
            subjects: TIMERS_SUBJECTS.map(str::to_owned).to_vec(),
            storage: StorageType::File,
            num_replicas: self.replicas,
            allow_direct: true,
            allow_message_schedules: true,
            allow_message_ttl: true,
            // The server adds it where it goes by schedules.
            allow_rollup: true,
            ..Default::default()
        }
    }

    fn events_stream(&self) -> stream::Config {
        stream::Config {
            name: EVENTS_STREAM.to_owned(),
            subjects: EVENTS_SUBJECTS.map(str::to_owned).to_vec(),
            storage: StorageType::File,
            num_replicas: self.replicas,
            allow_direct: true,
            deny_delete: true,
            deny_purge: true,
            duplicate_window: DUPLICATE_WINDOW,
            // Never allow messages of the log to expire: those of timers bear a lifetime that is meant for another stream.
            allow_message_ttl: false,
            sources: Some(vec![due_task_source()]),
            // What cannot be kept is refused, so that whoever writes it knows.
            discard: DiscardPolicy::New,
            subject_transform: Some(self.partition_transform()),
            metadata: HashMap::from([
                (LOG_ID.to_owned(), Uuid::new_v4().to_string()),
                (PARTITIONS.to_owned(), self.partitions.to_string()),
                (EPOCH.to_owned(), if self.epoch == 0 { READER } else { self.epoch }.to_string()),
            ]),
            ..Default::default()
        }
    }

    /// Adds their owner's partition to what other systems publish.
    fn partition_transform(&self) -> SubjectTransform {
        SubjectTransform {
            source: WITHOUT_PARTITION.to_owned(),
            destination: format!(
                "kairo.system.{{{{wildcard(1)}}}}.{{{{wildcard(2)}}}}.{{{{partition({},1)}}}}",
                self.partitions
            ),
        }
    }

    fn dead_letters_stream(&self) -> stream::Config {
        stream::Config {
            name: DLQ_STREAM.to_owned(),
            subjects: vec![
                "kairo.dlq.>".to_owned(),
                format!("$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.{EVENTS_STREAM}.>"),
            ],
            storage: StorageType::File,
            num_replicas: self.replicas,
            max_messages: DEAD_LETTERS,
            allow_direct: true,
            duplicate_window: DUPLICATE_WINDOW,
            ..Default::default()
        }
    }

    /// A bucket in memory of one value a key, as the client library would make it.
    fn bucket_stream(&self, name: &str) -> stream::Config {
        stream::Config {
            name: format!("KV_{name}"),
            subjects: vec![format!("$KV.{name}.>")],
            max_messages_per_subject: 1,
            storage: StorageType::Memory,
            num_replicas: self.replicas,
            allow_rollup: true,
            deny_delete: true,
            allow_direct: true,
            discard: DiscardPolicy::New,
            ..Default::default()
        }
    }

    fn objects_stream(&self) -> stream::Config {
        stream::Config {
            name: format!("OBJ_{OBJECTS_BUCKET}"),
            subjects: vec![format!("$O.{OBJECTS_BUCKET}.C.>"), format!("$O.{OBJECTS_BUCKET}.M.>")],
            max_bytes: i64::try_from(self.objects_max_bytes).unwrap_or(i64::MAX),
            storage: StorageType::File,
            num_replicas: self.replicas,
            allow_rollup: true,
            allow_direct: true,
            discard: DiscardPolicy::New,
            ..Default::default()
        }
    }

    pub fn consumer_config(&self, consumer: Consumer) -> pull::Config {
        pull::Config {
            durable_name: Some(consumer.name().to_owned()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: self.ack_wait,
            max_ack_pending: i64::try_from(self.max_ack_pending).unwrap_or(i64::MAX),
            // Naks count as deliveries, so attempts are counted by the consumer loop instead.
            max_deliver: -1,
            filter_subjects: consumer.filters(),
            ..Default::default()
        }
    }
}

/// Entries of a bucket may have a lifetime.
fn with_entry_ttl(bucket: stream::Config) -> stream::Config {
    stream::Config { allow_message_ttl: true, subject_delete_marker_ttl: Some(EXPIRY_MARK), ..bucket }
}

/// Returns the source from which the log takes due timers. The subject is the same in both streams: with a subject
/// transform the server would read all of the log when it starts after a crash, to find out what it has already (22 s
/// for 300 000 messages, instead of 0.3 s).
fn due_task_source() -> Source {
    Source { name: TIMERS_STREAM.to_owned(), filter_subject: Some(TASK_DUE.stored_filter()), ..Default::default() }
}

/// Describes each difference between a stream and the wanted configuration.
pub fn stream_differences(wanted: &stream::Config, there: &stream::Config) -> Vec<String> {
    let mut found: Vec<String> = missing_subjects(&wanted.subjects, &there.subjects)
        .map(|subject| format!("it does not take {subject}"))
        .collect();
    let (Ok(wanted), Ok(there)) = (serde_json::to_value(wanted), serde_json::to_value(there)) else { return found };
    let differing = COMPARED.into_iter().filter_map(|name| {
        let wanted = normalized_setting(&wanted, name);
        let there = normalized_setting(&there, name);
        (wanted != there).then(|| format!("{name} is {there}, not {wanted}"))
    });
    found.extend(differing);
    found
}

/// The configuration that is there with these settings as they are wanted, without any with all that are compared; none
/// where they are so already. What the client library does not know of it stays.
pub fn fixed_config(wanted: &stream::Config, there: &Value, settings: &[String]) -> Option<Value> {
    let wanted = serde_json::to_value(wanted).ok()?;
    let mut mended = there.clone();
    let fields = mended.as_object_mut()?;
    let meant = |name: &&str| settings.is_empty() || settings.iter().any(|setting| setting == name);
    for name in COMPARED.into_iter().filter(meant) {
        if normalized_setting(&wanted, name) == normalized_setting(there, name) {
            continue;
        }
        match wanted.get(name) {
            Some(value) => fields.insert(name.to_owned(), value.clone()),
            None => fields.remove(name),
        };
    }
    (mended != *there).then_some(mended)
}

/// The configuration that is there, so that further entries of a key are refused rather than that the first is dropped; none where that
/// is so already, or is not wanted. Whoever cannot read the bucket could write there until nothing else is left.
pub fn config_keeping_first(wanted: &stream::Config, there: &Value) -> Option<Value> {
    let settings = ["max_msgs_per_subject", "discard_new_per_subject"].map(str::to_owned);
    fixed_config(wanted, there, &settings).filter(|_| wanted.discard_new_per_subject)
}

/// The fields that trim the log.
const LIMITS: [&str; 2] = ["max_msgs", "discard"];

/// The configuration that is there with a limit that leaves so many messages, and in its metadata what it is to have again, and up
/// to where everything was carried forward. What the client library does not know of it stays.
pub fn config_with_trim_limit(there: &Value, carried: u64, left: u64) -> Value {
    let mut limited = there.clone();
    let had: Map<String, Value> =
        LIMITS.into_iter().filter_map(|name| Some((name.to_owned(), there.get(name)?.clone()))).collect();
    if let Some(config) = limited.as_object_mut() {
        config.insert("max_msgs".to_owned(), json!(left));
        config.insert("discard".to_owned(), json!("old"));
        if let Some(metadata) = config.entry("metadata").or_insert_with(|| json!({})).as_object_mut() {
            metadata.insert(TRIMMED.to_owned(), json!(carried.to_string()));
            metadata.insert(TRIMMING.to_owned(), json!(Value::Object(had).to_string()));
        }
    }
    limited
}

/// The configuration that is there without such a limit; none where it has none.
pub fn config_without_trim_limit(there: &Value) -> Option<Value> {
    let mut before = there.clone();
    let config = before.as_object_mut()?;
    let had = config.get_mut("metadata")?.as_object_mut()?.remove(TRIMMING)?;
    // What cannot be read is what the log is made with.
    let had: Map<String, Value> = had.as_str().and_then(|had| serde_json::from_str(had).ok()).unwrap_or_default();
    for (name, made) in LIMITS.into_iter().zip([json!(-1), json!("new")]) {
        config.insert(name.to_owned(), had.get(name).cloned().unwrap_or(made));
    }
    Some(before)
}

/// Returns the names that are not compared settings of a stream.
pub fn unknown_settings(settings: &[String]) -> Vec<&str> {
    settings.iter().map(String::as_str).filter(|setting| !COMPARED.contains(setting)).collect()
}

/// The settings that are compared.
pub fn compared_settings() -> String {
    COMPARED.join(", ")
}

/// Describes each difference between a consumer and the wanted configuration.
pub fn consumer_differences(wanted: &pull::Config, there: &consumer::Config) -> Vec<String> {
    let mut found: Vec<String> = undelivered_subjects(&wanted.filter_subjects, there)
        .into_iter()
        .map(|subject| format!("it is not delivered {subject}"))
        .collect();
    if there.ack_wait != wanted.ack_wait {
        let there = there.ack_wait.as_millis();
        let wanted = wanted.ack_wait.as_millis();
        found.push(format!("its ack wait is {there} ms, not {wanted} ms (bus.ack_wait_ms)"));
    }
    if there.max_ack_pending != wanted.max_ack_pending {
        let there = there.max_ack_pending;
        let wanted = wanted.max_ack_pending;
        found.push(format!("it may have {there} messages out, not {wanted} (bus.max_ack_pending)"));
    }
    if there.ack_policy != wanted.ack_policy || there.max_deliver != wanted.max_deliver {
        found.push("it does not deliver again until acknowledged".to_owned());
    }
    found
}

/// Returns the wanted subjects the consumer is not delivered; without any filter it is delivered everything.
pub fn undelivered_subjects(wanted: &[String], there: &consumer::Config) -> Vec<String> {
    let has = consumer_filters(there);
    if has.is_empty() {
        return Vec::new();
    }
    wanted.iter().filter(|subject| !has.contains(*subject)).cloned().collect()
}

/// The subjects that a consumer is delivered.
pub fn consumer_filters(there: &consumer::Config) -> BTreeSet<String> {
    let all = there.filter_subjects.iter().chain([&there.filter_subject]);
    all.filter(|filter| !filter.is_empty()).cloned().collect()
}

fn missing_subjects<'a>(wanted: &'a [String], there: &'a [String]) -> impl Iterator<Item = &'a String> {
    wanted.iter().filter(|subject| !there.contains(subject))
}

/// A setting as it is told: what is not set, false, or without a limit, is nothing.
fn normalized_setting(config: &Value, name: &str) -> Value {
    match config.get(name) {
        None | Some(Value::Null | Value::Bool(false)) => Value::Null,
        Some(Value::Number(number)) if number.as_i64().is_some_and(|number| number <= 0) => Value::Null,
        Some(value) => value.clone(),
    }
}
