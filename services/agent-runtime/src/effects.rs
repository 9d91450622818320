//! The effects of a committed decision: timers fire when a task is due, the router watches for the outside events that
//! tasks wait for, and other agents receive requests and answers.
//!
//! A durable consumer of decisions, so that nothing is lost between a commit and its effect. Decisions may arrive more
//! than once and in any order; the log position of each decides which is current ([`kairo_core::bus::timers`],
//! [`kairo_core::hooks`]). If timers or registrations are ever lost, reading all decisions again restores them: an
//! agent ignores a due time that it has already handled.

pub mod plan;

use kairo_core::personal::Whose;
use kairo_core::{
    bus::{
        Bus,
        append::Outgoing,
        consume::{Delivery, Failure, Handler, Settled},
        timers::Timer,
    },
    envelope::{Envelope, Origin},
    hooks::Registration,
    ids::Name,
    record::{Place, Record},
    subjects::{self, AGENT_ANSWER, AGENT_REQUEST, Service},
};
use kairo_proto::{
    Body,
    v1::{AgentDecision, AgentRequest},
};

use plan::{Effect, Planned, Told};
use uuid::Uuid;

/// The handler of [`kairo_core::subjects::Consumer::AgentRuntimeEffects`].
pub struct Effects {
    bus: Bus,
}

impl Effects {
    pub fn new(bus: &Bus) -> Self {
        Self { bus: bus.clone() }
    }

    async fn perform(&self, record: &Record, agent: &Name, decided: Place, effect: Effect) -> Result<(), Failure> {
        match effect {
            Effect::Arm { task, occurrence, at } => {
                self.bus.arm(&Timer { agent: agent.clone(), task, occurrence, at, decided }).await?;
            }
            Effect::Disarm { task } => self.bus.disarm(task, decided).await?,
            Effect::Register { task, trigger, state } => {
                self.bus.register(agent, task, &Registration { trigger, state, decided }).await?;
            }
            Effect::Ask(Told { id, agent, correlation, body }) => {
                let (envelope, decided) = (self.caused_by(record, decided, id, correlation), decided.sequence);
                let body = AgentRequest { decided, ..body };
                self.bus.publish(&Outgoing::new(&AGENT_REQUEST, &agent, envelope, body)).await?;
            }
            Effect::Answer(Told { id, agent, correlation, body }) => {
                let envelope = self.caused_by(record, decided, id, correlation);
                // Whose the task was, its answer is.
                let owner = record.envelope.whose.of_part(decided.position).unwrap_or_default();
                let answer = Outgoing::new(&AGENT_ANSWER, &agent, envelope, body).whose(Whose::user(owner));
                self.bus.publish(&answer).await?;
            }
        }
        Ok(())
    }

    /// Builds the envelope of a message from one agent to another: it keeps the correlation of the first agent's input
    /// and is caused by the event that holds the message.
    fn caused_by(&self, record: &Record, decided: Place, id: Uuid, correlation_id: Uuid) -> Envelope {
        let envelope = record.envelope.follow(id, Service::AgentRuntime, Origin::Internal, self.bus.now());
        let events = AgentDecision::of(&record.body).map(|decision| &decision.events);
        let event = events.and_then(|events| Uuid::parse_str(&events.get(decided.position)?.event_id).ok());
        Envelope { correlation_id, causation_id: event.or(envelope.causation_id), thread_id: None, ..envelope }
    }
}

impl Handler for Effects {
    async fn handle(&self, delivery: &Delivery) -> Result<Settled, Failure> {
        let record = &delivery.record;
        let (Body::AgentDecision(decision), Some((_, agent))) = (&record.body, subjects::route(&record.subject)) else {
            return Err(Failure::Permanent(format!("nothing to do for a {}", record.body.type_name())));
        };
        for Planned { position, effect } in plan::effects(&agent, decision) {
            self.perform(record, &agent, Place { sequence: record.sequence, position }, effect).await?;
        }
        Ok(Settled::Done)
    }
}
