//! `agent.think`: asking the heavy model, and what its answer means.

use kairo_proto::v1::Completion;
use kairo_proto::words::{AnswerEnding, ChainOutcome, StepState as Ended};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    AnswerFailure, AwaitedAnswer, Deliberation, Purpose,
    answer_calls::AnswerCalls,
    answer_endings::AnswerReading,
    planning::PendingPlan,
    turn_request::{self, TurnRequestInputs},
};
use crate::{chain::Origin, intrinsics::threads, model_answer::ModelAnswer, state::TurnCause};

/// Agents that plan stop planning when so many heavy answers are left to the turn.
const LAST_STEPS: u32 = 1;

impl Deliberation<'_> {
    /// Asks what to do, or within a chain what to make of its results.
    pub(super) fn think(&mut self, turn_id: Uuid, step: Option<usize>) {
        if self.stop_if_over_bounds(turn_id) {
            return;
        }
        if self.answer_aside(turn_id) {
            return;
        }
        if step.is_none() {
            self.announce_thread(turn_id);
            self.join_earlier_messages(turn_id);
            if self.begin_perception(turn_id) || self.guess_goal(turn_id) {
                return;
            }
        }
        if self.ask_submodules(turn_id, step) {
            return;
        }
        let Some(turn) = self.turn(turn_id) else { return };
        let prompt = step.and_then(|step| self.prompt_of(turn_id, step));
        let thinking = TurnRequestInputs {
            turn_id,
            turn,
            mode: self.mode_of(turn),
            may_call: turn.steps + self.thought_count(turn) + LAST_STEPS < self.max_steps(),
            prompt: prompt.as_deref(),
            plans: self.is_planner(),
            now: self.input.envelope.time,
            listing: self.limits.listing,
            memory_rules: self.limits.memory_rules,
        };
        let request = turn_request::think(&self.mind, &thinking, self.catalogue);
        let request = Self::with_client_wishes(turn, thinking.may_call, request);
        if self.compact_if_needed(turn_id, step, &request) {
            return;
        }
        let Some(turn) = self.turn(turn_id) else { return };
        // What is done so far is summed up while the last step of a plan is thought about.
        let planned = turn.chain.as_ref().is_some_and(|chain| chain.origin == Origin::Plan);
        let summarize = (planned && prompt.is_none() && !self.is_tier_paused("fast"))
            .then(|| threads::summary_request(&self.mind, &turn.thread_id))
            .flatten();
        let thread_id = turn.thread_id.clone();
        self.ask_model(turn_id, Purpose::Think { step }, request);
        if let Some(request) = summarize {
            self.ask_model(turn_id, Purpose::Summarize { thread_id }, request);
        }
    }

    /// Goes on with what the model thought.
    pub(super) fn act_on_thought(
        &mut self,
        asked: &AwaitedAnswer,
        step: Option<usize>,
        completion: &Completion,
    ) -> Result<(), AnswerFailure> {
        let turn_id = asked.turn;
        let AnswerReading::Answer(answer, ending) = self.read_answer(asked, completion)? else { return Ok(()) };
        let answer = if ending.is_none() { self.fit_answer_to_client(asked, answer)? } else { answer };
        if let Some(step) = step
            && self.end_thinking_step(turn_id, step, &answer, ending.as_ref())
        {
            return Ok(());
        }
        if let (ModelAnswer::Call { words, calls }, None) = (&answer, step)
            && self.queue_and_acknowledge(asked, words, calls)?
        {
            return Ok(());
        }
        match (answer, ending) {
            (ModelAnswer::Say(text), None) if self.check_for_promise(turn_id, &text) => {}
            (ModelAnswer::Say(text), None) => self.review_or_conclude(turn_id, &text),
            (ModelAnswer::Say(text), Some(ending)) => {
                self.apply_decided();
                self.conclude_with_ending(turn_id, &text, &ending);
            }
            (ModelAnswer::Plan(plan), _) => self.compile_plan(turn_id, PendingPlan { plan }),
            (ModelAnswer::Call { words, mut calls }, _) => {
                if !self.hand_calls_to_client(turn_id, &words, &mut calls, completion) {
                    self.make_calls(turn_id, AnswerCalls::from_completion(completion, words, calls));
                }
            }
        }
        Ok(())
    }

    /// A thinking step of a chain is over with this answer. Whether the chain goes on.
    fn end_thinking_step(
        &mut self,
        turn_id: Uuid,
        step: usize,
        answer: &ModelAnswer,
        ending: Option<&AnswerEnding>,
    ) -> bool {
        let is_analysis = self.prompt_of(turn_id, step).is_some();
        let is_withheld = matches!(ending, Some(AnswerEnding::Refused | AnswerEnding::Filtered));
        self.apply_decided();
        match answer {
            ModelAnswer::Say(text) if is_analysis && is_withheld => {
                self.end_step(turn_id, step, &Ended::Failed, Value::Null, text);
            }
            ModelAnswer::Say(text) if is_analysis => {
                self.end_step(turn_id, step, &Ended::Done, json!({ "analysis": text }), "");
            }
            ModelAnswer::Say(_) | ModelAnswer::Plan(_) | ModelAnswer::Call { .. } => {
                self.end_step(turn_id, step, &Ended::Done, json!({}), "");
            }
        }
        match (answer, is_analysis) {
            (ModelAnswer::Say(_), true) => {
                self.work.push_back(turn_id);
                return true;
            }
            // It knows better by now how to go on.
            (ModelAnswer::Plan(_) | ModelAnswer::Call { .. }, true) => {
                self.end_chain_of(turn_id, &ChainOutcome::Replaced, "")
            }
            (ModelAnswer::Say(_), false) => self.end_chain_of(turn_id, &ChainOutcome::Done, ""),
            // The turn of a task is over with its chain, unless another one takes its place.
            (ModelAnswer::Plan(_) | ModelAnswer::Call { .. }, false) => {
                let is_task = self.turn(turn_id).is_some_and(|turn| matches!(turn.cause, TurnCause::Task(_)));
                self.end_chain_of(turn_id, if is_task { &ChainOutcome::Replaced } else { &ChainOutcome::Done }, "");
            }
        }
        false
    }

    /// Returns the prompt that a thinking step is to analyse; none if it is to answer. A reference to nothing stays as
    /// it is: the model sees the results anyway.
    fn prompt_of(&self, turn_id: Uuid, at: usize) -> Option<String> {
        let step = &self.turn(turn_id)?.chain.as_ref()?.steps.get(at)?.step;
        let params = self.fill_params(turn_id, step).unwrap_or_else(|_| step.params.clone());
        let prompt = params.get("prompt")?.as_str()?;
        (!prompt.trim().is_empty()).then(|| prompt.to_owned())
    }

    fn max_steps(&self) -> u32 {
        let own = self.mind.profile.as_ref().map_or(0, |profile| profile.max_steps);
        if own == 0 { self.limits.max_steps } else { own }
    }
}
