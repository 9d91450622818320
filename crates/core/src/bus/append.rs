//! Writing to the log.

use std::time::Duration;

use async_nats::{HeaderName, HeaderValue};
use bytes::Bytes;
use kairo_events::{hash_chain::ContentDigest, personal::ContentOwners, synthetic};
use kairo_proto::Body;
use tokio::time::Instant;
use uuid::Uuid;

pub use super::port::StoreAck;
use super::{
    Bus, BusError,
    consume::backoff_delay,
    port::{Cause, Headers, OutgoingMessage, StoreError},
    retry_deadline::RetryDeadline,
};
use crate::{
    envelope::{Envelope, HELD},
    event_json,
    ids::Name,
    record::first_values,
    subjects::Route,
    telemetry, vocabulary,
};

/// Times a write is tried that meets another one of its subject's guard or its id, and the pause before each.
const IN_PROCESS_TRIES: usize = 200;
const IN_PROCESS_PAUSE: Duration = Duration::from_millis(5);

/// An event about to be written.
#[derive(Clone, Debug)]
pub struct OutgoingEvent {
    pub subject: String,
    pub envelope: Envelope,
    pub body: Body,
}

impl OutgoingEvent {
    pub fn new(route: &Route, owner: &Name, envelope: Envelope, body: impl Into<Body>) -> Self {
        let body = body.into();
        let traceparent = telemetry::outgoing_traceparent(envelope.traceparent.as_deref(), envelope.id);
        let envelope = Envelope {
            type_name: body.type_name().to_owned(),
            subject: Some(owner.to_string()),
            traceparent: Some(traceparent),
            owners: ContentOwners::from_body(&body),
            ..envelope
        };
        Self { subject: route.of_owner(owner), envelope, body }
    }

    /// Returns the event under the type name that it has in this epoch.
    #[must_use]
    pub fn for_epoch(self, epoch: u32) -> Self {
        let type_name = synthetic::type_to_write(self.envelope.type_name, epoch);
        Self { envelope: Envelope { type_name, ..self.envelope }, ..self }
    }

    /// Sets the owner of an event, for a body that does not name one.
    #[must_use]
    pub fn with_data_subject(self, whose: ContentOwners) -> Self {
        Self { envelope: Envelope { owners: whose, ..self.envelope }, ..self }
    }

    pub fn headers(&self) -> Headers {
        let mut headers = Headers::new();
        for (name, value) in self.envelope.to_headers() {
            headers.insert(HeaderName::from_static(name), HeaderValue::from(value));
        }
        let held: Vec<String> = event_json::contained_event_ids(&self.body).iter().map(Uuid::to_string).collect();
        if !held.is_empty() {
            headers.insert(HeaderName::from_static(HELD), HeaderValue::from(held.join(",")));
        }
        let reader = vocabulary::required_reader(&self.body);
        if reader > vocabulary::FIRST {
            headers.insert(HeaderName::from_static(vocabulary::READER_HEADER), HeaderValue::from(reader.to_string()));
        }
        headers
    }
}

impl Bus {
    /// Writes an event of another system as it was published; the log adds the partition of its owner. With an id it is written once.
    pub async fn store_foreign_event(
        &self,
        subject: &str,
        headers: Headers,
        payload: Bytes,
        id: Option<String>,
    ) -> Result<StoreAck, StoreError> {
        self.store_message(OutgoingMessage { id, ..OutgoingMessage::new(subject, headers, payload) }).await
    }

    /// Writes an event. The same id within the stream's duplicate window is written once; beyond that window whoever
    /// reads it must know what it has seen.
    pub async fn publish(&self, event: &OutgoingEvent) -> Result<StoreAck, BusError> {
        let message = self.build_message(event).await?.with_id(event.envelope.id.to_string());
        self.store_expecting(message, 0).await
    }

