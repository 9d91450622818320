//! The agents that exist, as the log has them. An agent once defined stays defined, so hits are cached.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

use kairo_core::{
    bus::{Bus, BusError},
    ids::Name,
    subjects::AGENT_DEFINED,
};

pub struct KnownAgents {
    bus: Bus,
    capacity: usize,
    known: Mutex<HashSet<Name>>,
}

impl KnownAgents {
    pub fn new(bus: &Bus, capacity: usize) -> Self {
        Self { bus: bus.clone(), capacity, known: Mutex::default() }
    }

    pub async fn exists(&self, agent: &Name) -> Result<bool, BusError> {
        if self.known.lock().unwrap_or_else(PoisonError::into_inner).contains(agent) {
            return Ok(true);
        }
        let defined = AGENT_DEFINED.of_owner(agent);
        // A server that lags behind may not have seen it yet: before anybody is told no, the leader is asked.
        let exists = self.bus.last_message(&defined).await?.is_some() || self.bus.last_at_leader(&defined).await? > 0;
        if exists {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= self.capacity {
                known.clear();
            }
            known.insert(agent.clone());
        }
        Ok(exists)
    }
}
