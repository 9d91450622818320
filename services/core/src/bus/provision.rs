//! Making streams, buckets and consumers from the table of subjects. Done by every service when it starts, so that
//! nothing has to be set up beforehand; what is already there is kept as the operator made it.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use async_nats::jetstream::{
    consumer::{AckPolicy, pull},
    kv,
    response::Response,
    stream::{self, DiscardPolicy, Source, StorageType, SubjectTransform},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Bus, BusError, LogIdentity, congestion, jetstream::JetStream, port::StreamState};
use crate::partition::Partitions;
use crate::subjects::{
    CONGESTION_BUCKET, Consumer, DLQ_STREAM, EVENTS_STREAM, EVENTS_SUBJECTS, HOOKS_BUCKET, KEYS_BUCKET, MEMBERS_BUCKET,
    OBJECTS_BUCKET, OWNERS_BUCKET, SNAPSHOTS_BUCKET, TASK_DUE, TICKETS_BUCKET, TIMERS_STREAM, TIMERS_SUBJECTS,
    WITHOUT_PARTITION,
};
use crate::vocabulary::{FIRST, READER};

/// How long a member is listed that says nothing any more. Owners are listed for ever: their keys are not renewed.
const MEMBERS_LIFETIME: Duration = Duration::from_secs(120);
/// Within this window the same event id is written once.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);
/// How long the mark stays that the server leaves where an entry of a bucket expired.
const EXPIRY_MARK: Duration = Duration::from_secs(60);
/// What is kept of each API key: who was given it, and that it was revoked.
const KEYS_HISTORY: i64 = 8;
/// Room for tickets, of which each takes some 300 bytes.
const TICKETS_BYTES: i64 = 64 * 1024 * 1024;
/// Which log it is, and how many partitions it has, in the metadata of its stream.
const LOG_ID: &str = "kairo-log";
const PARTITIONS: &str = "kairo-partitions";
/// The epoch that it began in; where it is missing, the first.
const EPOCH: &str = "kairo-epoch";
/// Dead letters kept.
const DEAD_LETTERS: i64 = 100_000;

type Consuming = async_nats::jetstream::consumer::Consumer<pull::Config>;

impl Bus {
    /// Makes whatever is missing.
    ///
    /// # Errors
    /// [`BusError::Refused`] where the log that is there is none of this version's.
    pub async fn provision(&self) -> Result<(), BusError> {
        self.port.provision().await?;
        let found = self.log_found().await?;
        let known = self.log.get_or_init(|| found.clone());
        if *known != found {
            return Err(BusError::Refused(format!(
                "the log is another one than when this replica started ({} instead of {}): start the service again",
                found.id, known.id
            )));
        }
        Ok(())
    }

    /// Looks which log it is that somebody else made, without making anything.
    pub async fn find_log(&self) -> Result<(), BusError> {
        let found = self.log_found().await?;
        self.log.get_or_init(|| found);
        Ok(())
    }

    async fn log_found(&self) -> Result<LogIdentity, BusError> {
        let state = self.port.state(EVENTS_STREAM).await;
        let StreamState { metadata, .. } = state.map_err(BusError::unavailable("looking at the log"))?;
        identity(|key| metadata.get(key))
    }
}

impl JetStream {
    pub(super) async fn provision_all(&self) -> Result<(), BusError> {
        self.provision_timers().await.map_err(BusError::unavailable("provisioning timers"))?;
        self.provision_events().await?;
        self.provision_others().await.map_err(BusError::unavailable("provisioning streams"))
    }

