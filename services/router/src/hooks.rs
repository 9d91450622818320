//! The agents whose tasks wait for outside events, read from the bucket of registrations and updated as it grows.

use std::collections::{BTreeSet, HashMap};

use kairo_core::{
    bus::{
        Bus, BusError,
        hooks::{HookChange, TaskKey},
    },
    ids::Name,
};
use tokio::sync::Mutex;

pub struct HookRegistry {
    bus: Bus,
    index: Mutex<TriggerIndex>,
}

impl HookRegistry {
    pub fn new(bus: &Bus) -> Self {
        Self { bus: bus.clone(), index: Mutex::default() }
    }

    /// The agents that wait for this, as of now.
    pub async fn agents_waiting_for(&self, trigger: &str) -> Result<BTreeSet<Name>, BusError> {
        let mut index = self.index.lock().await;
        let mut changes = Vec::new();
        index.read = self.bus.read_hook_changes(index.read, |change| changes.push(change)).await?;
        changes.into_iter().for_each(|change| index.apply_change(change));
        Ok(index.agents_of(trigger))
    }
}

/// The tasks that wait, as far as the bucket was read.
#[derive(Default)]
struct TriggerIndex {
    /// Sequence of the bucket.
    read: u64,
    triggers: HashMap<TaskKey, String>,
    tasks: HashMap<String, BTreeSet<TaskKey>>,
}

impl TriggerIndex {
    fn apply_change(&mut self, change: HookChange) {
        let HookChange { task, registration } = change;
        if let Some(before) = self.triggers.remove(&task)
            && let Some(tasks) = self.tasks.get_mut(&before)
        {
            tasks.remove(&task);
            if tasks.is_empty() {
                self.tasks.remove(&before);
            }
        }
        if let Some(trigger) = registration.as_ref().and_then(|registration| registration.active_trigger()) {
            self.tasks.entry(trigger.to_owned()).or_default().insert(task.clone());
            self.triggers.insert(task, trigger.to_owned());
        }
    }

    fn agents_of(&self, trigger: &str) -> BTreeSet<Name> {
        self.tasks.get(trigger).into_iter().flatten().map(|(agent, _)| agent.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use kairo_core::{
        hooks::{HookRegistration, HookState},
        record::DecisionPosition,
    };
    use uuid::Uuid;

    use super::*;

    fn change(agent: &str, task: u128, trigger: &str, state: HookState) -> HookChange {
        let registration = HookRegistration { trigger: trigger.into(), state, decided: DecisionPosition::default() };
        HookChange { task: (Name::parse(agent).unwrap(), Uuid::from_u128(task)), registration: Some(registration) }
    }

    #[test]
    fn an_agent_waits_as_long_as_one_of_its_tasks_does() {
        let mut index = TriggerIndex::default();
        let waiting =
            |index: &TriggerIndex| index.agents_of("github.push").iter().map(Name::to_string).collect::<Vec<_>>();
        for (agent, task) in [("a", 1), ("a", 2), ("b", 3)] {
            index.apply_change(change(agent, task, "github.push", HookState::Active));
        }
        index.apply_change(change("c", 4, "gitlab.push", HookState::Active));
        assert_eq!(waiting(&index), ["a", "b"]);
        index.apply_change(change("a", 1, "github.push", HookState::Ended));
        index.apply_change(change("b", 3, "github.push", HookState::Paused));
        assert_eq!(waiting(&index), ["a"]);
        index.apply_change(HookChange { task: (Name::parse("a").unwrap(), Uuid::from_u128(2)), registration: None });
        assert!(waiting(&index).is_empty() && !index.tasks.contains_key("github.push"));
        index.apply_change(change("b", 3, "github.push", HookState::Active));
        assert_eq!(waiting(&index), ["b"]);
    }
}
