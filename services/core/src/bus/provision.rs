//! Making streams, buckets and consumers from the table of subjects. Done by every service when it starts, so that
//! nothing has to be set up beforehand; what is already there is kept as the operator made it.

use std::{collections::BTreeSet, time::Duration};

use async_nats::jetstream::{
    consumer::{AckPolicy, pull},
    kv,
    response::Response,
    stream::{self, Source, StorageType},
};
use serde_json::{Value, json};

use super::{Bus, BusError};
use crate::subjects::{
    CLAIMS_BUCKET, Consumer, DLQ_STREAM, EVENTS_STREAM, EVENTS_SUBJECTS, HOOKS_BUCKET, KEYS_BUCKET, OBJECTS_BUCKET,
    SNAPSHOTS_BUCKET, TASK_DUE, TICKETS_BUCKET, TIMERS_STREAM, TIMERS_SUBJECTS,
};

/// How long a claim outlives its holder's last word. Expiry is the backstop: takeover rests on redelivery.
const CLAIM_LIFETIME: Duration = Duration::from_secs(120);
/// Within this window the same event id is written once.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);
/// How long the mark stays that the server leaves where an entry of a bucket expired.
const EXPIRY_MARK: Duration = Duration::from_secs(60);
/// What is kept of each API key: who was given it, and that it was revoked.
const KEYS_HISTORY: i64 = 8;
/// Room for tickets, of which each takes some 300 bytes.
const TICKETS_BYTES: i64 = 64 * 1024 * 1024;
/// Dead letters kept.
const DEAD_LETTERS: i64 = 100_000;

type Consuming = async_nats::jetstream::consumer::Consumer<pull::Config>;

impl Bus {
    /// Makes whatever is missing.
    pub async fn provision(&self) -> Result<(), BusError> {
        self.provision_all().await.map_err(BusError::unavailable("provisioning streams"))
    }

    async fn provision_all(&self) -> Result<(), async_nats::Error> {
        self.provision_timers().await?;
        self.provision_events().await?;
        self.jetstream.get_or_create_stream(self.dead_letters()).await?;
        for bucket in [self.snapshots(), self.claims(), self.hooks(), self.keys(), self.tickets()] {
            if self.jetstream.get_key_value(&bucket.bucket).await.is_err() {
                self.jetstream.create_key_value(bucket).await?;
            }
        }
        if self.jetstream.get_object_store(OBJECTS_BUCKET).await.is_err() {
            self.jetstream.create_object_store(self.objects()).await?;
        }
        for consumer in Consumer::ALL {
            self.provision_consumer(consumer).await?;
        }
        Ok(())
    }

    /// The client's configuration of a stream does not know of schedules, hence a request of one's own.
    async fn provision_timers(&self) -> Result<(), async_nats::Error> {
        if self.jetstream.get_stream(TIMERS_STREAM).await.is_ok() {
            return Ok(());
        }
        let wanted = json!({
            "name": TIMERS_STREAM,
            "subjects": TIMERS_SUBJECTS,
            "storage": "file",
            "retention": "limits",
            "num_replicas": self.replicas,
            "allow_direct": true,
            "allow_msg_schedules": true,
            "allow_msg_ttl": true,
        });
        self.administer("CREATE", TIMERS_STREAM, &wanted).await?;
        Ok(())
    }

    /// The log, made when it is missing. What one of an older version lacks is added to it, the rest of its configuration
    /// is left as the operator made it; a replica of that older version goes on as before.
    async fn provision_events(&self) -> Result<(), async_nats::Error> {
        let stream = self.jetstream.get_or_create_stream(self.events()).await?;
        if Lacking::of(&stream.cached_info().config).is_none() {
            return Ok(());
        }
        // As text, so that nothing is lost that the client's configuration does not know of. Another service that starts
        // may have been here meanwhile.
        let mut config = match self.administer("INFO", EVENTS_STREAM, &json!({})).await? {
            Value::Object(mut info) => info.remove("config").unwrap_or_default(),
            _ => Value::Null,
        };
        let Some(Lacking { missing, sourced }) = Lacking::of(&serde_json::from_value(config.clone())?) else {
            return Ok(());
        };
        extend(&mut config, "subjects", missing.into_iter().map(Value::from));
        if !sourced {
            extend(&mut config, "sources", [serde_json::to_value(due_tasks())?]);
        }
        self.administer("UPDATE", EVENTS_STREAM, &config).await?;
        tracing::info!(stream = EVENTS_STREAM, "added what this version needs");
        Ok(())
    }

    async fn administer(&self, verb: &str, stream: &str, request: &Value) -> Result<Value, async_nats::Error> {
        match self.jetstream.request(format!("STREAM.{verb}.{stream}"), request).await? {
            Response::Ok(answer) => Ok(answer),
            Response::Err { error } => Err(error.into()),
        }
    }

    /// The durable consumer, made when it is missing and widened when an older version made it narrower: a replica of
    /// that older version still running passes over types it does not know.
    pub async fn provision_consumer(&self, consumer: Consumer) -> Result<Consuming, async_nats::Error> {
        let stream = self.jetstream.get_stream_no_info(EVENTS_STREAM).await?;
        let mut wanted = self.durable(consumer);
        if let Ok(existing) = stream.get_consumer::<pull::Config>(consumer.name()).await {
            let has = &existing.cached_info().config;
            let filters: BTreeSet<String> = has
                .filter_subjects
                .iter()
                .chain([&has.filter_subject])
                .filter(|filter| !filter.is_empty())
                .cloned()
                .collect();
            let both: BTreeSet<String> = filters.iter().chain(&wanted.filter_subjects).cloned().collect();
            if filters == both && has.ack_wait == wanted.ack_wait && has.max_ack_pending == wanted.max_ack_pending {
                return Ok(existing);
            }
            wanted.filter_subjects = both.into_iter().collect();
        }
        Ok(stream.create_consumer(wanted).await?)
    }

