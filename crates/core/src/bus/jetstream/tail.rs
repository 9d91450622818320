//! Reading a stream in order, by a pull consumer of its own without acknowledgements: the reader's pace is that of the
//! pulls. The client's ordered consumer would do, but when it breaks before its first message it starts over at the
//! beginning.

use std::time::Duration;

use async_nats::jetstream::{
    Context, Message,
    consumer::{
        AckPolicy, DeliverPolicy, PullConsumer,
        pull::{self, MessagesErrorKind},
    },
    stream::{ConsumerError, ConsumerErrorKind},
};
use async_trait::async_trait;
use futures::{FutureExt, StreamExt};
use tokio::{
    runtime::Handle,
    task::unconstrained,
    time::{Instant, timeout},
};

use super::{JetStream, reconnects::Reconnects};
use crate::{
    bus::port::{Cause, StoreError, StreamTail, TailStart},
    record::RawMessage,
};

/// The time a pull stays open at the server.
const PULL_EXPIRES: Duration = Duration::from_secs(30);
/// The time between two heartbeats of a pull: the server is asked after two missed ones. One server alone is restarted or cut off only
/// with the connection, which [`Reconnects`] shows; of several, the one that has the reader may be lost while the connection stands.
const HEARTBEAT_OF_ONE: Duration = Duration::from_secs(14);
const HEARTBEAT_OF_SEVERAL: Duration = Duration::from_secs(1);
/// The longest silence tolerated while the server does not report the reader lost.
const LONGEST_SILENCE: Duration = Duration::from_secs(10);
/// Most messages that are handed over at once.
const BATCH: usize = 256;
/// Messages requested by one pull.
const PULL: usize = 500;
/// The time a reader is first requested under the same name, in case another server that is away has it.
const SAME_NAME: Duration = Duration::from_secs(4);
/// The time the server keeps an idle reader: one that vanished, or one that does not pull because it has no room for
/// more messages. Opening it anew would make the server count its messages again.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(300);

/// The longest silence while messages are pending, after which they are counted again.
pub const RECOUNT_AFTER: Duration = Duration::from_secs(1);

struct ConsumerTail {
    jetstream: Context,
    stream: String,
    consumer: String,
    messages: pull::Stream,
    /// Messages received, which the server numbers.
    received: u64,
    /// Messages still to come of those that were there when they were counted.
    pending: u64,
    /// The error that ended the tail after the last messages handed over.
    broken: Option<Cause>,
    silence: HeartbeatSilence,
    reconnects: Reconnects,
    /// True if there is only one server, so that one that does not answer is taken to be busy.
    waits_for_answers: bool,
}

/// When heartbeats were missed.
struct HeartbeatSilence {
    /// Missed heartbeats within this time belong to one silence.
    longest_gap: Duration,
    /// The first miss, and the last.
    misses: Option<(Instant, Instant)>,
}

impl HeartbeatSilence {
    fn new(heartbeat: Duration) -> Self {
        Self { longest_gap: heartbeat * 5 / 2, misses: None }
    }

    /// Notes missed heartbeats, and returns the time the silence began.
    fn note_missed(&mut self, now: Instant) -> Instant {
        let since = self.misses.filter(|(_, last)| now - *last < self.longest_gap).map_or(now, |(since, _)| since);
        self.misses = Some((since, now));
        since
    }

    /// The server was asked meanwhile, for as long as that took.
    fn note_probe(&mut self, now: Instant) {
        self.misses = self.misses.map(|(since, _)| (since, now));
    }
}

