//! Reading a stream in order, by a pull consumer of its own without acknowledgements: the reader's pace is that of the
//! pulls. The client's ordered consumer would do, but when it breaks before its first message it starts over at the
//! beginning.

use std::time::Duration;

use async_nats::jetstream::{
    Context,
    consumer::{AckPolicy, DeliverPolicy, PullConsumer, pull},
    stream::ConsumerErrorKind,
};
use async_trait::async_trait;
use futures::{FutureExt, StreamExt};
use tokio::{runtime::Handle, task::unconstrained, time::Instant};

use super::JetStream;
use crate::{
    bus::port::{Cause, Start, StoreError, Tail},
    record::Raw,
};

/// How long a pull stays open at the server, and how often it is told that nothing is lost. Two heartbeats that are
/// missed break it off.
const PULL_EXPIRES: Duration = Duration::from_secs(30);
const PULL_HEARTBEAT: Duration = Duration::from_secs(1);
/// Most messages that are handed over at once.
const BATCH: usize = 256;
/// What one pull asks for.
const PULL: usize = 500;
/// How long the server keeps the place of a reader that is gone without a word, or does not pull.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(30);

struct ConsumerTail {
    jetstream: Context,
    stream: String,
    consumer: String,
    messages: pull::Stream,
    /// Messages received, which the server numbers.
    received: u64,
    pending: u64,
    /// Why it broke off behind what was handed over last.
    broken: Option<Cause>,
}

impl JetStream {
    pub(super) async fn open_tail(
        &self,
        stream: &str,
        filters: &[String],
        start: Start,
    ) -> Result<Box<dyn Tail>, StoreError> {
        let failed = |cause: Cause| StoreError::Unavailable(cause);
        let deliver_policy = match start {
            Start::After(sequence) => DeliverPolicy::ByStartSequence { start_sequence: sequence + 1 },
            Start::LastOfEach => DeliverPolicy::LastPerSubject,
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
        let messages = consumer.stream().max_messages_per_batch(PULL);
        let messages = messages.expires(PULL_EXPIRES).heartbeat(PULL_HEARTBEAT).messages().await;
        let info = consumer.cached_info();
        Ok(Box::new(ConsumerTail {
            jetstream: self.jetstream.clone(),
            stream: stream.to_owned(),
            consumer: info.name.clone(),
            messages: messages.map_err(|error| failed(error.into()))?,
            received: 0,
            pending: info.num_pending,
            broken: None,
        }))
    }
}

impl JetStream {
    /// The server counts first what there is for a reader, in subjects of very many agents for longer than an answer is waited for.
    /// Asked again by the same name, it has that one, and does not count anew. So few are asked for at once, that others are
    /// answered meanwhile.
    async fn open_reader(&self, stream: &str, config: pull::Config) -> Result<PullConsumer, Cause> {
        let _turn = self.opening.acquire().await?;
        let begun = Instant::now();
        loop {
            let opened = self.jetstream.create_consumer_on_stream(config.clone(), stream).await;
            self.asked_together(opened.is_ok()).await;
            match opened {
                Err(error) if error.kind() == ConsumerErrorKind::TimedOut && begun.elapsed() < self.reader_timeout => {}
                opened => return Ok(opened?),
            }
        }
    }
}

impl ConsumerTail {
    fn take<E: Into<Cause>>(
        &mut self,
        message: Option<Result<async_nats::jetstream::Message, E>>,
    ) -> Result<Raw, Cause> {
        let mut message = message.ok_or("the pull ended")?.map_err(Into::into)?;
        let (raw, info) = Raw::delivered(&mut message)?;
        let number = info.consumer_sequence;
        self.received += 1;
        match number == self.received {
            true => Ok(raw),
            false => Err(format!("message {} of the tail was lost", self.received).into()),
        }
    }
}

#[async_trait]
impl Tail for ConsumerTail {
    fn pending(&self) -> u64 {
        self.pending
    }

    async fn next(&mut self) -> Result<Vec<Raw>, Cause> {
        if let Some(cause) = self.broken.take() {
            return Err(cause);
        }
        let first = self.messages.next().await;
        let mut batch = vec![self.take(first)?];
        // Unconstrained, as tokio would otherwise feign an empty buffer now and then.
        while batch.len() < BATCH
            && let Some(message) = unconstrained(self.messages.next()).now_or_never()
        {
            match self.take(message) {
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
        let (jetstream, stream) = (self.jetstream.clone(), std::mem::take(&mut self.stream));
        let consumer = std::mem::take(&mut self.consumer);
        runtime.spawn(async move {
            if let Err(error) = jetstream.delete_consumer_from_stream(&consumer, &stream).await {
                tracing::debug!(%error, "the server will forget a tail by itself");
            }
        });
    }
}
