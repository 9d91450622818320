//! Thinking along: each new input of a turn is shown to the submodules that hear its kind, at once, before it is decided on. Who has
//! not answered by the deadline, or fails, is left out. None is asked twice.

use std::sync::Arc;

use kairo_events::ids;
use kairo_proto::{
    v1::{AgentThought, Completion, SubmoduleAsked, SubmoduleFailed, decided_event::Event},
    words::{AnswerEnding, StepState as Ended, SubmoduleFailure},
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{Asked, Deliberation, Purpose, stepping::Completing};
use crate::{
    answer,
    intrinsics::{self, Begun, Inquiry},
    outside::Provenance,
    request::{ToolCall, ToolChoice, short_id},
    state::{Cause, Turn},
    submodules::{self, Submodule, THOUGHT_BYTES, voiced},
    thread::cut_to,
};

/// As `CompletionError.kind`: nobody waited any longer.
pub const LATE: &str = "late";
/// Answers of a submodule that may call tools, in one go; the next one must speak.
const CALLS: u32 = 2;
/// Longest message that is kept of a submodule's failure, in bytes.
const MESSAGE_BYTES: usize = 500;

/// A submodule that is asked.
#[derive(Clone, Debug)]
pub(super) struct Voice {
    pub(super) module: String,
    pub(super) deadline_ms: u32,
    /// Answers of it that called tools.
    calls: u32,
    /// Content from outside that it read with them.
    outside: Provenance,
    aim: Aim,
}

/// The words of a submodule, or its failure with a message.
pub(super) type Heard = Result<String, (SubmoduleFailure, String)>;

/// The aim of a question to a submodule.
#[derive(Clone, Debug)]
pub(super) enum Aim {
    /// Its thoughts on the new input; `step` is the step of the chain that thinks, if one does.
    Along { step: Option<usize> },
    /// Its answer to the question that a step asks.
    Answer(Completing),
    /// Its thoughts on a decision that it is shown.
    Told { thread_id: String, through: u64 },
}

impl Voice {
    pub(super) fn of(module: &Submodule, aim: Aim) -> Self {
        Self {
            module: module.name.clone(),
            deadline_ms: module.deadline_ms,
            calls: 0,
            outside: Provenance::default(),
            aim,
        }
    }

    /// Returns the event for its words or its failure; none where it had nothing to say.
    pub(super) fn event(&self, said: &Heard, for_next: bool) -> Option<Event> {
        let module = self.module.clone();
        match said {
            Ok(text) if text.is_empty() => None,
            Ok(text) => {
                let outside = self.outside.marks();
                Some(Event::Thought(AgentThought { text: text.clone(), module, for_next, outside }))
            }
            Err((kind, message)) => {
                let (kind, message) = (kind.text(), message.clone());
                Some(Event::SubmoduleFailed(SubmoduleFailed { module, kind, message }))
            }
        }
    }
}

impl Deliberation<'_> {
    /// Shows the input to those that hear it, once for each turn. Whether any was asked, and the turn is to wait.
    pub(super) fn thinks_along(&mut self, turn_id: Uuid, step: Option<usize>) -> bool {
        if self.heard_by.contains_key(&turn_id) {
            return false;
        }
        let kind = submodules::kind(self.input);
        let hears = |voice: &&Submodule| voice.hears(&kind) && !self.is_at_rest(voice);
        let voices: Vec<Submodule> = self.mind.voices().filter(hears).cloned().collect();
        let Some(turn) = self.turn(turn_id).filter(|_| !voices.is_empty()) else { return false };
        let now = self.input.envelope.time;
        let of = |voice: &Submodule| voiced::along(&self.mind, turn_id, turn, voice, &kind, now);
        let requests: Vec<_> = voices.iter().map(of).collect();
        self.heard_by.insert(turn_id, voices.len());
        for (voice, request) in voices.iter().zip(requests) {
            self.ask(turn_id, Purpose::Voice(Voice::of(voice, Aim::Along { step })), request);
        }
        true
    }

    /// Returns true if a submodule failed lately and is therefore not asked by itself. Explicit questions still reach
    /// it.
    pub(super) fn is_at_rest(&self, voice: &Submodule) -> bool {
        self.limits.memory_rules > 0 && self.mind.models.is_submodule_at_rest(&voice.name)
    }

    /// Asks a submodule a question, for a step that waits for the answer.
    pub(super) fn inquire(&mut self, turn_id: Uuid, asking: Completing, inquiry: Inquiry) {
        let Inquiry { module, question, round } = inquiry;
        let Some(voice) = self.mind.voice(&module).cloned() else { return };
        let Some(turn) = self.turn(turn_id) else { return };
        let request = voiced::asked(&self.mind, turn_id, turn, &voice, &question, self.input.envelope.time);
        self.add(turn_id, Event::SubmoduleAsked(SubmoduleAsked { module, question, round }));
        self.ask(turn_id, Purpose::Voice(Voice::of(&voice, Aim::Answer(asking))), request);
    }

    /// Takes in the completion of a submodule. Whatever it says, the agent goes on.
    pub(super) fn hear_voice(&mut self, asked: Asked, voice: Voice, completion: Completion) {
        let completion = Completion { module: voice.module.clone(), ..completion };
        self.decision.completions.push(completion.clone());
        // Calls of an answer that was cut are not made.
        let is_cut = completion.ending_word() == AnswerEnding::Cut;
        if completion.error.is_none() && !is_cut && !completion.tool_calls.is_empty() && voice.calls < CALLS {
            return self.look_up(asked, voice, &completion);
        }
        let said = match &completion.error {
            Some(error) => {
                let late = error.kind == LATE;
                let kind = if late { SubmoduleFailure::Late } else { SubmoduleFailure::Failed };
                let message = if late { error.message.clone() } else { format!("{}: {}", error.kind, error.message) };
                Err((kind, cut_to(&message, MESSAGE_BYTES)))
            }
            None => match completion.ending_word() {
                AnswerEnding::Refused => Err((SubmoduleFailure::Failed, "it declined to answer".to_owned())),
                AnswerEnding::Filtered => Err((SubmoduleFailure::Failed, "a content filter withheld it".to_owned())),
                AnswerEnding::Failed => Err((SubmoduleFailure::Failed, "the answer broke off".to_owned())),
                AnswerEnding::Complete | AnswerEnding::Cut | AnswerEnding::Empty | AnswerEnding::Unknown(_) => {
                    Ok(cut_to(completion.text.trim(), THOUGHT_BYTES))
                }
            },
        };
        let said = said.map(|text| if text == "-" { String::new() } else { text });
        self.heard_voice(&asked, &voice, said);
    }

    /// Acts on the words of a submodule, or on its failure, by the aim of the question.
    pub(super) fn heard_voice(&mut self, asked: &Asked, voice: &Voice, said: Heard) {
        match &voice.aim {
            Aim::Along { step } => self.thought_along(asked, *step, voice, said),
            Aim::Answer(asking) => self.answered(asked.turn, asking, voice, said),
            Aim::Told { thread_id, through } => self.heard_of(asked.turn, voice, (thread_id.as_str(), *through), said),
        }
    }

    /// The turn goes on when all have answered, or it is known that they will not.
    fn thought_along(&mut self, asked: &Asked, step: Option<usize>, voice: &Voice, said: Heard) {
        let turn_id = asked.turn;
        if let Some(event) = voice.event(&said, false) {
            self.add(turn_id, event);
        }
        if !self.have_all_answered(turn_id) {
            return;
        }
        self.settle();
        let is_same = self.turn(turn_id).is_some() && self.chain_of(turn_id) == asked.chain;
        match is_same {
            true => self.think(turn_id, step),
            false => self.work.push_back(turn_id),
        }
    }

    /// The answer to a question is a thought, and the result of its step.
    fn answered(&mut self, turn_id: Uuid, asking: &Completing, voice: &Voice, said: Heard) {
        let module = &voice.module;
        if let Some(event) = voice.event(&said, false) {
            self.add(turn_id, event);
        }
        self.settle();
        match said {
            Ok(answer) => {
                let result = json!({ "module": module, "answer": answer });
                self.done_with(turn_id, asking.step, &asking.params, result);
            }
            Err((kind, message)) => {
                let reason = format!("{module} is {}: {message}", kind.as_str());
                self.end_step(turn_id, asking.step, &Ended::Failed, Value::Null, &reason);
            }
        }
        self.work.push_back(turn_id);
    }

    /// Counts one answer, and returns true if it was the last one that the turn waited for.
    pub(super) fn have_all_answered(&mut self, turn_id: Uuid) -> bool {
        let Some(left) = self.heard_by.get_mut(&turn_id) else { return false };
        *left = left.saturating_sub(1);
        *left == 0
    }

    /// A submodule looks something up, and goes on.
    fn look_up(&mut self, mut asked: Asked, mut voice: Voice, completion: &Completion) {
        self.settle();
        let read = answer::read(&asked.question.request, completion, self.limits.parallel_tools);
        let calls = match read {
            Ok(answer::Answer::Call { calls, .. }) => calls,
            // What cannot be understood is none.
            Ok(_) | Err(_) => Vec::new(),
        };
        let turn_id = asked.turn;
        let id = |at: usize| {
            ids::derived(self.decision_id, &format!("{}/{}/{at}", voice.module, self.decision.completions.len()))
        };
        let made: Vec<Uuid> = (0..calls.len()).map(id).collect();
        let looked_up = |(id, call): (&Uuid, &answer::AskedCall)| self.looked_up(turn_id, *id, &mut voice, call);
        let results: Vec<String> = made.iter().zip(&calls).map(looked_up).collect();
        let request = Arc::make_mut(&mut asked.question.request);
        let as_call = |(call, id): (answer::AskedCall, Uuid)| ToolCall {
            id: short_id(id),
            tool: call.tool,
            arguments: call.arguments,
            passed_back: call.passed_back,
        };
        let is_none = calls.is_empty();
        if !is_none {
            let called = calls.into_iter().zip(made).map(as_call).collect();
            let back = (completion.reasoning_details.clone(), completion.passed_back.clone());
            request.conversation().calls(completion.text.trim(), called, back, results);
        }
        voice.calls += 1;
        if voice.calls == CALLS || is_none {
            voice.calls = CALLS;
            request.tool_choice = ToolChoice::None;
        }
        asked.purpose = Purpose::Voice(voice);
        asked.question.attempt = 1;
        self.put(asked);
    }

    /// Runs an intrinsic for a submodule and returns its result as text. Its events are part of the decision.
    fn looked_up(&mut self, turn_id: Uuid, id: Uuid, voice: &mut Voice, call: &answer::AskedCall) -> String {
        let tool = call.tool.as_str();
        let params: Map<String, Value> = serde_json::from_str(&call.arguments).unwrap_or_default();
        let problems = self.problems(tool, &params);
        let is_offered = intrinsics::submodules::is_theirs(tool) && self.mind.offers(tool);
        let known = intrinsics::named(tool).filter(|_| is_offered);
        let turn = self.turn_of(turn_id, &voice.aim);
        let begun = match known {
            None => Err(format!("there is no tool named {tool:?}")),
            Some(_) if !problems.is_empty() => Err(format!("invalid_arguments: {}", problems.join("; "))),
            Some(intrinsic) => (intrinsic.begin)(&self.context(turn_id, &turn, id, &|_| false), &params),
        };
        match begun {
            Ok(Begun::Done(done)) => {
                for event in done.events {
                    self.add_to(turn_id, &turn.thread_id, turn.correlation, event);
                }
                self.settle();
                done.result.to_string()
            }
            Ok(Begun::Read { result, outside }) => {
                voice.outside = std::mem::take(&mut voice.outside).with(&outside);
                result.to_string()
            }
            Ok(Begun::Ask(_) | Begun::Question(_) | Begun::Request(_)) => json!({ "error": "not here" }).to_string(),
            Err(error) => json!({ "error": error }).to_string(),
        }
    }

    /// The turn in which a submodule looks something up: of a broadcast, one as its thread's user.
    fn turn_of(&self, turn_id: Uuid, aim: &Aim) -> Turn {
        if let Some(turn) = self.turn(turn_id) {
            return turn.clone();
        }
        let (thread_id, correlation) = match aim {
            Aim::Told { thread_id, through } => (thread_id.as_str(), self.shown_chain(thread_id, *through)),
            Aim::Along { .. } | Aim::Answer(_) => ("", self.input.envelope.correlation_id),
        };
        let user = self.mind.threads.get(thread_id).map(|thread| thread.user.clone()).unwrap_or_default();
        Turn::new(Cause::Event, correlation, thread_id, &user)
    }
}