    async fn provision_others(&self) -> Result<(), async_nats::Error> {
        self.jetstream.get_or_create_stream(self.dead_letters()).await?;
        for bucket in [
            self.snapshots(),
            self.in_memory(MEMBERS_BUCKET, MEMBERS_LIFETIME),
            self.in_memory(OWNERS_BUCKET, Duration::ZERO),
            self.hooks(),
            self.congestion(),
            self.keys(),
            self.tickets(),
        ] {
            if self.jetstream.get_key_value(&bucket.bucket).await.is_err() {
                self.jetstream.create_key_value(bucket).await?;
            }
        }
        if self.jetstream.get_object_store(OBJECTS_BUCKET).await.is_err() {
            self.jetstream.create_object_store(self.objects()).await?;
        }
        for consumer in Consumer::DURABLE {
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

    /// The log, made when it is missing; what is there stays as the operator made it.
    async fn provision_events(&self) -> Result<(), BusError> {
        let stream = self.jetstream.get_or_create_stream(self.events()).await;
        let stream = stream.map_err(BusError::unavailable("provisioning streams"))?;
        // Nothing more is done to one that is none of this version's.
        let metadata = &stream.cached_info().config.metadata;
        identity(|key| metadata.get(key)).map(|_| ())
    }

    async fn administer(&self, verb: &str, stream: &str, request: &Value) -> Result<Value, async_nats::Error> {
        match self.jetstream.request(format!("STREAM.{verb}.{stream}"), request).await? {
            Response::Ok(answer) => Ok(answer),
            Response::Err { error } => Err(error.into()),
        }
    }

    /// The durable consumer, made when it is missing and widened when an older version made it narrower: a replica of
    /// that older version still running passes over types it does not know.
    pub(super) async fn provision_consumer(&self, consumer: Consumer) -> Result<Consuming, async_nats::Error> {
        let stream = self.jetstream.get_stream_no_info(consumer.stream()).await?;
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
            // What cannot be kept is refused, so that whoever writes it knows.
            discard: DiscardPolicy::New,
            subject_transform: Some(self.with_partition()),
            metadata: HashMap::from([
                (LOG_ID.to_owned(), Uuid::new_v4().to_string()),
                (PARTITIONS.to_owned(), self.partitions.to_string()),
                (EPOCH.to_owned(), if self.epoch == 0 { READER } else { self.epoch }.to_string()),
            ]),
            ..Default::default()
        }
    }

    /// Adds their owner's partition to what other systems publish.
    fn with_partition(&self) -> SubjectTransform {
        SubjectTransform {
            source: WITHOUT_PARTITION.to_owned(),
            destination: format!(
                "kairo.system.{{{{wildcard(1)}}}}.{{{{wildcard(2)}}}}.{{{{partition({},1)}}}}",
                self.partitions
            ),
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

    /// Whoever is there writes again what a server that was restarted has forgotten.
    fn in_memory(&self, bucket: &str, max_age: Duration) -> kv::Config {
        kv::Config {
            bucket: bucket.to_owned(),
            history: 1,
            storage: StorageType::Memory,
            max_age,
            num_replicas: self.replicas,
            ..Default::default()
        }
    }

    /// Entries that are not refreshed expire.
    fn congestion(&self) -> kv::Config {
        kv::Config {
            bucket: CONGESTION_BUCKET.to_owned(),
            history: 1,
            storage: StorageType::Memory,
            max_age: congestion::LIFETIME,
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
    Source { name: TIMERS_STREAM.to_owned(), filter_subject: Some(TASK_DUE.stored_filter()), ..Default::default() }
}

/// What the metadata of the stream says of the log.
fn identity<'m>(said: impl Fn(&str) -> Option<&'m String>) -> Result<LogIdentity, BusError> {
    let id = said(LOG_ID).and_then(|id| Uuid::parse_str(id).ok());
    let partitions = said(PARTITIONS).and_then(|count| Partitions::new(count.parse().ok()?));
    let epoch = said(EPOCH).and_then(|epoch| epoch.parse().ok()).unwrap_or(FIRST);
    match (id, partitions) {
        (Some(id), Some(partitions)) => Ok(LogIdentity { id, partitions, epoch }),
        _ => Err(BusError::Refused(format!(
            "the stream {EVENTS_STREAM} was made by a version whose subjects had four tokens and no partition, or not by \
             Kairo: its metadata lacks {LOG_ID} or {PARTITIONS}. Keep that log with the version that wrote it and give \
             this one a nats-server (or an account) of its own; `kairo dev --fresh` begins a new log here"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_says_which_it_is_and_one_of_four_tokens_is_refused() {
        let id = Uuid::from_u128(7);
        let metadata = |partitions: &str| {
            HashMap::from([(LOG_ID.to_owned(), id.to_string()), (PARTITIONS.to_owned(), partitions.to_owned())])
        };
        let good = metadata("16");
        let identified = identity(|key| good.get(key)).unwrap();
        assert_eq!((identified.id, identified.partitions.count(), identified.epoch), (id, 16, FIRST));
        for strange in [HashMap::new(), metadata("0"), metadata("many")] {
            let refused = identity(|key| strange.get(key)).unwrap_err().to_string();
            assert!(refused.contains("four tokens") && refused.contains("--fresh"), "{refused}");
        }
    }
}
