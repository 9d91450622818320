//! `agent.think`: asking the heavy model, and what its answer means.

use kairo_proto::v1::Completion;
use kairo_proto::words::{AnswerEnding, ChainOutcome, StepState as Ended};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Asked, Deliberation, Failure, Purpose,
    calling::Calls,
    endings::Heard,
    planning::Planning,
    turn_request::{self, Thinking},
};
use crate::{answer::Answer, chain::Origin, intrinsics::threads, state::Cause};

/// Agents that plan stop planning when so many heavy answers are left to the turn.
const LAST_STEPS: u32 = 1;

impl Deliberation<'_> {
    /// Asks what to do, or within a chain what to make of its results.
    pub(super) fn think(&mut self, turn_id: Uuid, step: Option<usize>) {
        if self.is_over_bounds(turn_id) {
            return;
        }
        if self.answers_aside(turn_id) {
            return;
        }
        if step.is_none() {
            self.announce_thread(turn_id);
            self.join(turn_id);
            if self.perceives(turn_id) || self.guesses(turn_id) {
                return;
            }
        }
        if self.thinks_along(turn_id, step) {
            return;
        }
        let Some(turn) = self.turn(turn_id) else { return };
        let prompt = step.and_then(|step| self.prompt_of(turn_id, step));
        let thinking = Thinking {
            turn_id,
            turn,
            manner: self.manner(turn),
            may_call: turn.steps + self.thoughts(turn) + LAST_STEPS < self.max_steps(),
            prompt: prompt.as_deref(),
            plans: self.plans(),
            now: self.input.envelope.time,
            listing: self.limits.listing,
            memory_rules: self.limits.memory_rules,
        };
        let request = turn_request::think(&self.mind, &thinking, self.catalogue);
        let request = Self::with_client(turn, thinking.may_call, request);
        if self.compacts(turn_id, step, &request) {
            return;
        }
        let Some(turn) = self.turn(turn_id) else { return };
        // What is done so far is summed up while the last step of a plan is thought about.
        let planned = turn.chain.as_ref().is_some_and(|chain| chain.origin == Origin::Plan);
        let summarize = (planned && prompt.is_none() && !self.rests("fast"))
            .then(|| threads::request(&self.mind, &turn.thread_id))
            .flatten();
        let thread_id = turn.thread_id.clone();
        self.ask(turn_id, Purpose::Think { step }, request);
        if let Some(request) = summarize {
            self.ask(turn_id, Purpose::Summarize { thread_id }, request);
        }
    }

    /// Goes on with what the model thought.
    pub(super) fn thought_out(
        &mut self,
        asked: &Asked,
        step: Option<usize>,
        completion: &Completion,
    ) -> Result<(), Failure> {
        let turn_id = asked.turn;
        let Heard::Answer(answer, ending) = self.heard(asked, completion)? else { return Ok(()) };
        let answer = if ending.is_none() { self.as_client_wants(asked, answer)? } else { answer };
        if let Some(step) = step
            && self.end_thinking(turn_id, step, &answer, ending.as_ref())
        {
            return Ok(());
        }
        if let (Answer::Call { words, calls }, None) = (&answer, step)
            && self.acknowledged(asked, words, calls)?
        {
            return Ok(());
        }
        match (answer, ending) {
            (Answer::Say(text), None) if self.looks_for_promises(turn_id, &text) => {}
            (Answer::Say(text), None) => self.draft(turn_id, &text),
            (Answer::Say(text), Some(ending)) => {
                self.settle();
                self.conclude_ended(turn_id, &text, &ending);
            }
            (Answer::Plan(plan), _) => self.plan(turn_id, Planning { plan }),
            (Answer::Call { words, mut calls }, _) => {
                if !self.hands_over(turn_id, &words, &mut calls, completion) {
                    self.call_all(turn_id, Calls::of(completion, words, calls));
                }
            }
        }
        Ok(())
    }

    /// A thinking step of a chain is over with this answer. Whether the chain goes on.
    fn end_thinking(&mut self, turn_id: Uuid, step: usize, answer: &Answer, ending: Option<&AnswerEnding>) -> bool {
        let is_analysis = self.prompt_of(turn_id, step).is_some();
        let is_withheld = matches!(ending, Some(AnswerEnding::Refused | AnswerEnding::Filtered));
        self.settle();
        match answer {
            Answer::Say(text) if is_analysis && is_withheld => {
                self.end_step(turn_id, step, &Ended::Failed, Value::Null, text);
            }
            Answer::Say(text) if is_analysis => {
                self.end_step(turn_id, step, &Ended::Done, json!({ "analysis": text }), "");
            }
            Answer::Say(_) | Answer::Plan(_) | Answer::Call { .. } => {
                self.end_step(turn_id, step, &Ended::Done, json!({}), "");
            }
        }
        match (answer, is_analysis) {
            (Answer::Say(_), true) => {
                self.work.push_back(turn_id);
                return true;
            }
            // It knows better by now how to go on.
            (Answer::Plan(_) | Answer::Call { .. }, true) => self.close_chain(turn_id, &ChainOutcome::Replaced, ""),
            (Answer::Say(_), false) => self.close_chain(turn_id, &ChainOutcome::Done, ""),
            // The turn of a task is over with its chain, unless another one takes its place.
            (Answer::Plan(_) | Answer::Call { .. }, false) => {
                let is_task = self.turn(turn_id).is_some_and(|turn| matches!(turn.cause, Cause::Task(_)));
                self.close_chain(turn_id, if is_task { &ChainOutcome::Replaced } else { &ChainOutcome::Done }, "");
            }
        }
        false
    }

    /// Returns the prompt that a thinking step is to analyse; none if it is to answer. A reference to nothing stays as
    /// it is: the model sees the results anyway.
    fn prompt_of(&self, turn_id: Uuid, at: usize) -> Option<String> {
        let step = &self.turn(turn_id)?.chain.as_ref()?.steps.get(at)?.step;
        let params = self.fill(turn_id, step).unwrap_or_else(|_| step.params.clone());
        let prompt = params.get("prompt")?.as_str()?;
        (!prompt.trim().is_empty()).then(|| prompt.to_owned())
    }

    fn max_steps(&self) -> u32 {
        let own = self.mind.profile.as_ref().map_or(0, |profile| profile.max_steps);
        if own == 0 { self.limits.max_steps } else { own }
    }
}
