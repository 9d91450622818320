//! Writing to the log.

use async_nats::{
    HeaderMap,
    jetstream::{context::PublishErrorKind, message::PublishMessage},
};
use kairo_proto::Body;

use super::{Bus, BusError, patience::Patience};
use crate::{envelope::Envelope, ids::Name, subjects::Route, telemetry};

/// An event about to be written.
#[derive(Clone, Debug)]
pub struct Outgoing {
    pub subject: String,
    pub envelope: Envelope,
    pub body: Body,
}

impl Outgoing {
    pub fn new(route: &Route, owner: &Name, envelope: Envelope, body: impl Into<Body>) -> Self {
        let body = body.into();
        let traceparent = telemetry::outgoing_traceparent(envelope.traceparent.as_deref(), envelope.id);
        let envelope = Envelope {
            type_name: body.type_name().to_owned(),
            subject: Some(owner.to_string()),
            traceparent: Some(traceparent),
            ..envelope
        };
        Self { subject: route.of(owner), envelope, body }
    }

    pub fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in self.envelope.to_headers() {
            headers.insert(name, value.as_str());
        }
        headers
    }
}

/// Where an event was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    pub sequence: u64,
    /// It had been written before; the sequence is that of the first time.
    pub duplicate: bool,
}

impl Bus {
    /// Writes an event. The same id within the stream's duplicate window is written once; beyond that window whoever
    /// reads it must know what it has seen.
    pub async fn publish(&self, event: &Outgoing) -> Result<Written, BusError> {
        let message = self.message(event)?.message_id(event.envelope.id.to_string());
        self.send(event, message, 0).await
    }

    /// Writes an event only if `expected` is still the last sequence of its subject (0 for none): the one fence.
    ///
    /// When the answer is an error, the last message of the subject tells whether it was this very event that got
    /// there: then that is success. The id alone does not tell, since replicas at the same work derive the same one,
    /// and some say the very same; but when they said it differs, and what is folded from it.
    pub async fn append(&self, event: &Outgoing, expected: u64) -> Result<Written, BusError> {
        let message = self.message(event)?.expected_last_subject_sequence(expected);
        let error = match self.send(event, message, expected).await {
            Ok(written) => return Ok(written),
            Err(error @ BusError::TooLarge { .. }) => return Err(error),
            Err(error) => error,
        };
        let Some(last) = self.last(&event.subject).await? else {
            return Err(error);
        };
        let ours = event.envelope.to_headers().into_iter().all(|(name, value)| last.header(name) == Some(&value));
        if ours && last.payload == event.body.encode() {
            return Ok(Written { sequence: last.sequence, duplicate: true });
        }
        if last.sequence != expected {
            return Err(BusError::Conflict { expected });
        }
        Err(error)
    }

    /// Like [`Bus::append`], but while the server is away it keeps trying for as long as `hold_ms` says.
    pub async fn append_patiently(&self, event: &Outgoing, expected: u64) -> Result<Written, BusError> {
        let mut patience = Patience::new(&self.limits);
        loop {
            match self.append(event, expected).await {
                Ok(written) => return Ok(written),
                Err(error) => patience.after(error).await?,
            }
        }
    }

    /// Speaks to whoever listens right now: nothing is stored, nobody waits.
    pub async fn say_live(&self, event: &Outgoing) {
        let said =
            self.client.publish_with_headers(event.subject.clone(), event.headers(), event.body.encode().into()).await;
        if let Err(error) = said {
            tracing::debug!(%error, subject = event.subject, "live output went nowhere");
        }
    }

    /// The message, unless nobody would read it.
    fn message(&self, event: &Outgoing) -> Result<PublishMessage, BusError> {
        let body = event.body.encode();
        if body.len() > self.limits.max_body_bytes {
            return Err(BusError::TooLarge { size: body.len() });
        }
        Ok(PublishMessage::build().headers(event.headers()).payload(body.into()))
    }

    async fn send(&self, event: &Outgoing, message: PublishMessage, expected: u64) -> Result<Written, BusError> {
        let sent = async { self.jetstream.send_publish(event.subject.clone(), message).await?.await };
        match sent.await {
            Ok(ack) => Ok(Written { sequence: ack.sequence, duplicate: ack.duplicate }),
            Err(error) => Err(match error.kind() {
                PublishErrorKind::WrongLastSequence => BusError::Conflict { expected },
                PublishErrorKind::MaxPayloadExceeded => BusError::TooLarge { size: event.body.encode().len() },
                _ if error.to_string().contains("message size exceeds") => {
                    BusError::TooLarge { size: event.body.encode().len() }
                }
                _ => BusError::Unavailable { doing: "publishing", source: error.into() },
            }),
        }
    }
}
