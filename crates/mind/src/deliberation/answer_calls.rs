//! Calls that a model makes: by themselves or as a chain, with the ids by which the model knows them and what its server wants back.

use std::collections::BTreeSet;

use kairo_events::ids;
use kairo_proto::v1::Completion;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Deliberation, decision_events::saturating_index};
use crate::{
    chain::{Origin, StepSpec, THINK},
    model_answer::ModelToolCall,
    request::{is_call_id, short_call_id},
    thread::ThreadEntry,
};

/// Data that goes back to the model server with a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallPassback {
    /// The id by which the model knows the call; empty where no model made it.
    pub call_id: String,
    /// Fields of the call: a JSON object as text.
    pub passed_back: String,
    /// Fields of the answer, with the first of its calls: a JSON object as text.
    pub answer_passed_back: String,
    /// As in `Completion.reasoning_details`, with the first of its calls.
    pub reasoning_details: String,
}

/// The calls of one answer.
pub(super) struct AnswerCalls {
    pub(super) words: String,
    pub(super) calls: Vec<ModelToolCall>,
    /// As in the `Completion`.
    pub(super) passed_back: String,
    pub(super) reasoning_details: String,
}

impl AnswerCalls {
    pub(super) fn from_completion(completion: &Completion, words: String, calls: Vec<ModelToolCall>) -> Self {
        let passed_back = completion.passed_back.clone();
        let reasoning_details = completion.reasoning_details.clone();
        Self { words, calls, passed_back, reasoning_details }
    }

    /// Everything that goes back with a chain, which has one field for it.
    fn passed_back_with_chain(&self) -> String {
        let Ok(details) = serde_json::from_str::<Value>(&self.reasoning_details) else {
            return self.passed_back.clone();
        };
        let mut fields: Map<String, Value> = serde_json::from_str(&self.passed_back).unwrap_or_default();
        fields.insert("reasoning_details".to_owned(), details);
        Value::Object(fields).to_string()
    }

    fn has_passback(&self) -> bool {
        !self.passed_back.is_empty() || self.calls.iter().any(|call| !call.passed_back.is_empty())
    }
}

