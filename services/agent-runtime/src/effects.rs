//! What a committed decision has others do: timers go off when a task is due, and the router looks for what tasks wait
//! for outside.
//!
//! A durable consumer of decisions, so that nothing is lost between a commit and its effect. Decisions come more than once
//! and in any order; the place of each in the log says what stands ([`kairo_core::bus::timers`],
//! [`kairo_core::hooks`]). Should timers or registrations ever be lost, reading all decisions again restores them: a time
//! that an agent has dealt with is none to it.

pub mod plan;

use kairo_core::{
    bus::{
        Bus,
        consume::{Delivery, Failure, Handler, Settled},
        timers::Timer,
    },
    hooks::Registration,
    ids::Name,
    record::Place,
    subjects,
};
use kairo_proto::Body;

use plan::{Effect, Planned};

/// The handler of [`kairo_core::subjects::Consumer::AgentRuntimeEffects`].
pub struct Effects {
    bus: Bus,
}

impl Effects {
    pub fn new(bus: &Bus) -> Self {
        Self { bus: bus.clone() }
    }

    async fn perform(&self, agent: &Name, decided: Place, effect: Effect) -> Result<(), Failure> {
        match effect {
            Effect::Arm { task, occurrence, at } => {
                self.bus.arm(&Timer { agent: agent.clone(), task, occurrence, at, decided }).await?;
            }
            Effect::Disarm { task } => self.bus.disarm(task, decided).await?,
            Effect::Register { task, trigger, state } => {
                self.bus.register(agent, task, &Registration { trigger, state, decided }).await?;
            }
        }
        Ok(())
    }
}

impl Handler for Effects {
    async fn handle(&self, delivery: &Delivery) -> Result<Settled, Failure> {
        let record = &delivery.record;
        let (Body::AgentDecision(decision), Some((_, agent))) = (&record.body, subjects::route(&record.subject)) else {
            return Err(Failure::Permanent(format!("nothing to do for a {}", record.body.type_name())));
        };
        for Planned { position, effect } in plan::effects(decision) {
            self.perform(&agent, Place { sequence: record.sequence, position }, effect).await?;
        }
        Ok(Settled::Done)
    }
}
