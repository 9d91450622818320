//! Content seen by an agent that none of its users wrote, and the sources of that content.
//!
//! The marks stand in the log, on what brings such content in: results, progress, mails and events of other systems. They
//! stay with the thread and the turn that saw it, and go into the memories and tasks that are made there.

use std::collections::BTreeSet;

use kairo_events::outside;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::state::{AgentState, AgentTurn};

/// The sources of content from outside; empty if there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Provenance(BTreeSet<String>);

impl Provenance {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes in these, as far as there is room.
    pub fn add_marks<M: AsRef<str>>(&mut self, marks: impl IntoIterator<Item = M>) {
        for mark in marks {
            if self.0.len() < outside::MOST {
                self.0.insert(mark.as_ref().to_owned());
            }
        }
    }

    /// These and those.
    #[must_use]
    pub fn merge(mut self, other: &Self) -> Self {
        self.add_marks(&other.0);
        self
    }

    pub fn marks(&self) -> Vec<String> {
        self.0.iter().cloned().collect()
    }
}

impl AgentState {
    /// Returns the sources of outside content that this turn has seen, itself or earlier in its thread.
    pub fn provenance_of(&self, turn: &AgentTurn) -> Provenance {
        let thread = self.threads.get(&turn.thread_id).map(|thread| thread.outside.clone());
        thread.unwrap_or_default().merge(&turn.outside)
    }

    /// A thread and a turn in it have seen content from there.
    pub(super) fn mark_outside(&mut self, thread_id: &str, turn: Uuid, marks: &[String]) {
        if marks.is_empty() {
            return;
        }
        if let Some(thread) = self.threads.get_mut(thread_id) {
            thread.outside.add_marks(marks);
        }
        if let Some(turn) = self.turns.get_mut(&turn) {
            turn.outside.add_marks(marks);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_bounded() {
        let mut seen = Provenance::default();
        assert!(seen.is_empty());
        seen.add_marks((0..100).map(|at| format!("web:{at}")));
        assert_eq!(seen.marks().len(), outside::MOST);
        assert_eq!(Provenance::default().merge(&seen), seen);
        assert_eq!(serde_json::to_value(Provenance::default()).unwrap(), serde_json::json!([]));
    }
}