impl Deliberation<'_> {
    /// Calls of a model that calls tools itself. Where nothing but a tool-runner is needed they stand for themselves, else
    /// they are a chain: intrinsics, hooks before a call, consent, and more calls than may run at once.
    pub(super) fn make_calls(&mut self, turn_id: Uuid, mut made: AnswerCalls) {
        if !made.words.is_empty() {
            self.say(turn_id, &made.words, false);
        }
        self.assign_call_ids(turn_id, &mut made);
        let is_in_chain = self.turn(turn_id).is_some_and(|turn| turn.chain.is_some());
        let is_few = made.calls.len() <= self.limits.parallel_tools;
        if is_few && !is_in_chain && made.calls.iter().all(|call| self.can_call_directly(turn_id, &made, call)) {
            return self.call_directly(turn_id, made);
        }
        let most = self.limits.parallel_tools.max(1);
        let passed_back = made.passed_back_with_chain();
        let backs: Vec<CallPassback> = made.calls.iter().map(|call| passback_of(call, &passed_back)).collect();
        let step = |(at, call): (usize, ModelToolCall)| StepSpec {
            group: saturating_index(at / most),
            event: call.tool,
            params: serde_json::from_str(&call.arguments).unwrap_or_default(),
            decide: None,
        };
        let mut steps: Vec<StepSpec> = made.calls.into_iter().enumerate().map(step).collect();
        let group = steps.last().map_or(0, |last| last.group) + 1;
        steps.push(StepSpec { group, event: THINK.to_owned(), params: Map::new(), decide: None });
        self.start_chain_with_passbacks(turn_id, Origin::Calls, "", None, &steps, &backs);
    }

    /// Returns true if a call can be made without a chain: it needs no consent, stops no other agent's work and has no
    /// hook before it.
    fn can_call_directly(&self, turn_id: Uuid, made: &AnswerCalls, call: &ModelToolCall) -> bool {
        let user = self.turn(turn_id).map(|turn| turn.user.as_str()).unwrap_or_default();
        let asked = self.member_request_for(turn_id, &call.tool, &call.arguments);
        let tool = self.catalogue.tool(&call.tool);
        tool.is_some_and(|tool| !self.needs_approval(turn_id, tool, &call.arguments))
            // What another agent is asked has no room for what goes back with the call; a chain has.
            && asked.is_none_or(|ask| ask.is_ok() && !made.has_passback())
            && !self.is_withdrawal(&call.tool, &call.arguments)
            && self.mind.tasks.hooks_of(&format!("pre:{}", call.tool), user).next().is_none()
    }

    fn call_directly(&mut self, turn_id: Uuid, made: AnswerCalls) {
        let AnswerCalls { calls, mut passed_back, mut reasoning_details, .. } = made;
        for call in calls {
            let back = CallPassback {
                reasoning_details: std::mem::take(&mut reasoning_details),
                ..passback_of(&call, &std::mem::take(&mut passed_back))
            };
            self.call_tool_with(turn_id, None, &call.tool, call.arguments, None, back);
        }
    }

    /// Gives each call the id by which requests name it: the model's own where that can stand in a request and is new to the
    /// thread. Answers of before epoch 10, which do not say how they ended, have none.
    fn assign_call_ids(&self, turn_id: Uuid, made: &mut AnswerCalls) {
        let completion = self.decision.completions.last();
        if completion.is_none_or(|completion| completion.ending.is_empty()) {
            made.calls.iter_mut().for_each(|call| call.call_id.clear());
            return;
        }
        let mut known = self.known_call_ids(turn_id);
        let answer = self.decision.completions.len();
        for (at, call) in made.calls.iter_mut().enumerate() {
            if !is_call_id(&call.call_id) || known.contains(&call.call_id) {
                let id =
                    |salt: usize| short_call_id(ids::derive(self.decision_id, &format!("call/{answer}/{at}/{salt}")));
                call.call_id = (0..).map(id).find(|id| !known.contains(id)).unwrap_or_default();
            }
            known.insert(call.call_id.clone());
        }
    }

    /// Ids of calls in the thread of a turn.
    fn known_call_ids(&self, turn_id: Uuid) -> BTreeSet<String> {
        let thread = self.turn(turn_id).and_then(|turn| self.mind.threads.get(&turn.thread_id));
        let calls = thread.into_iter().flat_map(|thread| thread.entries()).filter_map(|entry| match entry {
            ThreadEntry::Called { calls, .. } => {
                Some(calls.iter().map(|call| call.call_id.clone()).collect::<Vec<_>>())
            }
            ThreadEntry::Client { calls, .. } => Some(calls.iter().map(|call| call.call_id.clone()).collect()),
            ThreadEntry::User { .. } | ThreadEntry::Said { .. } | ThreadEntry::Notice { .. } => None,
        });
        calls.flatten().filter(|id| !id.is_empty()).collect()
    }

    /// Returns the data that goes back with the call of a step of the turn's chain.
    pub(super) fn passback_of_step(&self, turn_id: Uuid, step: usize) -> CallPassback {
        self.mind.step_passback(turn_id, saturating_index(step)).unwrap_or_default()
    }
}

fn passback_of(call: &ModelToolCall, answer_passed_back: &str) -> CallPassback {
    CallPassback {
        call_id: call.call_id.clone(),
        passed_back: call.passed_back.clone(),
        answer_passed_back: answer_passed_back.to_owned(),
        reasoning_details: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_is_made_is_nine_alphanumeric_characters_and_one_that_is_kept_is_bounded() {
        let made = short_call_id(Uuid::from_u128(u128::MAX / 3));
        assert_eq!((made.len(), made.bytes().all(|byte| byte.is_ascii_alphanumeric())), (9, true));
        assert_eq!(made, short_call_id(Uuid::from_u128(u128::MAX / 3)));
        let long = "c".repeat(65);
        let table = [
            ("call_abc-1", true),
            ("functions.tools__now:0", true),
            ("", false),
            ("a b", false),
            ("é", false),
            (&long[..64], true),
            (&long, false),
        ];
        for (id, expected) in table {
            assert_eq!(is_call_id(id), expected, "{id}");
        }
    }
}
