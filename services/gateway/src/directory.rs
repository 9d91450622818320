//! Which agents there are, and what of them matters to whoever talks to them. The log knows; what was seen of it is
//! remembered, and brought up to date by every definition that is written.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use kairo_core::{
    bus::{Bus, BusError},
    ids::Name,
    record::Raw,
    subjects::AGENT_DEFINED,
};
use kairo_proto::{Body, v1::AgentDefined};

/// How agents plan whose models' words may turn out to be meant for the mind.
const CHAIN: &str = "chain";

/// What is remembered of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its models' words are plans rather than answers.
    pub plans: bool,
    pub defined_at: Timestamp,
    /// Where its definition stands in the log.
    sequence: u64,
}

#[derive(Clone)]
pub struct Directory {
    bus: Bus,
    /// Agents that are remembered at most.
    capacity: usize,
    known: Arc<Mutex<HashMap<Name, Agent>>>,
}

impl Directory {
    pub fn new(bus: &Bus, capacity: usize) -> Self {
        Self { bus: bus.clone(), capacity, known: Arc::default() }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Name, Agent>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The agent, if there is one. Only one that is not remembered is looked up in the log.
    pub async fn find(&self, name: &Name) -> Result<Option<Agent>, BusError> {
        if let Some(agent) = self.known().get(name) {
            return Ok(Some(*agent));
        }
        let last = self.bus.last(&AGENT_DEFINED.of(name)).await?;
        Ok(last.and_then(|last| self.take_in(name, &last)))
    }

    /// Takes in a message of the log, if it defines an agent.
    pub fn witness(&self, message: &Raw) {
        if AGENT_DEFINED.is(&message.subject)
            && let Some(Ok(name)) = message.subject.split('.').nth(2).map(Name::parse)
        {
            self.take_in(&name, message);
        }
    }

    /// Remembers a definition, unless a newer one is known, and returns the one in force.
    fn take_in(&self, name: &Name, definition: &Raw) -> Option<Agent> {
        let agent = read(definition, self.bus.limits.max_body_bytes)?;
        let mut known = self.known();
        if known.len() >= self.capacity && !known.contains_key(name) {
            known.clear();
        }
        let in_force = known.entry(name.clone()).or_insert(agent);
        if in_force.sequence < agent.sequence {
            *in_force = agent;
        }
        Some(*in_force)
    }
}

fn read(definition: &Raw, max_body: usize) -> Option<Agent> {
    let record = definition.read(max_body).ok()?;
    let Body::AgentDefined(AgentDefined { profile }) = record.body else { return None };
    let plans = profile.is_some_and(|profile| profile.planning == CHAIN);
    Some(Agent { plans, defined_at: record.envelope.time, sequence: definition.sequence })
}
