//! The agents of a partition that are in memory. Those that are awake have something to do, or to be written down, and are looked
//! at again and again; however many rest, they cost nothing but their memory.

use std::collections::{BTreeMap, BTreeSet};

use kairo_core::ids::Name;
use tokio::time::Instant;

use crate::resident::Resident;

#[derive(Default)]
pub(super) struct Agents {
    awake: BTreeMap<Name, Resident>,
    resting: BTreeMap<Name, Resident>,
    /// Those that rest, who rests longest first.
    order: BTreeSet<(Instant, Name)>,
}

impl Agents {
    pub fn insert(&mut self, resident: Resident) {
        self.awake.insert(resident.name.clone(), resident);
    }

    pub fn has(&self, agent: &Name) -> bool {
        self.awake.contains_key(agent) || self.resting.contains_key(agent)
    }

    /// One that rested is awake from now on.
    pub fn get_mut(&mut self, agent: &Name) -> Option<&mut Resident> {
        if let Some(resident) = self.resting.remove(agent) {
            self.order.remove(&(resident.touched, agent.clone()));
            self.awake.insert(agent.clone(), resident);
        }
        self.awake.get_mut(agent)
    }

    /// One that is awake.
    pub fn get_awake(&self, agent: &Name) -> Option<&Resident> {
        self.awake.get(agent)
    }

    pub fn awake(&self) -> impl Iterator<Item = &Resident> {
        self.awake.values()
    }

    pub fn awake_mut(&mut self) -> impl Iterator<Item = &mut Resident> {
        self.awake.values_mut()
    }

    pub fn all(&self) -> impl Iterator<Item = &Resident> {
        self.awake.values().chain(self.resting.values())
    }

    /// Lets those rest that have nothing to do. What was just written down is.
    pub fn rest_idle(&mut self) {
        for (agent, mut resident) in self.awake.extract_if(.., |_, resident| resident.is_idle()) {
            resident.shrink();
            self.order.insert((resident.touched, agent.clone()));
            self.resting.insert(agent, resident);
        }
    }

    /// Forgets the one that rests longest.
    pub fn evict(&mut self) -> Option<Resident> {
        let (_, agent) = self.order.pop_first()?;
        self.resting.remove(&agent)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kairo_mind::log::Log;

    use super::*;

    #[test]
    fn whoever_rests_longest_is_forgotten_first_and_whoever_is_wanted_is_awake() {
        let mut agents = Agents::default();
        let start = Instant::now();
        let name = |agent: &str| Name::parse(agent).unwrap();
        for (agent, seconds) in [("ann", 3), ("bob", 1), ("eve", 2), ("new", 0)] {
            let mut resident = Resident::loading(name(agent), 1);
            resident.log = (agent != "new").then(Log::default);
            resident.touched = start + Duration::from_secs(seconds);
            agents.insert(resident);
        }
        agents.rest_idle();
        assert_eq!(agents.awake().map(|resident| resident.name.as_str()).collect::<Vec<_>>(), ["new"]);
        agents.get_mut(&name("bob")).unwrap().dirty = true;
        agents.rest_idle();
        let forgotten: Vec<String> = std::iter::from_fn(|| agents.evict()).map(|it| it.name.to_string()).collect();
        assert_eq!(forgotten, ["eve", "ann"]);
        assert!(agents.has(&name("bob")) && agents.get_awake(&name("bob")).is_some() && !agents.has(&name("ann")));
        assert_eq!(agents.all().count(), 2);
    }
}
