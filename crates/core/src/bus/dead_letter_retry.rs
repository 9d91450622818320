//! Retries of dead letters, ordered by an administrator.
//!
//! An order is stored beside the dead letters ([`DEAD_LETTER_RETRY`]) and delivered to the service that wrote the
//! letter. The service reads the original message and hands it to the handler of that consumer as a redelivery, so that
//! work already done is not done twice. The outcome is stored beside the letter ([`DEAD_LETTER_RETRIED`]); a letter
//! that was handled is not handled again, whoever orders it.

use std::{collections::BTreeMap, sync::Arc};

use futures::future::BoxFuture;
use kairo_proto::{
    v1::{DeadLetterRetried, DeadLetterRetry},
    words::RetryOutcome,
};
use uuid::Uuid;

use super::{
    Bus, BusError,
    append::OutgoingEvent,
    consume::{
        Delivery, DeliveryOutcome, DeliveryProcessor, Handler, HandlerFailure, ProcessingOutcome, RawDelivery,
        RawHandler, RawProcessor, RecordProcessor,
    },
    port::ReadSource,
};
use crate::{
    envelope::{Envelope, Origin},
    ids::{self, Name},
    principal::Principal,
    record::{RawMessage, Record},
    subjects::{Consumer, DEAD_LETTER_RETRIED, DEAD_LETTER_RETRY, DLQ_STREAM, EVENTS_STREAM, Service},
};

const READING: &str = "reading the dead letters";
/// The attempt number of a retry: the message was delivered before, or there would be no letter.
const AGAIN: u64 = 2;

type RetryHandler = Box<dyn Fn(RawDelivery) -> BoxFuture<'static, ProcessingOutcome> + Send + Sync>;

/// The handlers of a service's consumers, by name of the consumer.
pub struct DeadLetterRetrier {
    bus: Bus,
    dealing: BTreeMap<&'static str, RetryHandler>,
}

impl DeadLetterRetrier {
    pub fn new(bus: &Bus) -> Self {
        Self { bus: bus.clone(), dealing: BTreeMap::new() }
    }

    /// Sets the handler that retries the messages of this consumer.
    #[must_use]
    pub fn with_handler<H: Handler>(self, consumer: Consumer, handler: Arc<H>) -> Self {
        self.with_processor(consumer, RecordProcessor(handler))
    }

    /// Sets the handler that retries the messages of a consumer that are not Kairo's events.
    #[must_use]
    pub fn with_raw_handler<H: RawHandler>(self, consumer: Consumer, handler: Arc<H>) -> Self {
        self.with_processor(consumer, RawProcessor(handler))
    }

    fn with_processor<W: DeliveryProcessor>(mut self, consumer: Consumer, work: W) -> Self {
        let bus = self.bus.clone();
        let work = Arc::new(work);
        let dealing = move |delivery: RawDelivery| -> BoxFuture<'static, ProcessingOutcome> {
            let bus = bus.clone();
            let work = work.clone();
            Box::pin(async move { work.process_delivery(&bus, consumer, &delivery).await })
        };
        self.dealing.insert(consumer.name(), Box::new(dealing));
        self
    }

    /// Retries the message, and returns whether it is handled or to be tried later, or why it failed.
    async fn retry_message(&self, order: &DeadLetterRetry) -> Result<Result<DeliveryOutcome, String>, BusError> {
        let Some(dealing) = self.dealing.get(order.consumer.as_str()) else {
            return Ok(Err(format!("this build has no consumer {}", order.consumer)));
        };
        let Some(raw) = self.original_message(order).await? else {
            return Ok(Err(format!("message {} is not in {} any more", order.sequence, order.stream)));
        };
        let misplaced =
            Some(&raw).filter(|_| order.stream == EVENTS_STREAM).and_then(|raw| self.bus.misplacement_of(raw));
        if let Some(misplaced) = misplaced {
            return Ok(Err(misplaced.to_string()));
        }
        Ok(match dealing(RawDelivery { raw, attempt: AGAIN }).await {
            ProcessingOutcome::Unreadable(reason) => Err(reason),
            ProcessingOutcome::Handled(Ok(settled)) => Ok(settled),
            ProcessingOutcome::Handled(Err(failure)) => Err(failure.to_string()),
        })
    }

    async fn original_message(&self, order: &DeadLetterRetry) -> Result<Option<RawMessage>, BusError> {
        let found = self.bus.port.message_at(&order.stream, order.sequence, ReadSource::Leader).await;
        match found.map_err(BusError::unavailable("reading what was set aside"))? {
            Some(raw) => Ok(Some(self.bus.open_message(raw).await?)),
            None => Ok(None),
        }
    }

    async fn record_outcome(
        &self,
        order: &Record,
        letter: u64,
        outcome: RetryOutcome,
        reason: String,
    ) -> Result<(), BusError> {
        let service = self.bus.service;
        let Ok(owner) = Name::parse(service.name()) else { return Ok(()) };
        let id = ids::derive(order.envelope.id, "dlq.retried");
        let envelope = order.envelope.follow_up(id, service, Origin::System, self.bus.now());
        let retried = DeadLetterRetried { letter, outcome: outcome.as_str().to_owned(), reason };
        self.bus.store_with_dead_letters(&OutgoingEvent::new(&DEAD_LETTER_RETRIED, &owner, envelope, retried)).await?;
        Ok(())
    }
}

