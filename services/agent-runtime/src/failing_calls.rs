//! Readiness notes, shown by `kairo status`, on agents that work without summaries, lessons or submodules because the
//! model calls for these have been failing.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use kairo_core::{ids::Name, service::Readiness};
use kairo_mind::state::AgentState;

/// The subject of the readiness notes.
const ABOUT: &str = "failing calls";
/// Agents named at most; the rest are only counted.
const NAMED: usize = 20;

/// By partition and agent, what failed and in how many decisions in a row.
type Failures = BTreeMap<(u32, Name), BTreeMap<String, u32>>;

/// Failing calls of all agents of this replica.
#[derive(Clone)]
pub struct FailingCalls {
    readiness: Readiness,
    known: Arc<Mutex<Failures>>,
}

/// Failing calls of the agents of one partition, kept while the partition is owned.
pub struct PartitionFailures {
    all: FailingCalls,
    partition: u32,
}

impl FailingCalls {
    pub fn new(readiness: Readiness) -> Self {
        Self { readiness, known: Arc::default() }
    }

    pub fn for_partition(&self, partition: u32) -> PartitionFailures {
        PartitionFailures { all: self.clone(), partition }
    }

    fn update(&self, change: impl FnOnce(&mut Failures) -> bool) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if change(&mut known) {
            self.readiness.set_notes(ABOUT, notes(&known));
        }
    }
}

impl PartitionFailures {
    /// After a decision of this agent.
    pub fn record_decision(&self, agent: &Name, state: &AgentState) {
        // Turns that need the heavy model end with its failure, which is told.
        let beside = state.models.failing().iter().filter(|(what, _)| *what != "heavy");
        let failing: BTreeMap<String, u32> = beside.map(|(what, failing)| (what.clone(), failing.decisions)).collect();
        self.all.update(|known| {
            let key = (self.partition, agent.clone());
            match failing.is_empty() {
                true => known.remove(&key).is_some(),
                false => known.insert(key, failing.clone()).as_ref() != Some(&failing),
            }
        });
    }
}

impl Drop for PartitionFailures {
    fn drop(&mut self) {
        self.all.update(|known| {
            let before = known.len();
            known.retain(|(partition, _), _| *partition != self.partition);
            known.len() < before
        });
    }
}

fn notes(known: &Failures) -> Vec<String> {
    let line = |((_, agent), failing): (&(u32, Name), &BTreeMap<String, u32>)| {
        let each = failing.iter().map(|(what, decisions)| match decisions {
            1 => format!("{what} (1 decision)"),
            decisions => format!("{what} ({decisions} decisions in a row)"),
        });
        let each = each.collect::<Vec<_>>().join(", ");
        format!("the agent {agent} does without what these models are for, as they failed lately: {each}")
    };
    let more = known.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("{more} more agents do without what models are for that failed lately"));
    known.iter().take(NAMED).map(line).chain(more).collect()
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::{AgentDecision, Completion, CompletionError};

    use super::*;

    fn failed(agent: &mut AgentState, tier: &str, is_failed: bool) {
        let error = is_failed.then(CompletionError::default);
        let completion = Completion { tier: tier.into(), text: "words".into(), error, ..Default::default() };
        agent.models.apply_answers(&AgentDecision { completions: vec![completion], ..Default::default() });
    }

    #[test]
    fn operators_are_told_what_fails_until_it_answers_or_the_partition_is_elsewhere() {
        let readiness = Readiness::silent();
        let all = FailingCalls::new(readiness.clone());
        let one = all.for_partition(1);
        let other = all.for_partition(2);
        let ann = Name::parse("ann").unwrap();
        let bob = Name::parse("bob").unwrap();
        let mut agent = AgentState::default();
        failed(&mut agent, "light", true);
        failed(&mut agent, "light", true);
        failed(&mut agent, "heavy", true);
        one.record_decision(&ann, &agent);
        other.record_decision(&bob, &agent);
        let notes = readiness.notes();
        assert_eq!(notes.len(), 2);
        assert!(notes[0].contains("the agent ann") && notes[0].ends_with("light (2 decisions in a row)"), "{notes:?}");
        failed(&mut agent, "light", false);
        one.record_decision(&ann, &agent);
        assert_eq!(readiness.notes().len(), 1);
        drop(other);
        assert_eq!(readiness.notes(), [""; 0]);
    }
}
