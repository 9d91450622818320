//! Setting aside what cannot be dealt with, so that it blocks nobody.

use async_nats::jetstream::message::PublishMessage;
use jiff::Timestamp;
use kairo_proto::v1::DeadLetter;
use uuid::Uuid;

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
    /// Writes a dead letter about a message that the consumer cannot deal with. Giving up on it twice writes one.
    pub async fn dead_letter(&self, consumer: &str, message: &Raw, reason: &str) -> Result<(), BusError> {
        let id = ids::named("dead-letter", &[consumer, &message.sequence.to_string()]);
        self.write_letter(id, consumer, message, reason).await
    }

    /// Writes a dead letter about a message that cannot be read: one, whichever of its consumers finds out.
    pub async fn unreadable(&self, consumer: &str, message: &Raw, reason: &str) -> Result<(), BusError> {
        let id = ids::named("unreadable", &[&message.sequence.to_string()]);
        self.write_letter(id, consumer, message, reason).await
    }

    async fn write_letter(&self, id: Uuid, consumer: &str, message: &Raw, reason: &str) -> Result<(), BusError> {
        tracing::warn!(consumer, subject = message.subject, sequence = message.sequence, reason, "dead letter");
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
