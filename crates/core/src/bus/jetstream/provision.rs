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
            ConfigDrift, JetStreamResource, ProvisionChange, parse_log_identity,
            topology::{
                DesiredTopology, compared_settings, config_keeping_first, consumer_differences, consumer_filters,
                fixed_config, stream_differences, undelivered_subjects, unknown_settings,
            },
        },
    },
    subjects::{Consumer, EVENTS_STREAM},
};

const PROVISIONING: &str = "provisioning";

pub(super) type DurableConsumer = consumer::Consumer<pull::Config>;

impl JetStream {
    /// Makes the streams and durable consumers that are missing, and widens those that take, or are delivered, less than
    /// this version needs: a replica of an older one passes over types that it does not know. What else differs stays as
    /// the operator made it.
    ///
    /// # Errors
    /// [`BusError::Refused`] where the log that is there is none of this version's: then nothing is done.
    pub async fn provision(&self) -> Result<Vec<(JetStreamResource, ProvisionChange)>, BusError> {
        if let Some(log) = self.stream_config(EVENTS_STREAM).await? {
            parse_log_identity(|key| log.metadata.get(key))?;
        }
        let mut done = Vec::from_iter(self.restore_limits().await?);
        for wanted in self.wanted.streams() {
            let part = JetStreamResource::Stream(wanted.name.clone());
            done.extend(
                self.create_or_widen_stream(wanted).await.map_err(provisioning_error(&part))?.map(|what| (part, what)),
            );
        }
        for consumer in Consumer::DURABLE {
            let part = JetStreamResource::Consumer(consumer);
            done.extend(
                self.create_or_widen_consumer(consumer)
                    .await
                    .map_err(provisioning_error(&part))?
                    .map(|what| (part, what)),
            );
        }
        Ok(done)
    }

    /// Checks that a server answers for streams.
    ///
    /// # Errors
    /// Returns an error if none does yet.
    pub async fn check_stream_api(&self) -> Result<(), BusError> {
        self.raw_stream_config(EVENTS_STREAM).await.map(drop).map_err(BusError::unavailable(PROVISIONING))
    }

    /// Makes what is missing beside the log, which is filled from a backup: streams, and durable consumers of all.
    pub async fn provision_beside_log(&self) -> Result<(), BusError> {
        for wanted in self.wanted.streams().into_iter().filter(|wanted| wanted.name != EVENTS_STREAM) {
            let part = JetStreamResource::Stream(wanted.name.clone());
            self.create_or_widen_stream(wanted).await.map_err(provisioning_error(&part))?;
        }
        for consumer in Consumer::DURABLE {
            let part = JetStreamResource::Consumer(consumer);
            self.create_or_widen_consumer(consumer).await.map_err(provisioning_error(&part))?;
        }
        Ok(())
    }

    /// Changes these settings of all streams where they differ, by their names, or without any all that differ.
    ///
    /// # Errors
    /// [`BusError::Refused`] where a setting is unknown, or cannot be changed any more.
    pub async fn fix_settings(
        &self,
        settings: &[String],
    ) -> Result<Vec<(JetStreamResource, ProvisionChange)>, BusError> {
        let unknown = unknown_settings(settings);
        if !unknown.is_empty() {
            let known = compared_settings();
            return Err(BusError::Refused(format!("{} cannot be mended: name some of {known}", unknown.join(", "))));
        }
        let mut done = Vec::new();
        for wanted in self.desired_as_deployed().await?.streams() {
            let Some(there) =
                self.raw_stream_config(&wanted.name).await.map_err(BusError::unavailable(PROVISIONING))?
            else {
                continue;
            };
            let Some(mended) = fixed_config(&wanted, &there, settings) else { continue };
            let part = JetStreamResource::Stream(wanted.name.clone());
            match self.update_stream(&wanted.name, &mended).await.map_err(provisioning_error(&part))? {
                Ok(()) => done.push((part, ProvisionChange::Mended)),
                Err(why) => return Err(BusError::Refused(format!("{part} cannot be mended: {why}"))),
            }
        }
        Ok(done)
    }

