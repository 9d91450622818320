//! Guessed goals of turns, and reviews of their drafts. Built from the log.

use kairo_events::record::Record;
use kairo_proto::{
    v1::{AgentGoal, AgentReflected, DecidedEvent},
    words::ReviewVerdict,
};
use uuid::Uuid;

use super::{
    state::AgentState,
    thread::{ThreadEntry, cut_to, cut_to_entry},
};

/// Maximum size of a kept goal, in bytes.
const GOAL_BYTES: usize = 1_024;

impl AgentState {
    pub(super) fn apply_goal(&mut self, turn_id: Uuid, goal: &AgentGoal) {
        if let Some(turn) = self.turns.get_mut(&turn_id) {
            turn.goal = Some(cut_to(&goal.text, GOAL_BYTES));
        }
    }

    /// Keeps a rejected draft in the thread, with the review: the model goes on from there.
    pub(super) fn apply_reflection(
        &mut self,
        record: &Record,
        event: &DecidedEvent,
        turn_id: Uuid,
        told: &AgentReflected,
    ) {
        let Some(turn) = self.turns.get_mut(&turn_id) else { return };
        turn.reflections = told.round;
        let what_now = match told.verdict_word() {
            ReviewVerdict::Revise => "Write the answer anew",
            ReviewVerdict::Act => "Do first what it says is missing, then answer",
            ReviewVerdict::Finished | ReviewVerdict::Unknown(_) => return,
        };
        let AgentReflected { draft, reason, .. } = told;
        let text = format!(
            "You were about to answer, and the user has not seen it: {draft}\nA review says: {reason}\n{what_now}."
        );
        self.add_entry(
            record.sequence,
            &event.thread_id,
            ThreadEntry::Notice { turn: turn_id, text: cut_to_entry(&text) },
        );
    }
}