    fn durable(&self, consumer: Consumer) -> pull::Config {
        pull::Config {
            durable_name: Some(consumer.name().to_owned()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: Duration::from_millis(self.limits.ack_wait_ms),
            max_ack_pending: i64::try_from(self.limits.max_ack_pending).unwrap_or(i64::MAX),
            // Naks count as deliveries, so attempts are counted by the consumer loop instead.
            max_deliver: -1,
            filter_subjects: consumer.filters(),
            ..Default::default()
        }
    }

    fn events(&self) -> stream::Config {
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
            sources: Some(vec![due_tasks()]),
            ..Default::default()
        }
    }

    fn dead_letters(&self) -> stream::Config {
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

    fn snapshots(&self) -> kv::Config {
        kv::Config {
            bucket: SNAPSHOTS_BUCKET.to_owned(),
            history: 1,
            storage: StorageType::File,
            num_replicas: self.replicas,
            ..Default::default()
        }
    }

    fn claims(&self) -> kv::Config {
        kv::Config {
            bucket: CLAIMS_BUCKET.to_owned(),
            history: 1,
            storage: StorageType::Memory,
            max_age: CLAIM_LIFETIME,
            num_replicas: self.replicas,
            ..Default::default()
        }
    }

    fn keys(&self) -> kv::Config {
        kv::Config {
            bucket: KEYS_BUCKET.to_owned(),
            history: KEYS_HISTORY,
            storage: StorageType::File,
            num_replicas: self.replicas,
            ..Default::default()
        }
    }

    /// Entries expire by themselves.
    fn tickets(&self) -> kv::Config {
        kv::Config {
            bucket: TICKETS_BUCKET.to_owned(),
            history: 1,
            storage: StorageType::File,
            max_bytes: TICKETS_BYTES,
            num_replicas: self.replicas,
            limit_markers: Some(EXPIRY_MARK),
            ..Default::default()
        }
    }

    /// Entries of tasks that are over expire.
    fn hooks(&self) -> kv::Config {
        kv::Config {
            bucket: HOOKS_BUCKET.to_owned(),
            history: 1,
            storage: StorageType::File,
            num_replicas: self.replicas,
            limit_markers: Some(EXPIRY_MARK),
            ..Default::default()
        }
    }
}

/// What the log takes from the timers. The subject is the same in both streams: with a subject transform the server would
/// read all of the log when it starts after a crash, to find out what it has already (22 s for 300 000 messages, instead
/// of 0.3 s).
fn due_tasks() -> Source {
    Source { name: TIMERS_STREAM.to_owned(), filter_subject: Some(TASK_DUE.filter()), ..Default::default() }
}

/// What the log of an older version lacks.
struct Lacking {
    missing: Vec<&'static str>,
    sourced: bool,
}

impl Lacking {
    /// None when it has everything.
    fn of(log: &stream::Config) -> Option<Self> {
        let sources = log.sources.as_deref().unwrap_or_default();
        let sourced = sources.iter().any(|source| source.name == TIMERS_STREAM);
        let missing = missing(&log.subjects);
        (!missing.is_empty() || !sourced).then_some(Self { missing, sourced })
    }
}

/// The subjects the log must take that none of these covers.
fn missing(subjects: &[String]) -> Vec<&'static str> {
    let taken = |wanted: &str| subjects.iter().any(|subject| covers(subject, wanted));
    EVENTS_SUBJECTS.into_iter().filter(|wanted| !taken(wanted)).collect()
}

/// Whether a subject with wildcards takes all that another takes.
fn covers(wide: &str, narrow: &str) -> bool {
    let (mut wide, mut narrow) = (wide.split('.'), narrow.split('.'));
    loop {
        match (wide.next(), narrow.next()) {
            (Some(">"), Some(_)) | (None, None) => return true,
            (Some("*"), Some(token)) if token != ">" => {}
            (Some(one), Some(other)) if one == other => {}
            _ => return false,
        }
    }
}

/// Adds to a list of the configuration.
fn extend(config: &mut Value, list: &str, more: impl IntoIterator<Item = Value>) {
    let Value::Object(config) = config else { return };
    match config.entry(list).or_insert_with(|| json!([])) {
        Value::Array(list) => list.extend(more),
        other => *other = more.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nothing_covers_is_missing() {
        let older = ["kairo.user.>", "kairo.agent.>", "kairo.tool.>", "kairo.process.>", "kairo.system.>"];
        assert_eq!(missing(&older.map(str::to_owned)), ["kairo.task.*.triggered", "kairo.email.>"]);
        assert!(missing(&["kairo.>".to_owned()]).is_empty());
        let narrow = ["kairo.task.*", "kairo.task.a.triggered", "kairo.*.a.triggered"].map(str::to_owned);
        assert!(missing(&narrow).contains(&"kairo.task.*.triggered"));
        assert!(!covers("kairo.email.*", "kairo.email.>"));
    }
}
