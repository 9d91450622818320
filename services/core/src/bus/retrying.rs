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
    append::Outgoing,
    consume::{Delivery, Failure, Handler, Outcome, RawDelivery, RawHandler, Raws, Records, Settled, Work},
    port::Asked,
};
use crate::{
    envelope::{Envelope, Origin},
    ids::{self, Name},
    principal::Principal,
    record::{Raw, Record},
    subjects::{Consumer, DEAD_LETTER_RETRIED, DEAD_LETTER_RETRY, DLQ_STREAM, EVENTS_STREAM, Service},
};

const READING: &str = "reading the dead letters";
/// The attempt number of a retry: the message was delivered before, or there would be no letter.
const AGAIN: u64 = 2;

type Dealing = Box<dyn Fn(RawDelivery) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// The handlers of a service's consumers, by name of the consumer.
pub struct Retries {
    bus: Bus,
    dealing: BTreeMap<&'static str, Dealing>,
}

impl Retries {
    pub fn new(bus: &Bus) -> Self {
        Self { bus: bus.clone(), dealing: BTreeMap::new() }
    }

    /// Sets the handler that retries the messages of this consumer.
    #[must_use]
    pub fn by<H: Handler>(self, consumer: Consumer, handler: Arc<H>) -> Self {
        self.working(consumer, Records(handler))
    }

    /// Sets the handler that retries the messages of a consumer that are not Kairo's events.
    #[must_use]
    pub fn by_raw<H: RawHandler>(self, consumer: Consumer, handler: Arc<H>) -> Self {
        self.working(consumer, Raws(handler))
    }

    fn working<W: Work>(mut self, consumer: Consumer, work: W) -> Self {
        let (bus, work) = (self.bus.clone(), Arc::new(work));
        let dealing = move |delivery: RawDelivery| -> BoxFuture<'static, Outcome> {
            let (bus, work) = (bus.clone(), work.clone());
            Box::pin(async move { work.work(&bus, consumer, &delivery).await })
        };
        self.dealing.insert(consumer.name(), Box::new(dealing));
        self
    }

    /// Retries the message, and returns whether it is handled or to be tried later, or why it failed.
    async fn again(&self, order: &DeadLetterRetry) -> Result<Result<Settled, String>, BusError> {
        let Some(dealing) = self.dealing.get(order.consumer.as_str()) else {
            return Ok(Err(format!("this build has no consumer {}", order.consumer)));
        };
        let Some(raw) = self.message(order).await? else {
            return Ok(Err(format!("message {} is not in {} any more", order.sequence, order.stream)));
        };
        let misplaced = Some(&raw).filter(|_| order.stream == EVENTS_STREAM).and_then(|raw| self.bus.misplaced(raw));
        if let Some(misplaced) = misplaced {
            return Ok(Err(misplaced.to_string()));
        }
        Ok(match dealing(RawDelivery { raw, attempt: AGAIN }).await {
            Outcome::Unreadable(reason) => Err(reason),
            Outcome::Handled(Ok(settled)) => Ok(settled),
            Outcome::Handled(Err(failure)) => Err(failure.to_string()),
        })
    }

    async fn message(&self, order: &DeadLetterRetry) -> Result<Option<Raw>, BusError> {
        let found = self.bus.port.at(&order.stream, order.sequence, Asked::Leader).await;
        match found.map_err(BusError::unavailable("reading what was set aside"))? {
            Some(raw) => Ok(Some(self.bus.opened(raw).await?)),
            None => Ok(None),
        }
    }

    async fn tell(&self, order: &Record, letter: u64, outcome: RetryOutcome, reason: String) -> Result<(), BusError> {
        let service = self.bus.service;
        let Ok(owner) = Name::parse(service.name()) else { return Ok(()) };
        let id = ids::derived(order.envelope.id, "dlq.retried");
        let envelope = order.envelope.follow(id, service, Origin::System, self.bus.now());
        let retried = DeadLetterRetried { letter, outcome: outcome.as_str().to_owned(), reason };
        self.bus.store_beside(&Outgoing::new(&DEAD_LETTER_RETRIED, &owner, envelope, retried)).await?;
        Ok(())
    }
}

impl Handler for Retries {
    async fn handle(&self, delivery: &Delivery) -> Result<Settled, Failure> {
        let Delivery { record, .. } = delivery;
        let Some(order) = DeadLetterRetry::of(&record.body) else { return Ok(Settled::Done) };
        match self.bus.told_of(order.letter, record.envelope.id).await? {
            Told::Nothing => {}
            // It was delivered before, perhaps to a consumer that was made anew since.
            Told::This => return Ok(Settled::Done),
            Told::HandledBy(before) => {
                let reason = format!("by the retry {before} before it");
                self.tell(record, order.letter, RetryOutcome::Handled, reason).await?;
                return Ok(Settled::Done);
            }
        }
        let (outcome, reason) = match self.again(order).await? {
            Ok(later @ Settled::Later(_)) => return Ok(later),
            Ok(Settled::Done) => (RetryOutcome::Handled, String::new()),
            Err(reason) => (RetryOutcome::Failed, reason),
        };
        tracing::info!(letter = order.letter, outcome = outcome.as_str(), reason, "a dead letter was retried");
        self.tell(record, order.letter, outcome, reason).await?;
        Ok(Settled::Done)
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
        let envelope = Envelope::entering(self.new_id(), self.service, Origin::System, self.now());
        let envelope = Envelope { entered_by: Some(by.clone()), ..envelope };
        let event = Outgoing::new(&DEAD_LETTER_RETRY, &owner, envelope, order);
        self.store_beside(&event).await?;
        Ok(event.envelope.id)
    }

    /// Returns the recorded outcome of this order, or of an earlier one that handled the letter.
    async fn told_of(&self, letter: u64, order: Uuid) -> Result<Told, BusError> {
        let Ok(owner) = Name::parse(self.service.name()) else { return Ok(Told::Nothing) };
        let (filter, mut after, mut told) = (DEAD_LETTER_RETRIED.of(&owner), letter, Told::Nothing);
        // As the leader has them: one that was told just before must not be missed.
        while let Some(raw) =
            self.port.next_at_leader(DLQ_STREAM, &filter, after).await.map_err(BusError::unavailable(READING))?
        {
            after = raw.sequence;
            let Ok(record) = raw.read(self.limits.max_body_bytes) else { continue };
            let retried = DeadLetterRetried::of(&record.body).filter(|it| it.letter == letter);
            match (record.envelope.causation_id, retried) {
                (Some(of), Some(_)) if of == order => return Ok(Told::This),
                (Some(of), Some(retried)) if retried.outcome_word() == RetryOutcome::Handled => {
                    told = Told::HandledBy(of)
                }
                _ => {}
            }
        }
        Ok(told)
    }
}

/// The recorded outcome of retries of a letter.
enum Told {
    Nothing,
    /// The outcome of this very order.
    This,
    /// It was handled, by the order with this id.
    HandledBy(Uuid),
}
