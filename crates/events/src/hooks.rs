//! The registration of a task that waits for something outside: agent-runtime derives it from decisions and keeps it,
//! router looks it up. Pure.
//!
//! Decisions are processed in any order and more than once, so what each of them says is merged: the outcome is the
//! same whatever the order.

use serde::{Deserialize, Serialize};

use crate::record::DecisionPosition;

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HookState {
    /// It waits.
    Active,
    Paused,
    /// It never waits again.
    Ended,
}

/// All that is known of one task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookRegistration {
    /// The trigger that it waits for, `<source>.<verb>`; empty until the decision that made it was processed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub trigger: String,
    pub state: HookState,
    /// The place of the decision that set the state.
    pub decided: DecisionPosition,
}

impl HookRegistration {
    /// Merges two registrations of a task: the trigger never changes, the state is the one that was decided last.
    pub fn merge(self, other: Self) -> Self {
        let (earlier, later) = if self.decided <= other.decided { (self, other) } else { (other, self) };
        let trigger = if later.trigger.is_empty() { earlier.trigger } else { later.trigger };
        Self { trigger, ..later }
    }

    /// Returns the trigger that the task waits for, if it waits.
    pub fn active_trigger(&self) -> Option<&str> {
        (self.state == HookState::Active && !self.trigger.is_empty()).then_some(&*self.trigger)
    }

    /// Returns true if it may be dropped once every decision before it was processed.
    pub fn can_be_dropped(&self) -> bool {
        self.trigger.is_empty() || self.state == HookState::Ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registration(trigger: &str, state: HookState, sequence: u64) -> HookRegistration {
        HookRegistration { trigger: trigger.to_owned(), state, decided: DecisionPosition { sequence, position: 0 } }
    }

    #[test]
    fn whatever_the_order_of_decisions_the_outcome_is_the_same() {
        let made = registration("github.push", HookState::Active, 1);
        let paused = registration("", HookState::Paused, 2);
        let resumed = registration("", HookState::Active, 3);
        let mut orders = vec![];
        for (a, b, c) in [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)] {
            let all = [made.clone(), paused.clone(), resumed.clone()];
            let [a, b, c] = [a, b, c].map(|index: usize| all[index].clone());
            orders.push(a.clone().merge(b).merge(c).merge(a));
        }
        assert!(
            orders.iter().all(|outcome| *outcome == registration("github.push", HookState::Active, 3)),
            "{orders:?}"
        );
    }

    #[test]
    fn only_an_active_task_with_a_trigger_waits() {
        assert_eq!(registration("github.push", HookState::Active, 1).active_trigger(), Some("github.push"));
        for other in [
            registration("", HookState::Active, 1),
            registration("github.push", HookState::Paused, 1),
            registration("a.b", HookState::Ended, 1),
        ] {
            assert_eq!(other.active_trigger(), None);
        }
        assert!(!registration("github.push", HookState::Paused, 1).can_be_dropped());
    }
}
