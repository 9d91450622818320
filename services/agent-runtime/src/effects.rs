//! The effects of a committed decision: timers fire when a task is due, the router watches for the outside events that
//! tasks wait for, and other agents receive requests and answers.
//!
//! A durable consumer of decisions, so that nothing is lost between a commit and its effect. Decisions may arrive more
//! than once and in any order; the log position of each decides which is current ([`kairo_core::bus::timers`],
//! [`kairo_core::hooks`]). If timers or registrations are ever lost, reading all decisions again restores them: an
//! agent ignores a due time that it has already handled.

pub mod plan;

use kairo_core::personal::ContentOwners;
use kairo_core::{
    bus::{
        Bus,
        append::OutgoingEvent,
        consume::{Delivery, DeliveryOutcome, Handler, HandlerFailure},
        timers::TaskTimer,
    },
    envelope::{Envelope, Origin},
    hooks::HookRegistration,
    ids::Name,
    record::{DecisionPosition, Record},
    subjects::{self, AGENT_ANSWER, AGENT_REQUEST, Service},
};
use kairo_proto::{
    Body,
    v1::{AgentDecision, AgentRequest},
};

use plan::{Effect, PeerMessage, PlannedEffect};
use uuid::Uuid;

/// The handler of [`kairo_core::subjects::Consumer::AgentRuntimeEffects`].
pub struct Effects {
    bus: Bus,
}

impl Effects {
    pub fn new(bus: &Bus) -> Self {
        Self { bus: bus.clone() }
    }

    async fn perform(
        &self,
        record: &Record,
        agent: &Name,
        decided: DecisionPosition,
        effect: Effect,
    ) -> Result<(), HandlerFailure> {
        match effect {
            Effect::Arm { task, occurrence, at } => {
                self.bus.arm_timer(&TaskTimer { agent: agent.clone(), task, occurrence, at, decided }).await?;
            }
            Effect::Disarm { task } => self.bus.disarm_timers(task, decided).await?,
            Effect::Register { task, trigger, state } => {
                self.bus.register_hook(agent, task, &HookRegistration { trigger, state, decided }).await?;
            }
            Effect::Ask(PeerMessage { id, agent, correlation, body }) => {
                let envelope = self.message_envelope(record, decided, id, correlation);
                let decided = decided.sequence;
                let body = AgentRequest { decided, ..body };
                self.bus.publish(&OutgoingEvent::new(&AGENT_REQUEST, &agent, envelope, body)).await?;
            }
            Effect::Answer(PeerMessage { id, agent, correlation, body }) => {
                let envelope = self.message_envelope(record, decided, id, correlation);
                // Whose the task was, its answer is.
                let owner = record.envelope.owners.owner_of_part(decided.position).unwrap_or_default();
                let answer = OutgoingEvent::new(&AGENT_ANSWER, &agent, envelope, body)
                    .with_data_subject(ContentOwners::of_user(owner));
                self.bus.publish(&answer).await?;
            }
        }
        Ok(())
    }

    /// Builds the envelope of a message from one agent to another: it keeps the correlation of the first agent's input
    /// and is caused by the event that holds the message.
    fn message_envelope(&self, record: &Record, decided: DecisionPosition, id: Uuid, correlation_id: Uuid) -> Envelope {
        let envelope = record.envelope.follow_up(id, Service::AgentRuntime, Origin::Internal, self.bus.now());
        let events = AgentDecision::of(&record.body).map(|decision| &decision.events);
        let event = events.and_then(|events| Uuid::parse_str(&events.get(decided.position)?.event_id).ok());
        Envelope { correlation_id, causation_id: event.or(envelope.causation_id), thread_id: None, ..envelope }
    }
}

impl Handler for Effects {
    async fn handle(&self, delivery: &Delivery) -> Result<DeliveryOutcome, HandlerFailure> {
        let record = &delivery.record;
        let (Body::AgentDecision(decision), Some((_, agent))) = (&record.body, subjects::find_route(&record.subject))
        else {
            return Err(HandlerFailure::Permanent(format!("nothing to do for a {}", record.body.type_name())));
        };
        for PlannedEffect { position, effect } in plan::effects(&agent, decision) {
            self.perform(record, &agent, DecisionPosition { sequence: record.sequence, position }, effect).await?;
        }
        Ok(DeliveryOutcome::Done)
    }
}
