//! Guessing what a message is after, and reviewing what is about to be said, where the profile wants it.

use kairo_proto::{
    v1::{AgentGoal, AgentReflected, decided_event::Event},
    words::{ReviewVerdict, TaskStatus},
};
use serde::Deserialize;
use uuid::Uuid;

use super::{
    AnswerFailure, Deliberation, Purpose,
    turn_request::{self, TurnMode},
};
use crate::{
    model_answer::extract_json,
    state::{AgentTurn, TurnCause},
    thread::cut_to,
};

/// Longest reason of a review that is kept, in bytes.
const REASON_BYTES: usize = 4 * 1024;

#[derive(Deserialize)]
struct ReviewAnswer {
    verdict: String,
    #[serde(default)]
    reason: String,
}

impl Deliberation<'_> {
    /// Has a model guess the goal of a message before it is thought about. Returns true if one is asked.
    pub(super) fn guess_goal(&mut self, turn_id: Uuid) -> bool {
        let wants = self.mind.profile.as_ref().is_some_and(|profile| profile.guesses_goal);
        let Some(turn) = self.turn(turn_id).filter(|turn| wants && turn.cause == TurnCause::Message) else {
            return false;
        };
        if !turn.is_new() || turn.goal.is_some() || !self.guessed.insert(turn_id) {
            return false;
        }
        let Some(turn) = self.turn(turn_id) else { return false };
        let request = turn_request::goal(&self.mind, turn);
        if self.is_tier_paused(request.tier) {
            return false;
        }
        self.ask_model(turn_id, Purpose::Goal, request);
        true
    }

    pub(super) fn record_goal(&mut self, turn_id: Uuid, text: &str) -> Result<(), AnswerFailure> {
        if text.trim().is_empty() {
            return Err(AnswerFailure::malformed_answer("expected a sentence"));
        }
        self.add_event(turn_id, Event::Goal(AgentGoal { text: text.trim().to_owned() }));
        self.apply_decided();
        self.think(turn_id, None);
        Ok(())
    }

    /// Returns true if the words that a turn is about to say are reviewed first.
    pub(super) fn is_reviewed(&self, turn_id: Uuid) -> bool {
        let most = self.mind.profile.as_ref().map_or(0, |profile| profile.max_reflections);
        // Of a task with a time the chain is the end, and its words are a notification.
        let reviewed = |turn: &AgentTurn| {
            let is_of_task = matches!(turn.cause, TurnCause::Task(_));
            turn.reflections < most && !is_of_task && !turn.is_aside() && self.mode_of(turn) != TurnMode::Acknowledge
        };
        self.turn(turn_id).is_some_and(reviewed)
    }

    /// A turn is about to end with words.
    pub(super) fn review_or_conclude(&mut self, turn_id: Uuid, text: &str) {
        if !self.is_reviewed(turn_id) {
            return self.conclude(turn_id, text, &TaskStatus::Completed);
        }
        // Of a chain, its end.
        self.apply_decided();
        let request = self.turn(turn_id).map(|turn| turn_request::review(&self.mind, turn, text));
        if let Some(request) = request {
            self.ask_model(turn_id, Purpose::Reflect { draft: text.to_owned() }, request);
        }
    }

    /// Acts on the review of a draft: the draft is said, or the turn thinks again.
    pub(super) fn act_on_review(&mut self, turn_id: Uuid, draft: &str, text: &str) -> Result<(), AnswerFailure> {
        let value = extract_json(text).map_err(AnswerFailure::malformed_answer)?;
        let review: ReviewAnswer = serde_json::from_value(value)
            .map_err(|error| AnswerFailure::malformed_answer(format!("expected a verdict: {error}")))?;
        let verdict = ReviewVerdict::from(review.verdict.as_str());
        let is_finished = match verdict {
            ReviewVerdict::Finished => true,
            ReviewVerdict::Revise | ReviewVerdict::Act if !review.reason.trim().is_empty() => false,
            ReviewVerdict::Revise | ReviewVerdict::Act => {
                return Err(AnswerFailure::malformed_answer("the reason is missing"));
            }
            ReviewVerdict::Unknown(other) => {
                return Err(AnswerFailure::malformed_answer(format!(
                    "the verdict {other:?} is none: finished, revise or act"
                )));
            }
        };
        let round = self.turn(turn_id).map_or(0, |turn| turn.reflections) + 1;
        let reason = cut_to(review.reason.trim(), REASON_BYTES);
        let reflected = AgentReflected { verdict: review.verdict, reason, draft: draft.to_owned(), round };
        self.add_event(turn_id, Event::Reflected(reflected));
        self.apply_decided();
        match is_finished {
            true => self.conclude(turn_id, draft, &TaskStatus::Completed),
            false => self.think(turn_id, None),
        }
        Ok(())
    }
}
