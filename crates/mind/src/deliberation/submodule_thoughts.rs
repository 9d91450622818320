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

use super::{AwaitedAnswer, Deliberation, Purpose, chain_steps::PendingIntrinsic};
use crate::{
    intrinsics::{self, IntrinsicStart, SubmoduleQuestion},
    model_answer,
    provenance::Provenance,
    request::{ToolCall, ToolChoice, short_call_id},
    state::{AgentTurn, TurnCause},
    submodules::{self, Submodule, THOUGHT_BYTES, model_requests},
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
pub(super) struct SubmoduleCall {
    pub(super) module: String,
    pub(super) deadline_ms: u32,
    /// Answers of it that called tools.
    calls: u32,
    /// Content from outside that it read with them.
    outside: Provenance,
    purpose: SubmodulePurpose,
}

/// The words of a submodule, or its failure with a message.
pub(super) type SubmoduleReply = Result<String, (SubmoduleFailure, String)>;

/// The aim of a question to a submodule.
#[derive(Clone, Debug)]
pub(super) enum SubmodulePurpose {
    /// Its thoughts on the new input; `step` is the step of the chain that thinks, if one does.
    Along { step: Option<usize> },
    /// Its answer to the question that a step asks.
    Answer(PendingIntrinsic),
    /// Its thoughts on a decision that it is shown.
    Broadcast { thread_id: String, through: u64 },
}

impl SubmoduleCall {
    pub(super) fn for_module(module: &Submodule, aim: SubmodulePurpose) -> Self {
        Self {
            module: module.name.clone(),
            deadline_ms: module.deadline_ms,
            calls: 0,
            outside: Provenance::default(),
            purpose: aim,
        }
    }

    /// Returns the event for its words or its failure; none where it had nothing to say.
    pub(super) fn to_event(&self, said: &SubmoduleReply, for_next: bool) -> Option<Event> {
        let module = self.module.clone();
        match said {
            Ok(text) if text.is_empty() => None,
            Ok(text) => {
                let outside = self.outside.marks();
                Some(Event::Thought(AgentThought { text: text.clone(), module, for_next, outside }))
            }
            Err((kind, message)) => {
                let kind = kind.text();
                let message = message.clone();
                Some(Event::SubmoduleFailed(SubmoduleFailed { module, kind, message }))
            }
        }
    }
}

impl Deliberation<'_> {
    /// Shows the input to those that hear it, once for each turn. Whether any was asked, and the turn is to wait.
    pub(super) fn ask_submodules(&mut self, turn_id: Uuid, step: Option<usize>) -> bool {
        if self.heard_by.contains_key(&turn_id) {
            return false;
        }
        let kind = submodules::input_kind(self.input);
        let hears = |voice: &&Submodule| voice.hears_kind(&kind) && !self.is_submodule_paused(voice);
        let voices: Vec<Submodule> = self.mind.active_submodules().filter(hears).cloned().collect();
        let Some(turn) = self.turn(turn_id).filter(|_| !voices.is_empty()) else { return false };
        let now = self.input.envelope.time;
        let of = |voice: &Submodule| model_requests::new_input_request(&self.mind, turn_id, turn, voice, &kind, now);
        let requests: Vec<_> = voices.iter().map(of).collect();
        self.heard_by.insert(turn_id, voices.len());
        for (voice, request) in voices.iter().zip(requests) {
            self.ask_model(
                turn_id,
                Purpose::Submodule(SubmoduleCall::for_module(voice, SubmodulePurpose::Along { step })),
                request,
            );
        }
        true
    }

    /// Returns true if a submodule failed lately and is therefore not asked by itself. Explicit questions still reach
    /// it.
    pub(super) fn is_submodule_paused(&self, voice: &Submodule) -> bool {
        self.limits.memory_rules > 0 && self.mind.models.is_submodule_paused(&voice.name)
    }

    /// Asks a submodule a question, for a step that waits for the answer.
    pub(super) fn ask_submodule(&mut self, turn_id: Uuid, asking: PendingIntrinsic, inquiry: SubmoduleQuestion) {
        let SubmoduleQuestion { module, question, round } = inquiry;
        let Some(voice) = self.mind.find_submodule(&module).cloned() else { return };
        let Some(turn) = self.turn(turn_id) else { return };
        let request =
            model_requests::question_request(&self.mind, turn_id, turn, &voice, &question, self.input.envelope.time);
        self.add_event(turn_id, Event::SubmoduleAsked(SubmoduleAsked { module, question, round }));
        self.ask_model(
            turn_id,
            Purpose::Submodule(SubmoduleCall::for_module(&voice, SubmodulePurpose::Answer(asking))),
            request,
        );
    }

    /// Takes in the completion of a submodule. Whatever it says, the agent goes on.
    pub(super) fn receive_submodule_completion(
        &mut self,
        asked: AwaitedAnswer,
        voice: SubmoduleCall,
        completion: Completion,
    ) {
        let completion = Completion { module: voice.module.clone(), ..completion };
        self.decision.completions.push(completion.clone());
        // Calls of an answer that was cut are not made.
        let is_cut = completion.ending_word() == AnswerEnding::Cut;
        if completion.error.is_none() && !is_cut && !completion.tool_calls.is_empty() && voice.calls < CALLS {
            return self.run_submodule_calls(asked, voice, &completion);
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
        self.receive_submodule_reply(&asked, &voice, said);
    }

    /// Acts on the words of a submodule, or on its failure, by the aim of the question.
    pub(super) fn receive_submodule_reply(
        &mut self,
        asked: &AwaitedAnswer,
        voice: &SubmoduleCall,
        said: SubmoduleReply,
    ) {
        match &voice.purpose {
            SubmodulePurpose::Along { step } => self.receive_input_thought(asked, *step, voice, said),
            SubmodulePurpose::Answer(asking) => self.receive_submodule_answer(asked.turn, asking, voice, said),
            SubmodulePurpose::Broadcast { thread_id, through } => {
                self.receive_broadcast_reply(asked.turn, voice, (thread_id.as_str(), *through), said)
            }
        }
    }

    /// The turn goes on when all have answered, or it is known that they will not.
    fn receive_input_thought(
        &mut self,
        asked: &AwaitedAnswer,
        step: Option<usize>,
        voice: &SubmoduleCall,
        said: SubmoduleReply,
    ) {
        let turn_id = asked.turn;
        if let Some(event) = voice.to_event(&said, false) {
            self.add_event(turn_id, event);
        }
        if !self.count_submodule_reply(turn_id) {
            return;
        }
        self.apply_decided();
        let is_same = self.turn(turn_id).is_some() && self.chain_id_of(turn_id) == asked.chain;
        match is_same {
            true => self.think(turn_id, step),
            false => self.work.push_back(turn_id),
        }
    }

    /// The answer to a question is a thought, and the result of its step.
    fn receive_submodule_answer(
        &mut self,
        turn_id: Uuid,
        asking: &PendingIntrinsic,
        voice: &SubmoduleCall,
        said: SubmoduleReply,
    ) {
        let module = &voice.module;
        if let Some(event) = voice.to_event(&said, false) {
            self.add_event(turn_id, event);
        }
        self.apply_decided();
        match said {
            Ok(answer) => {
                let result = json!({ "module": module, "answer": answer });
                self.end_step_done(turn_id, asking.step, &asking.params, result);
            }
            Err((kind, message)) => {
                let reason = format!("{module} is {}: {message}", kind.as_str());
                self.end_step(turn_id, asking.step, &Ended::Failed, Value::Null, &reason);
            }
        }
        self.work.push_back(turn_id);
    }

    /// Counts one answer, and returns true if it was the last one that the turn waited for.
    pub(super) fn count_submodule_reply(&mut self, turn_id: Uuid) -> bool {
        let Some(left) = self.heard_by.get_mut(&turn_id) else { return false };
        *left = left.saturating_sub(1);
        *left == 0
    }

    /// A submodule looks something up, and goes on.
    fn run_submodule_calls(&mut self, mut asked: AwaitedAnswer, mut voice: SubmoduleCall, completion: &Completion) {
        self.apply_decided();
        let read = model_answer::read(&asked.question.request, completion, self.limits.parallel_tools);
        let calls = match read {
            Ok(model_answer::ModelAnswer::Call { calls, .. }) => calls,
            // What cannot be understood is none.
            Ok(_) | Err(_) => Vec::new(),
        };
        let turn_id = asked.turn;
        let id = |at: usize| {
            ids::derive(self.decision_id, &format!("{}/{}/{at}", voice.module, self.decision.completions.len()))
        };
        let made: Vec<Uuid> = (0..calls.len()).map(id).collect();
        let looked_up =
            |(id, call): (&Uuid, &model_answer::ModelToolCall)| self.run_submodule_call(turn_id, *id, &mut voice, call);
        let results: Vec<String> = made.iter().zip(&calls).map(looked_up).collect();
        let request = Arc::make_mut(&mut asked.question.request);
        let as_call = |(call, id): (model_answer::ModelToolCall, Uuid)| ToolCall {
            id: short_call_id(id),
            tool: call.tool,
            arguments: call.arguments,
            passed_back: call.passed_back,
        };
        let is_none = calls.is_empty();
        if !is_none {
            let called = calls.into_iter().zip(made).map(as_call).collect();
            let back = (completion.reasoning_details.clone(), completion.passed_back.clone());
            request.conversation().push_calls(completion.text.trim(), called, back, results);
        }
        voice.calls += 1;
        if voice.calls == CALLS || is_none {
            voice.calls = CALLS;
            request.tool_choice = ToolChoice::None;
        }
        asked.purpose = Purpose::Submodule(voice);
        asked.question.attempt = 1;
        self.enqueue_question(asked);
    }

    /// Runs an intrinsic for a submodule and returns its result as text. Its events are part of the decision.
    fn run_submodule_call(
        &mut self,
        turn_id: Uuid,
        id: Uuid,
        voice: &mut SubmoduleCall,
        call: &model_answer::ModelToolCall,
    ) -> String {
        let tool = call.tool.as_str();
        let params: Map<String, Value> = serde_json::from_str(&call.arguments).unwrap_or_default();
        let problems = self.param_mistakes(tool, &params);
        let is_offered = intrinsics::submodules::is_callable_by_submodules(tool) && self.mind.offers_tool(tool);
        let known = intrinsics::by_name(tool).filter(|_| is_offered);
        let turn = self.turn_of_submodule(turn_id, &voice.purpose);
        let begun = match known {
            None => Err(format!("there is no tool named {tool:?}")),
            Some(_) if !problems.is_empty() => Err(format!("invalid_arguments: {}", problems.join("; "))),
            Some(intrinsic) => (intrinsic.begin)(&self.intrinsic_context(turn_id, &turn, id, &|_| false), &params),
        };
        match begun {
            Ok(IntrinsicStart::Done(done)) => {
                for event in done.events {
                    self.add_event_to(turn_id, &turn.thread_id, turn.correlation, event);
                }
                self.apply_decided();
                done.result.to_string()
            }
            Ok(IntrinsicStart::Read { result, outside }) => {
                voice.outside = std::mem::take(&mut voice.outside).merge(&outside);
                result.to_string()
            }
            Ok(IntrinsicStart::Ask(_) | IntrinsicStart::Question(_) | IntrinsicStart::Request(_)) => {
                json!({ "error": "not here" }).to_string()
            }
            Err(error) => json!({ "error": error }).to_string(),
        }
    }

    /// The turn in which a submodule looks something up: of a broadcast, one as its thread's user.
    fn turn_of_submodule(&self, turn_id: Uuid, aim: &SubmodulePurpose) -> AgentTurn {
        if let Some(turn) = self.turn(turn_id) {
            return turn.clone();
        }
        let (thread_id, correlation) = match aim {
            SubmodulePurpose::Broadcast { thread_id, through } => {
                (thread_id.as_str(), self.broadcast_correlation(thread_id, *through))
            }
            SubmodulePurpose::Along { .. } | SubmodulePurpose::Answer(_) => ("", self.input.envelope.correlation_id),
        };
        let user = self.mind.threads.get(thread_id).map(|thread| thread.user.clone()).unwrap_or_default();
        AgentTurn::new(TurnCause::Event, correlation, thread_id, &user)
    }
}
