//! The state of the log and its consumers, as JetStream reports it.

use async_nats::jetstream::{consumer::Info, context::ConsumerInfoErrorKind, stream::State};
use futures::{TryStreamExt, future::try_join_all};
use kairo_core::{
    bus::jetstream::JetStream,
    subjects::{Consumer, DEAD_LETTER, DLQ_STREAM, EVENTS_STREAM},
};

use crate::config::GatewayConfig;

/// The state of the log, its durable consumers and the dead letters.
pub struct LogState {
    pub events: State,
    /// The size limit of the stream, in bytes; none if it has no limit of its own.
    own_limit: Option<u64>,
    /// The durable consumers that exist.
    pub consumers: Vec<Info>,
    pub dead_letters: u64,
}

impl LogState {
    /// Returns the size limit of the log, in bytes: the stream's own or the configured one; none if neither is set.
    pub fn size_limit(&self, config: &GatewayConfig) -> Option<u64> {
        self.own_limit.or(Some(config.log_limit_bytes).filter(|set| *set > 0))
    }
}

pub async fn fetch_log_state(nats: &JetStream) -> Result<LogState, async_nats::Error> {
    let jetstream = &nats.jetstream;
    let stream = jetstream.get_stream_no_info(EVENTS_STREAM).await?;
    let letters = jetstream.get_stream_no_info(DLQ_STREAM).await?;
    let consumers = try_join_all(Consumer::DURABLE.map(async |consumer| {
        let stream = jetstream.get_stream_no_info(consumer.stream()).await?;
        match stream.consumer_info(consumer.name()).await {
            Ok(info) => Ok::<_, async_nats::Error>(Some(info)),
            // A missing consumer is reported as provisioning drift.
            Err(error) if error.kind() == ConsumerInfoErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }));
    // The same stream also holds the outcomes of dead letters, so only their own subjects are counted.
    let letters = async { letters.info_with_subjects(DEAD_LETTER.filter()).await?.try_collect::<Vec<_>>().await };
    let letters = async { Ok::<_, async_nats::Error>(letters.await?) };
    let (events, letters, consumers) = tokio::join!(stream.get_info(), letters, consumers);
    let events = events?;
    Ok(LogState {
        own_limit: u64::try_from(events.config.max_bytes).ok().filter(|limit| *limit > 0),
        events: events.state,
        consumers: consumers?.into_iter().flatten().collect(),
        dead_letters: letters?.into_iter().map(|(_, messages)| messages as u64).sum(),
    })
}