impl JetStream {
    pub(super) async fn open_tail(
        &self,
        stream: &str,
        filters: &[String],
        start: TailStart,
    ) -> Result<Box<dyn StreamTail>, StoreError> {
        let failed = |cause: Cause| StoreError::Unavailable(cause);
        let deliver_policy = match start {
            TailStart::After(sequence) => DeliverPolicy::ByStartSequence { start_sequence: sequence + 1 },
            TailStart::LastOfEach => DeliverPolicy::LastPerSubject,
        };
        let reader = self.open_reader(
            stream,
            pull::Config {
                name: Some(self.reader_name()),
                deliver_policy,
                ack_policy: AckPolicy::None,
                filter_subjects: filters.to_vec(),
                inactive_threshold: FORGOTTEN_AFTER,
                num_replicas: 1,
                memory_storage: true,
                ..Default::default()
            },
        );
        let consumer = reader.await.map_err(failed)?;
        let heartbeat = if self.isolation.has_other_servers() { HEARTBEAT_OF_SEVERAL } else { HEARTBEAT_OF_ONE };
        let messages = consumer.stream().max_messages_per_batch(PULL);
        let messages = messages.expires(PULL_EXPIRES).heartbeat(heartbeat).messages().await;
        let info = consumer.cached_info();
        Ok(Box::new(ConsumerTail {
            jetstream: self.jetstream.clone(),
            stream: stream.to_owned(),
            consumer: info.name.clone(),
            messages: messages.map_err(|error| failed(error.into()))?,
            received: 0,
            pending: info.num_pending,
            broken: None,
            silence: HeartbeatSilence::new(heartbeat),
            reconnects: self.reconnects.clone(),
            waits_for_answers: !self.isolation.has_other_servers(),
        }))
    }
}

impl JetStream {
    /// The server counts first what there is for a reader, in subjects of very many agents for longer than an answer is waited for.
    /// Asked again by the same name, it has that one, and does not count anew. So few are asked for at once, that others are
    /// answered meanwhile.
    ///
    /// One of several servers may have been given the reader in the moment in which it went away, and then nobody answers for that name
    /// any more. So another one is asked for after a while, and after longer the next time.
    async fn open_reader(&self, stream: &str, mut config: pull::Config) -> Result<PullConsumer, Cause> {
        let _turn = self.opening.acquire().await?;
        let begun = Instant::now();
        let mut named = begun;
        let mut patience = if self.isolation.has_other_servers() { SAME_NAME } else { self.reader_timeout };
        loop {
            let opened = self.jetstream.create_consumer_on_stream(config.clone(), stream).await;
            self.note_quorum_request(opened.is_ok()).await;
            match opened {
                Err(error) if error.kind() == ConsumerErrorKind::TimedOut && begun.elapsed() < self.reader_timeout => {}
                opened => return Ok(opened?),
            }
            if named.elapsed() >= patience {
                config.name = Some(self.reader_name());
                (named, patience) = (Instant::now(), patience * 2);
            }
        }
    }
}

/// Asks how many messages are still to come for a reader that received so many. A log with a limit, or one that is trimmed, may
/// have lost messages that were counted when the reader was opened, and whoever waits for them waits until somebody writes. None
/// where the server does not answer, or has no such reader.
pub async fn count_pending(jetstream: &Context, stream: &str, consumer: &str, received: u64) -> Option<u64> {
    let consumer: PullConsumer = jetstream.get_consumer_from_stream(consumer, stream).await.ok()?;
    let info = consumer.cached_info();
    // The server counts messages as delivered that are on their way.
    Some(info.num_pending + info.delivered.consumer_sequence.saturating_sub(received))
}

impl ConsumerTail {
    /// The next message, however long the server says nothing, as long as it has this reader; none where fewer are pending than
    /// were counted.
    async fn next_message(&mut self) -> Result<Option<RawMessage>, Cause> {
        loop {
            let message = match self.pending {
                0 => tokio::select! {
                    biased;
                    message = self.messages.next() => message,
                    () = self.reconnects.wait_for_next() => {
                        if self.count_pulls().await.is_err_and(|error| !self.is_busy(&error)) {
                            return Err("the server has forgotten this reader".into());
                        }
                        continue;
                    }
                },
                _ => match timeout(RECOUNT_AFTER, self.messages.next()).await {
                    Ok(message) => message,
                    Err(_) if self.recount_pending().await => return Ok(None),
                    Err(_) => continue,
                },
            };
            let missed = matches!(&message, Some(Err(error)) if error.kind() == MessagesErrorKind::MissingHeartbeat);
            if !missed || self.is_lost().await {
                return self.accept_message(message).map(Some);
            }
        }
    }