    /// Returns the wanted configuration, with the number of partitions of the existing log.
    async fn desired_as_deployed(&self) -> Result<DesiredTopology, BusError> {
        let log = self.stream_config(EVENTS_STREAM).await?;
        let known = log.and_then(|log| parse_log_identity(|key| log.metadata.get(key)).ok());
        Ok(known.map_or_else(|| self.wanted.clone(), |log| self.wanted.with_partitions(log.partitions.count())))
    }

    /// Compares the existing streams and consumers with the wanted configuration, without changing them.
    pub async fn find_drift(&self) -> Result<Vec<ConfigDrift>, BusError> {
        let wanted = self.desired_as_deployed().await?;
        let streams = try_join_all(wanted.streams().into_iter().map(|stream| self.stream_drift(stream)));
        let consumers = try_join_all(Consumer::DURABLE.map(|consumer| self.consumer_drift(&wanted, consumer)));
        let (streams, consumers) = try_join(streams, consumers).await?;
        Ok(streams.into_iter().chain(consumers).flatten().collect())
    }

    async fn stream_drift(&self, wanted: stream::Config) -> Result<Vec<ConfigDrift>, BusError> {
        let problems = match self.stream_config(&wanted.name).await? {
            Some(there) => stream_differences(&wanted, &there),
            None => vec![MISSING.to_owned()],
        };
        Ok(to_drifts(&JetStreamResource::Stream(wanted.name), problems))
    }

    async fn consumer_drift(&self, wanted: &DesiredTopology, consumer: Consumer) -> Result<Vec<ConfigDrift>, BusError> {
        let problems = match self.find_consumer(consumer).await {
            Ok(there) => consumer_differences(&wanted.consumer_config(consumer), &there.cached_info().config),
            Err(StoreError::Unprovisioned(_)) => vec![MISSING.to_owned()],
            Err(error) => return Err(BusError::unavailable(PROVISIONING)(error)),
        };
        Ok(to_drifts(&JetStreamResource::Consumer(consumer), problems))
    }

    /// A bucket in memory, made when it is missing.
    pub(super) async fn ensure_memory_bucket(&self, bucket: &str) -> Result<(), StoreError> {
        let name = format!("KV_{bucket}");
        let wanted = self.wanted.streams().into_iter().find(|stream| stream.name == name);
        let Some(wanted) = wanted else { return Ok(()) };
        self.create_or_widen_stream(wanted).await.map(drop).map_err(StoreError::Unavailable)
    }

    /// The durable consumer, as long as it is delivered what this version needs.
    pub(super) async fn find_usable_consumer(&self, consumer: Consumer) -> Result<DurableConsumer, StoreError> {
        let there = self.find_consumer(consumer).await?;
        let lacking =
            undelivered_subjects(&self.wanted.consumer_config(consumer).filter_subjects, &there.cached_info().config);
        match lacking.is_empty() {
            true => Ok(there),
            false => {
                let problem =
                    format!("the {} is not delivered {}", JetStreamResource::Consumer(consumer), lacking.join(", "));
                Err(StoreError::Unprovisioned(problem))
            }
        }
    }

    async fn find_consumer(&self, consumer: Consumer) -> Result<DurableConsumer, StoreError> {
        let stream = self.stream_handle(consumer.stream()).await?;
        let found = stream.get_consumer(consumer.name()).await;
        found.map_err(|error| match error.downcast_ref().map(ConsumerInfoError::kind) {
            Some(ConsumerInfoErrorKind::NotFound | ConsumerInfoErrorKind::StreamNotFound) => {
                StoreError::Unprovisioned(format!("there is no {}", JetStreamResource::Consumer(consumer)))
            }
            _ => StoreError::Unavailable(error),
        })
    }

