//! Calls of models for everything that one message, or one task that is due, sets off: all of it has the same correlation. An agent that
//! asks another one gives it a share of the calls that are left, and gets back what the other did not need, so that all agents together
//! make no more than the first may. Folded from the log.

use std::collections::{BTreeMap, BTreeSet};

use kairo_proto::v1::{AgentDecision, DecidedEvent};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    state::{AgentState, Profile},
    tasks::Task,
};

/// Calls that a message may set off, when the profile does not say.
const CALLS: u32 = 500;
/// Finished messages shared by several agents that stay counted, so that late calls of them still count.
const REMEMBERED: usize = 64;

/// The calls of all that is under way, by correlation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallBounds(BTreeMap<Uuid, CallBudget>);

/// The calls for the sake of one message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct CallBudget {
    /// Made, or given to others.
    spent: u64,
    /// Given by those who ask.
    allotted: u64,
    /// True if another agent began it, so that this agent has only the allotted calls.
    is_asked: bool,
    /// True if other agents take part in it.
    is_shared: bool,
    /// Sequence of the record counted last.
    touched: u64,
}

impl CallBounds {
    pub fn is_nothing(&self) -> bool {
        self.0.is_empty()
    }

    /// Calls that may still be made, where the profile allows `most`.
    pub fn remaining(&self, correlation: Uuid, most: u64) -> u64 {
        let Some(counted) = self.0.get(&correlation) else { return most };
        let own = if counted.is_asked { 0 } else { most };
        own.saturating_add(counted.allotted).saturating_sub(counted.spent)
    }

    pub(super) fn spend(&mut self, correlation: Uuid, calls: u64, at: u64) {
        if calls > 0 {
            let counted = self.0.entry(correlation).or_default();
            (counted.spent, counted.touched) = (counted.spent.saturating_add(calls), at);
        }
    }

    /// Another agent is given calls.
    pub(super) fn allot_to_agent(&mut self, correlation: Uuid, calls: u64, at: u64) {
        self.spend(correlation, calls, at);
        if let Some(counted) = self.0.get_mut(&correlation) {
            counted.is_shared = true;
        }
    }

    /// Another agent did not need them.
    pub(super) fn reclaim_unused(&mut self, correlation: Uuid, calls: u64) {
        if let Some(counted) = self.0.get_mut(&correlation) {
            counted.spent = counted.spent.saturating_sub(calls);
        }
    }

    /// Another agent gives calls with what it asks for.
    pub(super) fn receive_allotment(&mut self, correlation: Uuid, calls: u64, at: u64) {
        if calls > 0 {
            let counted =
                self.0.entry(correlation).or_insert_with(|| CallBudget { is_asked: true, ..CallBudget::default() });
            counted.allotted = counted.allotted.saturating_add(calls);
            (counted.is_shared, counted.touched) = (true, at);
        }
    }

    /// Returns unneeded calls to the agent that allotted them.
    pub(super) fn return_to_asker(&mut self, correlation: Uuid, calls: u64) {
        if let Some(counted) = self.0.get_mut(&correlation) {
            counted.allotted = counted.allotted.saturating_sub(calls);
        }
    }

    /// Forgets what is over.
    fn forget_finished(&mut self, is_open: impl Fn(Uuid) -> bool) {
        self.0.retain(|correlation, counted| counted.is_shared || is_open(*correlation));
        while self.0.len() > REMEMBERED {
            let over = self.0.iter().filter(|(correlation, _)| !is_open(**correlation));
            let Some(oldest) = over.min_by_key(|(_, counted)| counted.touched).map(|(id, _)| *id) else { return };
            self.0.remove(&oldest);
        }
    }
}

impl Profile {
    /// Calls of models that everything may take that one message sets off.
    pub fn message_model_calls(&self) -> u64 {
        u64::from(if self.message_model_calls == 0 { CALLS } else { self.message_model_calls })
    }
}

