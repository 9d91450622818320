//! Making streams, buckets and consumers from the table of subjects. Done by every service when it starts, so that
//! nothing has to be set up beforehand; what is already there is kept as the operator made it.

use std::{collections::BTreeSet, time::Duration};

use async_nats::jetstream::{
    consumer::{AckPolicy, pull},
    kv,
    stream::{self, StorageType},
};

use super::{Bus, BusError};
use crate::subjects::{CLAIMS_BUCKET, Consumer, DLQ_STREAM, EVENTS_STREAM, EVENTS_SUBJECTS, SNAPSHOTS_BUCKET};

/// How long a claim outlives its holder's last word. Expiry is the backstop: takeover rests on redelivery.
const CLAIM_LIFETIME: Duration = Duration::from_secs(120);
/// Within this window the same event id is written once.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);
/// Dead letters kept.
const DEAD_LETTERS: i64 = 100_000;

type Consuming = async_nats::jetstream::consumer::Consumer<pull::Config>;

impl Bus {
    /// Makes whatever is missing.
    pub async fn provision(&self) -> Result<(), BusError> {
        self.provision_all().await.map_err(BusError::unavailable("provisioning streams"))
    }

    async fn provision_all(&self) -> Result<(), async_nats::Error> {
        self.jetstream.get_or_create_stream(self.events()).await?;
        self.jetstream.get_or_create_stream(self.dead_letters()).await?;
        for bucket in [self.snapshots(), self.claims()] {
            if self.jetstream.get_key_value(&bucket.bucket).await.is_err() {
                self.jetstream.create_key_value(bucket).await?;
            }
        }
        for consumer in Consumer::ALL {
            self.provision_consumer(consumer).await?;
        }
        Ok(())
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
}
