//! Telling agents what happened in other systems before the router knew that they wait for it.
//!
//! A task waits from the decision on that says so, and the router learns of it a little later, when agent-runtime has
//! registered it. What happens in between is not held up for that: it is told to those that are known to wait, and when
//! a task is registered, what happened since the decision is told to its agent. Nothing falls between the two: an event
//! that is stored after the registration is looked at after it, and finds it; one that is stored before is found here. So
//! an effect that is stuck delays what its own task waits for, and nobody else's.

use kairo_core::{
    bus::{
        Bus, BusError,
        append::OutgoingEvent,
        consume::{DeliveryOutcome, HandlerFailure, RawDelivery, RawHandler},
        hooks::HookChange,
    },
    ids::Name,
    record::RawMessage,
    subjects::{TASK_TRIGGERED, subject_of_trigger},
};

use crate::events;

/// The handler of [`kairo_core::subjects::Consumer::RouterHooks`].
pub struct MissedEventHandler {
    bus: Bus,
}

impl MissedEventHandler {
    pub fn new(bus: &Bus) -> Self {
        Self { bus: bus.clone() }
    }

    /// Tells `agent` all that happened above sequence `after`, a page at a time.
    async fn deliver_missed(&self, agent: &Name, trigger: &str, mut after: u64) -> Result<(), HandlerFailure> {
        let subject = subject_of_trigger(trigger);
        let last = self.bus.last_at_leader(&subject).await?;
        while after < last {
            let page = self.bus.read_page(&subject, after).await?;
            let Some(newest) = page.messages.last() else {
                return Err(HandlerFailure::Transient("the server that answers is behind".to_owned()));
            };
            after = newest.sequence;
            self.deliver_untold(agent, trigger, &page.messages).await?;
        }
        Ok(())
    }

    /// Tells `agent` of these events, but for those it was told of. It would not heed them twice, as long as it remembers
    /// them: a registration that was lost and made again must not bring up what happened long ago.
    async fn deliver_untold(&self, agent: &Name, trigger: &str, happened: &[RawMessage]) -> Result<(), BusError> {
        let limit = self.bus.limits.max_body_bytes;
        let told = |raw: &RawMessage| {
            // What cannot be read becomes a dead letter elsewhere.
            let happened = events::read_event(raw, trigger, limit).ok()?;
            Some(events::triggered_event(raw, trigger, &happened, agent, self.bus.now()))
        };
        let mut untold: Vec<OutgoingEvent> = happened.iter().filter_map(told).collect();
        let mut after = happened.first().map_or(0, |first| first.sequence);
        while !untold.is_empty() {
            let page = self.bus.read_page(&TASK_TRIGGERED.of_owner(agent), after).await?;
            for raw in &page.messages {
                after = raw.sequence;
                let id = raw.read(limit).ok().map(|record| record.envelope.id);
                untold.retain(|event| Some(event.envelope.id) != id);
            }
            if !page.more {
                break;
            }
        }
        for event in &untold {
            self.bus.publish(event).await?;
        }
        Ok(())
    }
}

impl RawHandler for MissedEventHandler {
    async fn handle(&self, delivery: &RawDelivery) -> Result<DeliveryOutcome, HandlerFailure> {
        if let Some(HookChange { task: (agent, _), registration: Some(registration) }) =
            HookChange::from_message(&delivery.raw)
            && let Some(trigger) = registration.active_trigger()
        {
            self.deliver_missed(&agent, trigger, registration.decided.sequence).await?;
        }
        Ok(DeliveryOutcome::Done)
    }
}
