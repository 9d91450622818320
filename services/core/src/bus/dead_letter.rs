//! Setting aside what cannot be dealt with, so that it blocks nobody.

use kairo_proto::v1::DeadLetter;
use uuid::Uuid;

use super::{
    Bus, BusError,
    append::{Outgoing, Written},
    port::Message,
};
use crate::{
    envelope::{Envelope, Origin},
    ids::{self, Name},
    metrics::table::DEAD_LETTERS_WRITTEN,
    record::Raw,
    subjects::{self, Consumer, EVENTS_STREAM},
};

/// The most bytes of a body a dead letter keeps. The message itself stays in the log.
const HEAD: usize = 4_096;
/// The warning while a dead letter is not written: the reader of a partition continues only after that.
const NOT_WRITTEN: &str = "a dead letter was not written yet";

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

    /// Like [`Bus::dead_letter`], until it is written.
    pub async fn dead_letter_in_time(&self, consumer: &str, message: &Raw, reason: &str) {
        self.in_time(NOT_WRITTEN, || self.dead_letter(consumer, message, reason)).await;
    }

    /// Like [`Bus::unreadable`], until it is written.
    pub async fn unreadable_in_time(&self, consumer: &str, message: &Raw, reason: &str) {
        self.in_time(NOT_WRITTEN, || self.unreadable(consumer, message, reason)).await;
    }

    async fn write_letter(&self, id: Uuid, consumer: &str, message: &Raw, reason: &str) -> Result<(), BusError> {
        tracing::warn!(consumer, subject = message.subject, sequence = message.sequence, reason, "dead letter");
        let envelope = Envelope::entering(id, self.service, Origin::System, self.now());
        // What is sealed there is sealed here.
        let body = message.sealed.as_ref().unwrap_or(&message.payload);
        let letter = DeadLetter {
            consumer: consumer.to_owned(),
            stream: stream_of(consumer).to_owned(),
            sequence: message.sequence,
            subject: message.subject.clone(),
            reason: reason.to_owned(),
            head: body.slice(..body.len().min(HEAD)).to_vec(),
            size: body.len() as u64,
        };
        let Ok(owner) = Name::parse(self.service.name()) else { return Ok(()) };
        let event = Outgoing::new(&subjects::DEAD_LETTER, &owner, envelope, letter);
        let written = self.store_beside(&event).await?;
        self.metrics.count(&DEAD_LETTERS_WRITTEN, f64::from(!written.duplicate), &[]);
        Ok(())
    }

    /// Writes something beside the dead letters: a letter, or what becomes of one. The same id is written once.
    pub(super) async fn store_beside(&self, event: &Outgoing) -> Result<Written, BusError> {
        let message = Message::new(event.subject.clone(), event.headers(), event.body.encode());
        let stored = self.store(message.once(event.envelope.id.to_string())).await;
        stored.map_err(|error| BusError::unavailable("writing beside the dead letters")(error))
    }
}

/// The stream that the consumer of this name reads; projector's readers of the log are no durable consumers.
fn stream_of(consumer: &str) -> &'static str {
    let durable = Consumer::DURABLE.into_iter().find(|durable| durable.name() == consumer);
    durable.map_or(EVENTS_STREAM, Consumer::stream)
}
