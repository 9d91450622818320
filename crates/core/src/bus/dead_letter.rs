//! Setting aside what cannot be dealt with, so that it blocks nobody.

use kairo_proto::v1::DeadLetter;
use uuid::Uuid;

use super::{
    Bus, BusError,
    append::{OutgoingEvent, StoreAck},
    port::OutgoingMessage,
};
use crate::{
    envelope::{Envelope, Origin},
    ids::{self, Name},
    metrics::table::DEAD_LETTERS_WRITTEN,
    record::RawMessage,
    subjects::{self, Consumer, EVENTS_STREAM},
};

/// The most bytes of a body a dead letter keeps. The message itself stays in the log.
const HEAD: usize = 4_096;
/// The warning while a dead letter is not written: the reader of a partition continues only after that.
const NOT_WRITTEN: &str = "a dead letter was not written yet";

impl Bus {
    /// Writes a dead letter about a message that the consumer cannot deal with. Giving up on it twice writes one.
    pub async fn write_dead_letter(&self, consumer: &str, message: &RawMessage, reason: &str) -> Result<(), BusError> {
        let id = ids::from_parts("dead-letter", &[consumer, &message.sequence.to_string()]);
        self.store_dead_letter(id, consumer, message, reason).await
    }

    /// Writes a dead letter about a message that cannot be read: one, whichever of its consumers finds out.
    pub async fn write_unreadable(&self, consumer: &str, message: &RawMessage, reason: &str) -> Result<(), BusError> {
        let id = ids::from_parts("unreadable", &[&message.sequence.to_string()]);
        self.store_dead_letter(id, consumer, message, reason).await
    }

    /// Like [`Bus::write_dead_letter`], until it is written.
    pub async fn write_dead_letter_with_retry(&self, consumer: &str, message: &RawMessage, reason: &str) {
        self.retry_until_success(NOT_WRITTEN, || self.write_dead_letter(consumer, message, reason)).await;
    }

    /// Like [`Bus::write_unreadable`], until it is written.
    pub async fn write_unreadable_with_retry(&self, consumer: &str, message: &RawMessage, reason: &str) {
        self.retry_until_success(NOT_WRITTEN, || self.write_unreadable(consumer, message, reason)).await;
    }

    async fn store_dead_letter(
        &self,
        id: Uuid,
        consumer: &str,
        message: &RawMessage,
        reason: &str,
    ) -> Result<(), BusError> {
        tracing::warn!(consumer, subject = message.subject, sequence = message.sequence, reason, "dead letter");
        let envelope = Envelope::from_outside(id, self.service, Origin::System, self.now());
        // What is sealed there is sealed here.
        let body = message.sealed.as_ref().unwrap_or(&message.payload);
        let letter = DeadLetter {
            consumer: consumer.to_owned(),
            stream: consumer_stream(consumer).to_owned(),
            sequence: message.sequence,
            subject: message.subject.clone(),
            reason: reason.to_owned(),
            head: body.slice(..body.len().min(HEAD)).to_vec(),
            size: body.len() as u64,
        };
        let Ok(owner) = Name::parse(self.service.name()) else { return Ok(()) };
        let event = OutgoingEvent::new(&subjects::DEAD_LETTER, &owner, envelope, letter);
        let written = self.store_with_dead_letters(&event).await?;
        self.metrics.count(&DEAD_LETTERS_WRITTEN, f64::from(!written.duplicate), &[]);
        Ok(())
    }

    /// Writes something beside the dead letters: a letter, or what becomes of one. The same id is written once.
    pub(super) async fn store_with_dead_letters(&self, event: &OutgoingEvent) -> Result<StoreAck, BusError> {
        let message = OutgoingMessage::new(event.subject.clone(), event.headers(), event.body.encode());
        let stored = self.store_message(message.with_id(event.envelope.id.to_string())).await;
        stored.map_err(|error| BusError::unavailable("writing beside the dead letters")(error))
    }
}

/// The stream that the consumer of this name reads; projector's readers of the log are no durable consumers.
fn consumer_stream(consumer: &str) -> &'static str {
    let durable = Consumer::DURABLE.into_iter().find(|durable| durable.name() == consumer);
    durable.map_or(EVENTS_STREAM, Consumer::stream)
}
