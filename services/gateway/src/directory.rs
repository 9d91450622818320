//! A cache of agent definitions, with the properties that matter to callers. It is filled from the log on demand and
//! updated by every definition in the tail.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use kairo_core::{
    bus::{Bus, BusError},
    ids::Name,
    record::RawMessage,
    subjects::AGENT_DEFINED,
};
use kairo_proto::{Body, v1::AgentDefined};

/// The planning mode in which a model's output may turn out to be a plan instead of an answer.
const CHAIN: &str = "chain";

/// The cached properties of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownAgent {
    /// True if the output of its models is plans rather than answers.
    pub plans: bool,
    pub defined_at: Timestamp,
    /// The sequence of its definition in the log.
    sequence: u64,
}

#[derive(Clone)]
pub struct AgentDirectory {
    bus: Bus,
    /// The most agents in the cache; it is cleared when full.
    capacity: usize,
    known: Arc<Mutex<HashMap<Name, KnownAgent>>>,
}

impl AgentDirectory {
    pub fn new(bus: &Bus, capacity: usize) -> Self {
        Self { bus: bus.clone(), capacity, known: Arc::default() }
    }

    fn lock_known(&self) -> MutexGuard<'_, HashMap<Name, KnownAgent>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the agent, if it exists. Reads the log only if the agent is not cached.
    pub async fn find(&self, name: &Name) -> Result<Option<KnownAgent>, BusError> {
        if let Some(agent) = self.lock_known().get(name) {
            return Ok(Some(*agent));
        }
        let last = self.bus.last_message(&AGENT_DEFINED.of_owner(name)).await?;
        Ok(last.and_then(|last| self.apply_definition(name, &last)))
    }

    /// Updates the cache from a message of the log if it defines an agent.
    pub fn witness(&self, message: &RawMessage) {
        if AGENT_DEFINED.matches(&message.subject)
            && let Some(Ok(name)) = message.subject.split('.').nth(2).map(Name::parse)
        {
            self.apply_definition(&name, message);
        }
    }

    /// Remembers a definition, unless a newer one is known, and returns the one in force.
    fn apply_definition(&self, name: &Name, definition: &RawMessage) -> Option<KnownAgent> {
        let agent = read_definition(definition, self.bus.limits.max_body_bytes)?;
        let mut known = self.lock_known();
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

fn read_definition(definition: &RawMessage, max_body: usize) -> Option<KnownAgent> {
    let record = definition.read(max_body).ok()?;
    let Body::AgentDefined(AgentDefined { profile, .. }) = record.body else { return None };
    let plans = profile.is_some_and(|profile| profile.planning == CHAIN);
    Some(KnownAgent { plans, defined_at: record.envelope.time, sequence: definition.sequence })
}
