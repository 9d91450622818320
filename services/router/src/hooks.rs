//! The agents whose tasks wait for outside events, read from the bucket of registrations and updated as it grows.

use std::collections::{BTreeSet, HashMap};

use kairo_core::{
    bus::{
        Bus, BusError,
        hooks::{Change, TaskKey},
    },
    ids::Name,
};
use tokio::sync::Mutex;

pub struct Hooks {
    bus: Bus,
    index: Mutex<Index>,
}

impl Hooks {
    pub fn new(bus: &Bus) -> Self {
        Self { bus: bus.clone(), index: Mutex::default() }
    }

    /// The agents that wait for this, as of now.
    pub async fn waiting_for(&self, trigger: &str) -> Result<BTreeSet<Name>, BusError> {
        let mut index = self.index.lock().await;
        let mut changes = Vec::new();
        index.read = self.bus.registrations(index.read, |change| changes.push(change)).await?;
        changes.into_iter().for_each(|change| index.take_in(change));
        Ok(index.agents(trigger))
    }
}

/// The tasks that wait, as far as the bucket was read.
#[derive(Default)]
struct Index {
    /// Sequence of the bucket.
    read: u64,
    triggers: HashMap<TaskKey, String>,
    tasks: HashMap<String, BTreeSet<TaskKey>>,
}

impl Index {
    fn take_in(&mut self, change: Change) {
        let Change { task, registration } = change;
        if let Some(before) = self.triggers.remove(&task)
            && let Some(tasks) = self.tasks.get_mut(&before)
        {
            tasks.remove(&task);
            if tasks.is_empty() {
                self.tasks.remove(&before);
            }
        }
        if let Some(trigger) = registration.as_ref().and_then(|registration| registration.waits_for()) {
            self.tasks.entry(trigger.to_owned()).or_default().insert(task.clone());
            self.triggers.insert(task, trigger.to_owned());
        }
    }

    fn agents(&self, trigger: &str) -> BTreeSet<Name> {
        self.tasks.get(trigger).into_iter().flatten().map(|(agent, _)| agent.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use kairo_core::{
        hooks::{Registration, State},
        record::Place,
    };
    use uuid::Uuid;

    use super::*;

    fn change(agent: &str, task: u128, trigger: &str, state: State) -> Change {
        let registration = Registration { trigger: trigger.into(), state, decided: Place::default() };
        Change { task: (Name::parse(agent).unwrap(), Uuid::from_u128(task)), registration: Some(registration) }
    }

    #[test]
    fn an_agent_waits_as_long_as_one_of_its_tasks_does() {
        let mut index = Index::default();
        let waiting = |index: &Index| index.agents("github.push").iter().map(Name::to_string).collect::<Vec<_>>();
        for (agent, task) in [("a", 1), ("a", 2), ("b", 3)] {
            index.take_in(change(agent, task, "github.push", State::Active));
        }
        index.take_in(change("c", 4, "gitlab.push", State::Active));
        assert_eq!(waiting(&index), ["a", "b"]);
        index.take_in(change("a", 1, "github.push", State::Ended));
        index.take_in(change("b", 3, "github.push", State::Paused));
        assert_eq!(waiting(&index), ["a"]);
        index.take_in(Change { task: (Name::parse("a").unwrap(), Uuid::from_u128(2)), registration: None });
        assert!(waiting(&index).is_empty() && !index.tasks.contains_key("github.push"));
        index.take_in(change("b", 3, "github.push", State::Active));
        assert_eq!(waiting(&index), ["b"]);
    }
}
