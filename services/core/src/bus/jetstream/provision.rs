//! Making streams and durable consumers, and telling how those that are there differ from what is wanted.

use std::collections::BTreeSet;

use async_nats::jetstream::{
    Error as ServerError, ErrorCode,
    consumer::{self, pull},
    context::{ConsumerInfoError, ConsumerInfoErrorKind},
    response::Response,
    stream,
};
use futures::future::{try_join, try_join_all};
use serde_json::{Value, json};

use super::JetStream;
use crate::{
    bus::{
        BusError,
        port::{Cause, StoreError},
        provision::{
            Done, Drift, Part, identity,
            wanted::{
                Wanted, compared, consumer_differences, differences, filters, keeping_first, mended, undelivered,
                unknown_settings,
            },
        },
    },
    subjects::{Consumer, EVENTS_STREAM},
};

const PROVISIONING: &str = "provisioning";

pub(super) type Consuming = consumer::Consumer<pull::Config>;

impl JetStream {
    /// Makes the streams and durable consumers that are missing, and widens those that take, or are delivered, less than
    /// this version needs: a replica of an older one passes over types that it does not know. What else differs stays as
    /// the operator made it.
    ///
    /// # Errors
    /// [`BusError::Refused`] where the log that is there is none of this version's: then nothing is done.
    pub async fn provision(&self) -> Result<Vec<(Part, Done)>, BusError> {
        if let Some(log) = self.found(EVENTS_STREAM).await? {
            identity(|key| log.metadata.get(key))?;
        }
        let mut done = Vec::from_iter(self.put_back().await?);
        for wanted in self.wanted.streams() {
            let part = Part::Stream(wanted.name.clone());
            done.extend(self.make(wanted).await.map_err(failed(&part))?.map(|what| (part, what)));
        }
        for consumer in Consumer::DURABLE {
            let part = Part::Consumer(consumer);
            done.extend(self.make_consumer(consumer).await.map_err(failed(&part))?.map(|what| (part, what)));
        }
        Ok(done)
    }

    /// Checks that a server answers for streams.
    ///
    /// # Errors
    /// Returns an error if none does yet.
    pub async fn answers(&self) -> Result<(), BusError> {
        self.raw_config(EVENTS_STREAM).await.map(drop).map_err(BusError::unavailable(PROVISIONING))
    }

    /// Makes what is missing beside the log, which is filled from a backup: streams, and durable consumers of all.
    pub async fn provision_beside_log(&self) -> Result<(), BusError> {
        for wanted in self.wanted.streams().into_iter().filter(|wanted| wanted.name != EVENTS_STREAM) {
            let part = Part::Stream(wanted.name.clone());
            self.make(wanted).await.map_err(failed(&part))?;
        }
        for consumer in Consumer::DURABLE {
            let part = Part::Consumer(consumer);
            self.make_consumer(consumer).await.map_err(failed(&part))?;
        }
        Ok(())
    }

    /// Changes these settings of all streams where they differ, by their names, or without any all that differ.
    ///
    /// # Errors
    /// [`BusError::Refused`] where a setting is unknown, or cannot be changed any more.
    pub async fn mend(&self, settings: &[String]) -> Result<Vec<(Part, Done)>, BusError> {
        let unknown = unknown_settings(settings);
        if !unknown.is_empty() {
            let known = compared();
            return Err(BusError::Refused(format!("{} cannot be mended: name some of {known}", unknown.join(", "))));
        }
        let mut done = Vec::new();
        for wanted in self.as_is().await?.streams() {
            let Some(there) = self.raw_config(&wanted.name).await.map_err(BusError::unavailable(PROVISIONING))? else {
                continue;
            };
            let Some(mended) = mended(&wanted, &there, settings) else { continue };
            let part = Part::Stream(wanted.name.clone());
            match self.update(&wanted.name, &mended).await.map_err(failed(&part))? {
                Ok(()) => done.push((part, Done::Mended)),
                Err(why) => return Err(BusError::Refused(format!("{part} cannot be mended: {why}"))),
            }
        }
        Ok(done)
    }

    /// Returns the wanted configuration, with the number of partitions of the existing log.
    async fn as_is(&self) -> Result<Wanted, BusError> {
        let log = self.found(EVENTS_STREAM).await?;
        let known = log.and_then(|log| identity(|key| log.metadata.get(key)).ok());
        Ok(known.map_or_else(|| self.wanted.clone(), |log| self.wanted.of_partitions(log.partitions.count())))
    }

    /// Compares the existing streams and consumers with the wanted configuration, without changing them.
    pub async fn drift(&self) -> Result<Vec<Drift>, BusError> {
        let wanted = self.as_is().await?;
        let streams = try_join_all(wanted.streams().into_iter().map(|stream| self.stream_drift(stream)));
        let consumers = try_join_all(Consumer::DURABLE.map(|consumer| self.consumer_drift(&wanted, consumer)));
        let (streams, consumers) = try_join(streams, consumers).await?;
        Ok(streams.into_iter().chain(consumers).flatten().collect())
    }

    async fn stream_drift(&self, wanted: stream::Config) -> Result<Vec<Drift>, BusError> {
        let problems = match self.found(&wanted.name).await? {
            Some(there) => differences(&wanted, &there),
            None => vec![MISSING.to_owned()],
        };
        Ok(drift(&Part::Stream(wanted.name), problems))
    }

    async fn consumer_drift(&self, wanted: &Wanted, consumer: Consumer) -> Result<Vec<Drift>, BusError> {
        let problems = match self.found_consumer(consumer).await {
            Ok(there) => consumer_differences(&wanted.consumer(consumer), &there.cached_info().config),
            Err(StoreError::Unprovisioned(_)) => vec![MISSING.to_owned()],
            Err(error) => return Err(BusError::unavailable(PROVISIONING)(error)),
        };
        Ok(drift(&Part::Consumer(consumer), problems))
    }

