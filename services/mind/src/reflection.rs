//! What a turn seems to be after, and what reviews said of what it was about to say. Folded from the log.

use kairo_events::record::Record;
use kairo_proto::{
    v1::{AgentGoal, AgentReflected, DecidedEvent},
    words::ReviewVerdict,
};
use uuid::Uuid;

use super::{
    state::AgentState,
    thread::{Entry, cut, cut_to},
};

/// What is kept of a goal, in bytes.
const GOAL_BYTES: usize = 1_024;

impl AgentState {
    pub(super) fn goal_guessed(&mut self, turn_id: Uuid, goal: &AgentGoal) {
        if let Some(turn) = self.turns.get_mut(&turn_id) {
            turn.goal = Some(cut_to(&goal.text, GOAL_BYTES));
        }
    }

    /// What is not said stays in the thread, with what the review says of it: the model goes on from there.
    pub(super) fn reflected(&mut self, record: &Record, event: &DecidedEvent, turn_id: Uuid, told: &AgentReflected) {
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
        self.add(record.sequence, &event.thread_id, Entry::Notice { turn: turn_id, text: cut(&text) });
    }
}