    /// Counts the pending messages once more. Returns true if there are fewer. Where the server does not answer the count
    /// stays: heartbeats tell whether this reader is lost, and a new reader would have the server count all over again.
    async fn recount_pending(&mut self) -> bool {
        let counted = count_pending(&self.jetstream, &self.stream, &self.consumer, self.received).await;
        let before = self.pending;
        self.pending = counted.map_or(before, |counted| counted.min(before));
        self.pending < before
    }

    /// Returns true if heartbeats were missed because the reader, or its open pull, is gone: a server that was restarted may have
    /// the reader again, and nobody who pulls. A server that is counting messages for other readers is silent for
    /// seconds, and a new reader would make it count once more. With several servers, no answer means that the
    /// server that had the reader is away.
    async fn is_lost(&mut self) -> bool {
        let since = self.silence.note_missed(Instant::now());
        let pulls = self.count_pulls().await;
        let now = Instant::now();
        self.silence.note_probe(now);
        let is_silent_for_long = now - since > LONGEST_SILENCE;
        match pulls {
            Ok(0) => true,
            Ok(_) => is_silent_for_long,
            Err(error) => is_silent_for_long || !self.is_busy(&error),
        }
    }

    /// Returns the number of open pulls that the server has of this reader.
    async fn count_pulls(&self) -> Result<usize, ConsumerError> {
        let consumer: PullConsumer = self.jetstream.get_consumer_from_stream(&self.consumer, &self.stream).await?;
        Ok(consumer.cached_info().num_waiting)
    }

    /// Returns true if the server did not answer although there is no other one.
    fn is_busy(&self, error: &ConsumerError) -> bool {
        self.waits_for_answers && error.kind() == ConsumerErrorKind::TimedOut
    }

    fn accept_message<E: Into<Cause>>(&mut self, message: Option<Result<Message, E>>) -> Result<RawMessage, Cause> {
        let mut message = message.ok_or("the pull ended")?.map_err(Into::into)?;
        let (raw, info) = RawMessage::from_delivery(&mut message)?;
        let number = info.consumer_sequence;
        self.received += 1;
        self.pending = self.pending.saturating_sub(1);
        match number == self.received {
            true => Ok(raw),
            false => Err(format!("message {} of the tail was lost", self.received).into()),
        }
    }
}

#[async_trait]
impl StreamTail for ConsumerTail {
    fn pending(&self) -> u64 {
        self.pending
    }

    async fn next_batch(&mut self) -> Result<Vec<RawMessage>, Cause> {
        if let Some(cause) = self.broken.take() {
            return Err(cause);
        }
        let Some(first) = self.next_message().await? else { return Ok(Vec::new()) };
        let mut batch = vec![first];
        // Unconstrained, as tokio would otherwise feign an empty buffer now and then.
        while batch.len() < BATCH
            && let Some(message) = unconstrained(self.messages.next()).now_or_never()
        {
            match self.accept_message(message) {
                Ok(raw) => batch.push(raw),
                Err(cause) => {
                    self.broken = Some(cause);
                    break;
                }
            }
        }
        Ok(batch)
    }
}

/// The server is told, so that it need not keep the places of many that came and went.
impl Drop for ConsumerTail {
    fn drop(&mut self) {
        let Ok(runtime) = Handle::try_current() else { return };
        let jetstream = self.jetstream.clone();
        let stream = std::mem::take(&mut self.stream);
        let consumer = std::mem::take(&mut self.consumer);
        runtime.spawn(async move {
            if let Err(error) = jetstream.delete_consumer_from_stream(&consumer, &stream).await {
                tracing::debug!(%error, "the server will forget a tail by itself");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_ends_with_a_heartbeat() {
        let mut silence = HeartbeatSilence::new(Duration::from_secs(1));
        let start = Instant::now();
        let later = |milliseconds| start + Duration::from_millis(milliseconds);
        assert_eq!(silence.note_missed(start), start);
        silence.note_probe(later(2_000));
        assert_eq!(silence.note_missed(later(4_001)), start);
        // One came a second after the miss before, and then none for two.
        assert_eq!(silence.note_missed(later(7_001)), later(7_001));
    }
}