    /// A bucket in memory, made when it is missing.
    pub(super) async fn restore_bucket(&self, bucket: &str) -> Result<(), StoreError> {
        let name = format!("KV_{bucket}");
        let wanted = self.wanted.streams().into_iter().find(|stream| stream.name == name);
        let Some(wanted) = wanted else { return Ok(()) };
        self.make(wanted).await.map(drop).map_err(StoreError::Unavailable)
    }

    /// The durable consumer, as long as it is delivered what this version needs.
    pub(super) async fn joined(&self, consumer: Consumer) -> Result<Consuming, StoreError> {
        let there = self.found_consumer(consumer).await?;
        let lacking = undelivered(&self.wanted.consumer(consumer).filter_subjects, &there.cached_info().config);
        match lacking.is_empty() {
            true => Ok(there),
            false => {
                let problem = format!("the {} is not delivered {}", Part::Consumer(consumer), lacking.join(", "));
                Err(StoreError::Unprovisioned(problem))
            }
        }
    }

    async fn found_consumer(&self, consumer: Consumer) -> Result<Consuming, StoreError> {
        let stream = self.stream(consumer.stream()).await?;
        let found = stream.get_consumer(consumer.name()).await;
        found.map_err(|error| match error.downcast_ref().map(ConsumerInfoError::kind) {
            Some(ConsumerInfoErrorKind::NotFound | ConsumerInfoErrorKind::StreamNotFound) => {
                StoreError::Unprovisioned(format!("there is no {}", Part::Consumer(consumer)))
            }
            _ => StoreError::Unavailable(error),
        })
    }

    async fn make(&self, wanted: stream::Config) -> Result<Option<Done>, Cause> {
        let name = wanted.name.clone();
        let Some(there) = self.raw_config(&name).await? else {
            self.jetstream.create_stream(wanted).await?;
            return Ok(Some(Done::Made));
        };
        let taken: BTreeSet<String> = there
            .get("subjects")
            .and_then(|subjects| serde_json::from_value(subjects.clone()).ok())
            .unwrap_or_default();
        let both: BTreeSet<String> = wanted.subjects.iter().chain(&taken).cloned().collect();
        let kept = keeping_first(&wanted, &there);
        if both == taken && kept.is_none() {
            return Ok(None);
        }
        // As the server told it, so that nothing is lost that the client library does not know.
        let mut widened = kept.unwrap_or(there);
        if let Some(config) = widened.as_object_mut() {
            config.insert("subjects".to_owned(), json!(both));
        }
        self.update(&name, &widened).await??;
        Ok(Some(Done::Widened))
    }

    /// Changes a stream; the inner error is what the server has against it.
    pub(super) async fn update(&self, name: &str, config: &Value) -> Result<Result<(), ServerError>, Cause> {
        Ok(match self.jetstream.request(format!("STREAM.UPDATE.{name}"), config).await? {
            Response::Ok::<Value>(_) => Ok(()),
            Response::Err { error } => Err(error),
        })
    }

    async fn make_consumer(&self, consumer: Consumer) -> Result<Option<Done>, Cause> {
        let mut wanted = self.wanted.consumer(consumer);
        let there = match self.found_consumer(consumer).await {
            Ok(there) => there.cached_info().config.clone(),
            Err(StoreError::Unprovisioned(_)) => {
                self.stream(consumer.stream()).await?.create_consumer(wanted).await?;
                return Ok(Some(Done::Made));
            }
            Err(error) => return Err(error.into()),
        };
        let settled = there.ack_wait == wanted.ack_wait && there.max_ack_pending == wanted.max_ack_pending;
        if settled && undelivered(&wanted.filter_subjects, &there).is_empty() {
            return Ok(None);
        }
        let both: BTreeSet<String> = filters(&there).into_iter().chain(wanted.filter_subjects).collect();
        wanted.filter_subjects = both.into_iter().collect();
        self.stream(consumer.stream()).await?.create_consumer(wanted).await?;
        Ok(Some(Done::Widened))
    }

    /// The configuration of a stream, if there is one of that name.
    async fn found(&self, name: &str) -> Result<Option<stream::Config>, BusError> {
        let there = self.raw_config(name).await.map_err(BusError::unavailable(PROVISIONING))?;
        let read = there.map(serde_json::from_value).transpose();
        read.map_err(BusError::unavailable("reading a stream's configuration"))
    }

    pub(super) async fn raw_config(&self, name: &str) -> Result<Option<Value>, Cause> {
        let info = self.info(name).await?;
        Ok(info.and_then(|mut info| info.get_mut("config").map(Value::take)))
    }

    pub(super) async fn info(&self, name: &str) -> Result<Option<Value>, Cause> {
        match self.jetstream.request(format!("STREAM.INFO.{name}"), &json!({})).await? {
            Response::Ok(info) => Ok(Some(info)),
            Response::Err { error } if error.error_code() == ErrorCode::STREAM_NOT_FOUND => Ok(None),
            Response::Err { error } => Err(error.into()),
        }
    }
}

const MISSING: &str = "it is missing";

fn drift(part: &Part, problems: Vec<String>) -> Vec<Drift> {
    problems.into_iter().map(|problem| Drift { part: part.clone(), problem }).collect()
}

pub(super) fn failed(part: &Part) -> impl FnOnce(Cause) -> BusError {
    let part = part.to_string();
    move |error| BusError::Unavailable { doing: PROVISIONING, source: format!("{part}: {error}").into() }
}
