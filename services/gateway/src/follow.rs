//! Following the log as it grows, for one client, through whatever happens to the server.
//!
//! A pull consumer without acks: the client's pace is the pace of the pulls, and what was not received is asked for
//! again from where it broke off. The client library's ordered consumer would do, but when it breaks before its first
//! message it starts over at the beginning of the log.

use async_nats::jetstream::{
    Message,
    consumer::{AckPolicy, DeliverPolicy, pull},
};
use futures::{Stream, StreamExt, stream};
use jiff::Timestamp;
use kairo_core::{
    bus::{Bus, BusError, consume::backoff},
    record::Raw,
    subjects::EVENTS_STREAM,
};
use std::time::Duration;

/// How long a pull stays open at the server, and how often it is told that nothing is lost.
const PULL_EXPIRES: Duration = Duration::from_secs(30);
const PULL_HEARTBEAT: Duration = Duration::from_secs(5);
/// How long the server keeps the place of a follower that is gone.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// A place in the log that moves on.
pub struct Follower {
    bus: Bus,
    /// Empty for all subjects.
    filter: String,
    /// Messages asked for at once.
    buffer: usize,
    /// The last message handed over.
    position: u64,
    /// What is being received, and how many messages of it have been.
    messages: Option<(pull::Stream, u64)>,
    failures: u64,
}

/// The sequence of the last message in the log.
pub async fn end_of_log(bus: &Bus) -> Result<u64, BusError> {
    let asked = async {
        let stream = bus.jetstream.get_stream_no_info(EVENTS_STREAM).await?;
        Ok(stream.get_info().await?.state.last_sequence)
    };
    asked.await.map_err(|source| BusError::Unavailable { doing: "asking where the log ends", source })
}

impl Follower {
    /// Begins after the message at `position`. `filter` is a subject with wildcards, empty for all.
    pub async fn open(bus: &Bus, filter: String, position: u64, buffer: usize) -> Result<Self, BusError> {
        let mut follower = Self { bus: bus.clone(), filter, buffer, position, messages: None, failures: 0 };
        let messages = follower.pull().await;
        let messages = messages.map_err(|source| BusError::Unavailable { doing: "following the log", source })?;
        follower.messages = Some((messages, 0));
        Ok(follower)
    }

    /// The messages, in order, each once, without end.
    pub fn messages(self) -> impl Stream<Item = Raw> + Send {
        stream::unfold(self, |mut follower| async move {
            let message = follower.next().await;
            Some((message, follower))
        })
    }

    async fn next(&mut self) -> Raw {
        loop {
            let error = match self.receive().await {
                Ok(message) => {
                    self.failures = 0;
                    self.position = message.sequence;
                    return message;
                }
                Err(error) => error,
            };
            self.messages = None;
            self.failures += 1;
            tracing::debug!(%error, position = self.position, "following broke off, going on from there");
            tokio::time::sleep(backoff(&self.bus.limits, self.failures)).await;
        }
    }

    async fn receive(&mut self) -> Result<Raw, async_nats::Error> {
        if self.messages.is_none() {
            self.messages = Some((self.pull().await?, 0));
        }
        let (messages, received) = self.messages.as_mut().ok_or("nothing is being received")?;
        let message = messages.next().await.ok_or("the pull ended")??;
        let (number, message) = unpack(&message)?;
        *received += 1;
        if number != *received {
            return Err(format!("message {received} of the pull was lost").into());
        }
        Ok(message)
    }

    async fn pull(&self) -> Result<pull::Stream, async_nats::Error> {
        let stream = self.bus.jetstream.get_stream_no_info(EVENTS_STREAM).await?;
        let consumer = stream.create_consumer(pull::Config {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: self.position + 1 },
            ack_policy: AckPolicy::None,
            filter_subject: self.filter.clone(),
            inactive_threshold: FORGOTTEN_AFTER,
            num_replicas: 1,
            memory_storage: true,
            ..Default::default()
        });
        let pull = consumer.await?;
        let pull = pull.stream().max_messages_per_batch(self.buffer).expires(PULL_EXPIRES).heartbeat(PULL_HEARTBEAT);
        Ok(pull.messages().await?)
    }
}

/// The message, and its number within the consumer.
fn unpack(message: &Message) -> Result<(u64, Raw), async_nats::Error> {
    let info = message.info()?;
    let raw = Raw {
        sequence: info.stream_sequence,
        subject: message.subject.to_string(),
        headers: message.headers.clone().unwrap_or_default(),
        payload: message.payload.clone(),
        stored: Timestamp::from_nanosecond(info.published.unix_timestamp_nanos()).unwrap_or(Timestamp::UNIX_EPOCH),
    };
    Ok((info.consumer_sequence, raw))
}