    /// Writes an event; while nobody takes it, tries again for up to `wait`: servers need a moment to elect another
    /// leader.
    pub async fn publish_with_retry(&self, event: &OutgoingEvent, wait: Duration) -> Result<StoreAck, BusError> {
        let deadline = Instant::now() + wait;
        let mut attempt = 0;
        loop {
            match self.publish(event).await {
                Err(BusError::Unavailable { .. }) if Instant::now() < deadline => {
                    attempt += 1;
                    tokio::time::sleep_until(deadline.min(Instant::now() + backoff_delay(&self.limits, attempt))).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// Writes an event only if `expected` is still the last sequence of its subject (0 for none): the one fence.
    ///
    /// When the answer is an error, the last message of the subject tells whether it was this very event that got
    /// there: then that is success. The id alone does not tell, since replicas at the same work derive the same one,
    /// and some say the very same; but when they said it differs, and what is folded from it.
    pub async fn append(&self, event: &OutgoingEvent, expected: u64) -> Result<StoreAck, BusError> {
        let message = self.build_message(event).await?.with_guard(expected);
        let error = match self.store_expecting(message, expected).await {
            Ok(written) => return Ok(written),
            Err(error @ BusError::TooLarge { .. }) => return Err(error),
            Err(error) => error,
        };
        let Some(last) = self.last_message(&event.subject).await? else {
            return Err(error);
        };
        let ours = event.envelope.to_headers().into_iter().all(|(name, value)| last.header(name) == Some(&value));
        if ours && last.payload == event.body.encode() {
            return Ok(StoreAck { sequence: last.sequence, duplicate: true });
        }
        if last.sequence != expected {
            return Err(BusError::Conflict { expected });
        }
        Err(error)
    }

    /// Like [`Bus::append`], but while the server is away it keeps trying for as long as `hold_ms` says.
    pub async fn append_with_retry(&self, event: &OutgoingEvent, expected: u64) -> Result<StoreAck, BusError> {
        let mut patience = RetryDeadline::new(&self.limits);
        loop {
            match self.append(event, expected).await {
                Ok(written) => return Ok(written),
                Err(error) => patience.backoff_after(error).await?,
            }
        }
    }

    /// Writes a decision under the guard of its subject, until the server says either way: the same bytes with the same
    /// guard, however often there is no answer. What stands there after a conflict may be this very event, whose
    /// acknowledgement was lost; whoever reads the subject will see it. With it comes what digests of the agent's hash chain are
    /// made of, which is what is stored.
    ///
    /// # Errors
    /// [`BusError::Conflict`] or [`BusError::TooLarge`]. It waits for as long as the server is away.
    pub async fn commit_decision(
        &self,
        event: &OutgoingEvent,
        expected: u64,
    ) -> Result<(StoreAck, ContentDigest), BusError> {
        let mut message = None;
        let mut stalled = None;
        let mut attempt = 0;
        loop {
            match self.try_commit_decision(event, &mut message, expected).await {
                Err(error @ BusError::Unavailable { .. }) => {
                    attempt += 1;
                    tracing::warn!(%error, attempt, subject = event.subject, "not written yet, trying again");
                    stalled = Some(self.writes.mark_stalled(&error, stalled));
                    tokio::time::sleep(backoff_delay(&self.limits, attempt)).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// Tries to write the event once, with the same bytes in each try.
    async fn try_commit_decision(
        &self,
        event: &OutgoingEvent,
        message: &mut Option<OutgoingMessage>,
        expected: u64,
    ) -> Result<(StoreAck, ContentDigest), BusError> {
        let sealed = match message.take() {
            Some(sealed) => sealed,
            None => self.build_message(event).await?.with_guard(expected),
        };
        let sealed = message.insert(sealed);
        let content = ContentDigest::of_decision(&event.subject, first_values(&sealed.headers), &sealed.payload);
        Ok((self.store_expecting(sealed.clone(), expected).await?, content))
    }

    /// Speaks to whoever listens right now: nothing is stored, nobody waits.
    pub async fn publish_live(&self, event: &OutgoingEvent) {
        if let Err(error) = self.publish_live_to(&event.subject, event).await {
            tracing::debug!(%error, subject = event.subject, "live output went nowhere");
        }
    }

    /// Like [`Bus::publish_live`], to whoever listens on another subject than the event's own.
    pub async fn publish_live_to(&self, subject: &str, event: &OutgoingEvent) -> Result<(), Cause> {
        self.port.send_live(subject.to_owned(), event.headers(), event.body.encode().into()).await
    }

    /// The message, unless nobody would read it.
    async fn build_message(&self, event: &OutgoingEvent) -> Result<OutgoingMessage, BusError> {
        let size = event.body.encoded_len();
        if size > self.limits.max_body_bytes {
            return Err(BusError::TooLarge { size });
        }
        let (headers, body) = self.seal_event(event).await?;
        Ok(OutgoingMessage::new(self.stored_subject(&event.subject), headers, body))
    }

    /// Stores a message. While the server has another guarded write of its subject in process, or one with its id, the same
    /// again will tell; one with neither never meets that.
    pub(super) async fn store_message(&self, message: OutgoingMessage) -> Result<StoreAck, StoreError> {
        if message.guard.is_some() || message.id.is_some() {
            for _ in 1..IN_PROCESS_TRIES {
                match self.port.publish(message.clone()).await {
                    Err(StoreError::InProcess) => tokio::time::sleep(IN_PROCESS_PAUSE).await,
                    outcome => return outcome,
                }
            }
        }
        self.port.publish(message).await
    }

    async fn store_expecting(&self, message: OutgoingMessage, expected: u64) -> Result<StoreAck, BusError> {
        let size = message.payload.len();
        self.store_message(message).await.map_err(|error| match error {
            StoreError::WrongLastSequence => BusError::Conflict { expected },
            StoreError::TooLarge => BusError::TooLarge { size },
            error => BusError::unavailable("publishing")(error),
        })
    }
}