    async fn create_or_widen_stream(&self, wanted: stream::Config) -> Result<Option<ProvisionChange>, Cause> {
        let name = wanted.name.clone();
        let Some(there) = self.raw_stream_config(&name).await? else {
            self.jetstream.create_stream(wanted).await?;
            return Ok(Some(ProvisionChange::Made));
        };
        let taken: BTreeSet<String> = there
            .get("subjects")
            .and_then(|subjects| serde_json::from_value(subjects.clone()).ok())
            .unwrap_or_default();
        let both: BTreeSet<String> = wanted.subjects.iter().chain(&taken).cloned().collect();
        let kept = config_keeping_first(&wanted, &there);
        if both == taken && kept.is_none() {
            return Ok(None);
        }
        // As the server told it, so that nothing is lost that the client library does not know.
        let mut widened = kept.unwrap_or(there);
        if let Some(config) = widened.as_object_mut() {
            config.insert("subjects".to_owned(), json!(both));
        }
        self.update_stream(&name, &widened).await??;
        Ok(Some(ProvisionChange::Widened))
    }

    /// Changes a stream; the inner error is what the server has against it.
    pub(super) async fn update_stream(&self, name: &str, config: &Value) -> Result<Result<(), ServerError>, Cause> {
        Ok(match self.jetstream.request(format!("STREAM.UPDATE.{name}"), config).await? {
            Response::Ok::<Value>(_) => Ok(()),
            Response::Err { error } => Err(error),
        })
    }

    async fn create_or_widen_consumer(&self, consumer: Consumer) -> Result<Option<ProvisionChange>, Cause> {
        let mut wanted = self.wanted.consumer_config(consumer);
        let there = match self.find_consumer(consumer).await {
            Ok(there) => there.cached_info().config.clone(),
            Err(StoreError::Unprovisioned(_)) => {
                self.stream_handle(consumer.stream()).await?.create_consumer(wanted).await?;
                return Ok(Some(ProvisionChange::Made));
            }
            Err(error) => return Err(error.into()),
        };
        let settled = there.ack_wait == wanted.ack_wait && there.max_ack_pending == wanted.max_ack_pending;
        if settled && undelivered_subjects(&wanted.filter_subjects, &there).is_empty() {
            return Ok(None);
        }
        let both: BTreeSet<String> = consumer_filters(&there).into_iter().chain(wanted.filter_subjects).collect();
        wanted.filter_subjects = both.into_iter().collect();
        self.stream_handle(consumer.stream()).await?.create_consumer(wanted).await?;
        Ok(Some(ProvisionChange::Widened))
    }

    /// The configuration of a stream, if there is one of that name.
    async fn stream_config(&self, name: &str) -> Result<Option<stream::Config>, BusError> {
        let there = self.raw_stream_config(name).await.map_err(BusError::unavailable(PROVISIONING))?;
        let read = there.map(serde_json::from_value).transpose();
        read.map_err(BusError::unavailable("reading a stream's configuration"))
    }

    pub(super) async fn raw_stream_config(&self, name: &str) -> Result<Option<Value>, Cause> {
        let info = self.raw_stream_info(name).await?;
        Ok(info.and_then(|mut info| info.get_mut("config").map(Value::take)))
    }

    pub(super) async fn raw_stream_info(&self, name: &str) -> Result<Option<Value>, Cause> {
        match self.jetstream.request(format!("STREAM.INFO.{name}"), &json!({})).await? {
            Response::Ok(info) => Ok(Some(info)),
            Response::Err { error } if error.error_code() == ErrorCode::STREAM_NOT_FOUND => Ok(None),
            Response::Err { error } => Err(error.into()),
        }
    }
}

const MISSING: &str = "it is missing";

fn to_drifts(part: &JetStreamResource, problems: Vec<String>) -> Vec<ConfigDrift> {
    problems.into_iter().map(|problem| ConfigDrift { part: part.clone(), problem }).collect()
}

pub(super) fn provisioning_error(part: &JetStreamResource) -> impl FnOnce(Cause) -> BusError {
    let part = part.to_string();
    move |error| BusError::Unavailable { doing: PROVISIONING, source: format!("{part}: {error}").into() }
}