impl AgentState {
    /// Returns true if another turn or task than these is open or queued with this correlation.
    pub(super) fn has_other_open_work(&self, correlation: Uuid, turn: Uuid, task: Option<Uuid>) -> bool {
        self.turns.iter().any(|(id, open)| *id != turn && open.correlation == correlation)
            || self.tasks.open.values().any(|open| Some(open.id) != task && open.correlation() == correlation)
    }

    /// The chain of events that a decision belongs to: of the turn that is due or, of a task that it starts, of that.
    pub(super) fn decision_correlation(&self, due: Option<Uuid>, started: Option<&DecidedEvent>) -> Option<Uuid> {
        let of_turn = due.and_then(|id| self.turns.get(&id)).map(|turn| turn.correlation);
        of_turn.or_else(|| started?.correlation_id.parse().ok())
    }

    /// Counts the calls of a decision.
    pub(super) fn count_model_calls(&mut self, correlation: Option<Uuid>, at: u64, decision: &AgentDecision) {
        if let Some(correlation) = correlation {
            let calls = u64::try_from(decision.completions.len()).unwrap_or(u64::MAX);
            self.call_bounds.spend(correlation, calls, at);
        }
    }

    /// After each decision.
    pub(super) fn forget_finished_calls(&mut self) {
        if self.call_bounds.is_nothing() {
            return;
        }
        let of_turns = self.turns.values().map(|turn| turn.correlation);
        let open: BTreeSet<Uuid> = of_turns.chain(self.tasks.open.values().map(Task::correlation)).collect();
        self.call_bounds.forget_finished(|correlation| open.contains(&correlation));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
            /// However agents share calls, all of them together make no more than the first may.
            #[test]
            fn calls_are_never_more_than_the_first_agent_may_make(
                most in 1_u64..200,
                steps in prop::collection::vec((0_usize..4, 0_usize..4, 1_u64..50, any::<bool>()), 1..200),
            ) {
                let message = Uuid::from_u128(1);
                let mut agents = vec![CallBounds::default(); 4];
                agents[0].spend(message, 1, 1);
                let mut made = 1;
    let mut given = Vec::new();
                for (one, other, calls, is_back) in steps {
                    // Whoever was never asked has no calls for this message.
                    let left = |agents: &[CallBounds], at: usize| if agents[at].is_nothing() { 0 } else { agents[at].remaining(message, most) };
                    if is_back && let Some((asker, asked, share)) = given.pop() {
                        let back = left(&agents, asked).min(share);
                        let (asked, asker): (usize, usize) = (asked, asker);
                        agents[asked].return_to_asker(message, back);
                        agents[asker].reclaim_unused(message, back);
                        continue;
                    }
                    let share = calls.min(left(&agents, one));
                    match one == other {
                        true => {
                            agents[one].spend(message, share, 2);
                            made += share;
                        }
                        false if share > 0 => {
                            agents[one].allot_to_agent(message, share, 3);
                            agents[other].receive_allotment(message, share, 4);
                            given.push((one, other, share));
                        }
                        false => {}
                    }
                }
                prop_assert!(made <= most.max(1), "{made} of {most}");
            }
        }

    #[test]
    fn what_is_over_is_forgotten_and_what_others_had_to_do_with_is_remembered_for_a_while() {
        let mut bounds = CallBounds::default();
        bounds.spend(Uuid::from_u128(1), 1, 1);
        bounds.allot_to_agent(Uuid::from_u128(2), 1, 2);
        bounds.spend(Uuid::from_u128(3), 1, 3);
        bounds.forget_finished(|id| id == Uuid::from_u128(3));
        assert_eq!(bounds.0.keys().map(|id| id.as_u128()).collect::<Vec<_>>(), [2, 3]);
        for at in 4..200 {
            bounds.receive_allotment(Uuid::from_u128(at), 5, u64::try_from(at).unwrap());
        }
        bounds.forget_finished(|id| id == Uuid::from_u128(3));
        assert_eq!(bounds.0.len(), REMEMBERED);
        assert!(bounds.0.contains_key(&Uuid::from_u128(3)) && bounds.0.contains_key(&Uuid::from_u128(199)));
    }
}