impl Handler for DeadLetterRetrier {
    async fn handle(&self, delivery: &Delivery) -> Result<DeliveryOutcome, HandlerFailure> {
        let Delivery { record, .. } = delivery;
        let Some(order) = DeadLetterRetry::of(&record.body) else { return Ok(DeliveryOutcome::Done) };
        match self.bus.recorded_outcome(order.letter, record.envelope.id).await? {
            RecordedOutcome::Nothing => {}
            // It was delivered before, perhaps to a consumer that was made anew since.
            RecordedOutcome::This => return Ok(DeliveryOutcome::Done),
            RecordedOutcome::HandledBy(before) => {
                let reason = format!("by the retry {before} before it");
                self.record_outcome(record, order.letter, RetryOutcome::Handled, reason).await?;
                return Ok(DeliveryOutcome::Done);
            }
        }
        let (outcome, reason) = match self.retry_message(order).await? {
            Ok(later @ DeliveryOutcome::Later(_)) => return Ok(later),
            Ok(DeliveryOutcome::Done) => (RetryOutcome::Handled, String::new()),
            Err(reason) => (RetryOutcome::Failed, reason),
        };
        tracing::info!(letter = order.letter, outcome = outcome.as_str(), reason, "a dead letter was retried");
        self.record_outcome(record, order.letter, outcome, reason).await?;
        Ok(DeliveryOutcome::Done)
    }
}

impl Bus {
    /// Has the service that set a message aside deal with it again, at somebody's word. Returns the id of the order.
    pub async fn retry_dead_letter(
        &self,
        by: &Principal,
        service: Service,
        order: DeadLetterRetry,
    ) -> Result<Uuid, BusError> {
        let owner = Name::parse(service.name()).map_err(|error| BusError::Refused(error.to_string()))?;
        let envelope = Envelope::from_outside(self.new_id(), self.service, Origin::System, self.now());
        let envelope = Envelope { entered_by: Some(by.clone()), ..envelope };
        let event = OutgoingEvent::new(&DEAD_LETTER_RETRY, &owner, envelope, order);
        self.store_with_dead_letters(&event).await?;
        Ok(event.envelope.id)
    }

    /// Returns the recorded outcome of this order, or of an earlier one that handled the letter.
    async fn recorded_outcome(&self, letter: u64, order: Uuid) -> Result<RecordedOutcome, BusError> {
        let Ok(owner) = Name::parse(self.service.name()) else { return Ok(RecordedOutcome::Nothing) };
        let filter = DEAD_LETTER_RETRIED.of_owner(&owner);
        let mut after = letter;
        let mut told = RecordedOutcome::Nothing;
        // As the leader has them: one that was told just before must not be missed.
        while let Some(raw) =
            self.port.next_at_leader(DLQ_STREAM, &filter, after).await.map_err(BusError::unavailable(READING))?
        {
            after = raw.sequence;
            let Ok(record) = raw.read(self.limits.max_body_bytes) else { continue };
            let retried = DeadLetterRetried::of(&record.body).filter(|it| it.letter == letter);
            match (record.envelope.causation_id, retried) {
                (Some(of), Some(_)) if of == order => return Ok(RecordedOutcome::This),
                (Some(of), Some(retried)) if retried.outcome_word() == RetryOutcome::Handled => {
                    told = RecordedOutcome::HandledBy(of)
                }
                _ => {}
            }
        }
        Ok(told)
    }
}

/// The recorded outcome of retries of a letter.
enum RecordedOutcome {
    Nothing,
    /// The outcome of this very order.
    This,
    /// It was handled, by the order with this id.
    HandledBy(Uuid),
}
