//! Guessing what a message is after, and reviewing what is about to be said, where the profile wants it.

use kairo_proto::{
    v1::{AgentGoal, AgentReflected, decided_event::Event},
    words::{ReviewVerdict, TaskStatus},
};
use serde::Deserialize;
use uuid::Uuid;

use super::{
    Deliberation, Failure, Purpose,
    turn_request::{self, Manner},
};
use crate::{
    answer::json_in,
    state::{Cause, Turn},
    thread::cut_to,
};

/// Longest reason of a review that is kept, in bytes.
const REASON_BYTES: usize = 4 * 1024;

#[derive(Deserialize)]
struct Review {
    verdict: String,
    #[serde(default)]
    reason: String,
}

impl Deliberation<'_> {
    /// Has a model guess the goal of a message before it is thought about. Returns true if one is asked.
    pub(super) fn guesses(&mut self, turn_id: Uuid) -> bool {
        let wants = self.mind.profile.as_ref().is_some_and(|profile| profile.guesses_goal);
        let Some(turn) = self.turn(turn_id).filter(|turn| wants && turn.cause == Cause::Message) else { return false };
        if !turn.is_new() || turn.goal.is_some() || !self.guessed.insert(turn_id) {
            return false;
        }
        let Some(turn) = self.turn(turn_id) else { return false };
        let request = turn_request::goal(&self.mind, turn);
        if self.rests(request.tier) {
            return false;
        }
        self.ask(turn_id, Purpose::Goal, request);
        true
    }

    pub(super) fn guessed(&mut self, turn_id: Uuid, text: &str) -> Result<(), Failure> {
        if text.trim().is_empty() {
            return Err(Failure::malformed("expected a sentence"));
        }
        self.add(turn_id, Event::Goal(AgentGoal { text: text.trim().to_owned() }));
        self.settle();
        self.think(turn_id, None);
        Ok(())
    }

    /// Returns true if the words that a turn is about to say are reviewed first.
    pub(super) fn is_reviewed(&self, turn_id: Uuid) -> bool {
        let most = self.mind.profile.as_ref().map_or(0, |profile| profile.max_reflections);
        // Of a task with a time the chain is the end, and its words are a notification.
        let reviewed = |turn: &Turn| {
            let is_of_task = matches!(turn.cause, Cause::Task(_));
            turn.reflections < most && !is_of_task && !turn.is_aside() && self.manner(turn) != Manner::Acknowledge
        };
        self.turn(turn_id).is_some_and(reviewed)
    }

    /// A turn is about to end with words.
    pub(super) fn draft(&mut self, turn_id: Uuid, text: &str) {
        if !self.is_reviewed(turn_id) {
            return self.conclude(turn_id, text, &TaskStatus::Completed);
        }
        // Of a chain, its end.
        self.settle();
        let request = self.turn(turn_id).map(|turn| turn_request::review(&self.mind, turn, text));
        if let Some(request) = request {
            self.ask(turn_id, Purpose::Reflect { draft: text.to_owned() }, request);
        }
    }

    /// Acts on the review of a draft: the draft is said, or the turn thinks again.
    pub(super) fn reviewed(&mut self, turn_id: Uuid, draft: &str, text: &str) -> Result<(), Failure> {
        let value = json_in(text).map_err(Failure::malformed)?;
        let review: Review = serde_json::from_value(value)
            .map_err(|error| Failure::malformed(format!("expected a verdict: {error}")))?;
        let verdict = ReviewVerdict::from(review.verdict.as_str());
        let is_finished = match verdict {
            ReviewVerdict::Finished => true,
            ReviewVerdict::Revise | ReviewVerdict::Act if !review.reason.trim().is_empty() => false,
            ReviewVerdict::Revise | ReviewVerdict::Act => return Err(Failure::malformed("the reason is missing")),
            ReviewVerdict::Unknown(other) => {
                return Err(Failure::malformed(format!("the verdict {other:?} is none: finished, revise or act")));
            }
        };
        let round = self.turn(turn_id).map_or(0, |turn| turn.reflections) + 1;
        let reason = cut_to(review.reason.trim(), REASON_BYTES);
        let reflected = AgentReflected { verdict: review.verdict, reason, draft: draft.to_owned(), round };
        self.add(turn_id, Event::Reflected(reflected));
        self.settle();
        match is_finished {
            true => self.conclude(turn_id, draft, &TaskStatus::Completed),
            false => self.think(turn_id, None),
        }
        Ok(())
    }
}
