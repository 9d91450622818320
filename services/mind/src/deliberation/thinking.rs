//! `agent.think`: asking the heavy model, and what its answer means.

use kairo_proto::v1::Completion;
use kairo_proto::words::{ChainOutcome, StepState as Ended};
use serde_json::json;
use uuid::Uuid;

use super::{
    Asked, Deliberation, Failure, Purpose,
    planning::Planning,
    turn_request::{self, Thinking},
};
use crate::{
    answer::{self, Answer, AskedCall},
    chain::{Origin, Step, THINK},
    intrinsics::threads,
    state::Cause,
};

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
        };
        let request = turn_request::think(&self.mind, &thinking, self.catalogue);
        let request = Self::with_client(turn, thinking.may_call, request);
        if self.compacts(turn_id, step, &request) {
            return;
        }
        let Some(turn) = self.turn(turn_id) else { return };
        // What is done so far is summed up while the last step of a plan is thought about.
        let planned = turn.chain.as_ref().is_some_and(|chain| chain.origin == Origin::Plan);
        let summarize = (planned && prompt.is_none()).then(|| threads::request(&self.mind, &turn.thread_id)).flatten();
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
        let read = answer::read(&asked.question.request, completion, self.limits.parallel_tools);
        let answer =
            read.map_err(|flaw| Failure { kind: flaw.kind.to_owned(), message: flaw.message, mendable: true })?;
        let answer = self.as_client_wants(asked, answer)?;
        let analysis = step.is_some_and(|step| self.prompt_of(turn_id, step).is_some());
        if let Some(step) = step {
            let result = match &answer {
                Answer::Say(text) if analysis => json!({ "analysis": text }),
                _ => json!({}),
            };
            self.settle();
            self.end_step(turn_id, step, &Ended::Done, result, "");
            match (&answer, analysis) {
                (Answer::Say(_), true) => {
                    self.work.push_back(turn_id);
                    return Ok(());
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
        }
        if let (Answer::Call { words, calls }, None) = (&answer, step)
            && self.acknowledged(asked, words, calls)?
        {
            return Ok(());
        }
        match answer {
            Answer::Say(text) => self.draft(turn_id, &text),
            Answer::Plan(plan) => self.plan(turn_id, Planning { plan }),
            Answer::Call { words, mut calls } => {
                if self.hands_over(turn_id, &words, &mut calls, completion) {
                    return Ok(());
                }
                self.call_all(turn_id, &words, calls, completion.reasoning_details.clone());
            }
        }
        Ok(())
    }

    /// Calls of a model that calls tools itself. Where nothing but a tool-runner is needed they stand for themselves, else
    /// they are a chain: intrinsics, hooks before a call, and consent.
    fn call_all(&mut self, turn_id: Uuid, words: &str, calls: Vec<AskedCall>, mut details: String) {
        if !words.is_empty() {
            self.say(turn_id, words, false);
        }
        let user = self.turn(turn_id).map(|turn| turn.user.as_str()).unwrap_or_default();
        let plain = |call: &AskedCall| {
            let tool = self.catalogue.tool(&call.tool);
            tool.is_some_and(|tool| !self.needs_consent(turn_id, tool, &call.arguments))
                && self.passed_on(turn_id, &call.tool, &call.arguments).is_none_or(|ask| ask.is_ok())
                && !self.is_withdrawal(&call.tool, &call.arguments)
                && self.mind.tasks.hooks_of(&format!("pre:{}", call.tool), user).next().is_none()
        };
        let within_task = self.turn(turn_id).is_some_and(|turn| turn.chain.is_some());
        if calls.iter().all(plain) && !within_task {
            for call in calls {
                let details = std::mem::take(&mut details);
                self.call_with(turn_id, None, &call.tool, call.arguments, None, details);
            }
            return;
        }
        let step = |call: AskedCall| Step {
            group: 0,
            event: call.tool,
            params: serde_json::from_str(&call.arguments).unwrap_or_default(),
            decide: None,
        };
        let mut steps: Vec<Step> = calls.into_iter().map(step).collect();
        steps.push(Step { group: 1, event: THINK.to_owned(), params: serde_json::Map::new(), decide: None });
        self.start_chain(turn_id, Origin::Calls, "", None, &steps);
    }

    /// What a thinking step is to analyse; none if it is to answer. A reference to nothing stays as it is: the model sees
    /// the results anyway.
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
