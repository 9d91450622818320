//! Setting aside what cannot be dealt with, so that it blocks nobody.

use async_nats::jetstream::message::PublishMessage;
use jiff::Timestamp;
use kairo_proto::v1::DeadLetter;

use super::{Bus, BusError, append::Outgoing};
use crate::{
    envelope::{Envelope, Origin},
    ids::{self, Name},
    record::Raw,
    subjects::{self, EVENTS_STREAM},
};

/// How much of a body a dead letter keeps, in bytes. The message itself stays in the log.
const HEAD: usize = 4_096;

impl Bus {
    /// Writes a dead letter. The same consumer giving up on the same message twice writes one.
    pub async fn dead_letter(&self, consumer: &str, message: &Raw, reason: &str) -> Result<(), BusError> {
        tracing::warn!(consumer, subject = message.subject, sequence = message.sequence, reason, "dead letter");
        let id = ids::named("dead-letter", &[consumer, &message.sequence.to_string()]);
        let envelope = Envelope::entering(id, self.service, Origin::System, Timestamp::now());
        let letter = DeadLetter {
            consumer: consumer.to_owned(),
            stream: EVENTS_STREAM.to_owned(),
            sequence: message.sequence,
            subject: message.subject.clone(),
            reason: reason.to_owned(),
            head: message.payload.slice(..message.payload.len().min(HEAD)).to_vec(),
            size: message.payload.len() as u64,
        };
        let Ok(owner) = Name::parse(self.service.name()) else { return Ok(()) };
        let event = Outgoing::new(&subjects::DEAD_LETTER, &owner, envelope, letter);
        let outgoing = PublishMessage::build()
            .headers(event.headers())
            .payload(event.body.encode().into())
            .message_id(id.to_string());
        let sent = async { self.jetstream.send_publish(event.subject.clone(), outgoing).await?.await };
        match sent.await {
            Ok(_) => Ok(()),
            Err(error) => Err(BusError::Unavailable { doing: "setting a message aside", source: error.into() }),
        }
    }
}
