//! Adding events to the decision.

use kairo_events::ids;
use kairo_proto::v1::{
    AgentAction, AgentFailed, AgentThought, ApprovalRequested, ChainEnded, ChainStepEnded, DecidedEvent, Say, ToolCall,
    agent_action::Action, decided_event::Event,
};
use kairo_proto::words::{ChainOutcome, StepState as Ended};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    super::{call_target, call_target::TargetScope, provenance::Provenance},
    AnswerFailure, Deliberation,
    answer_calls::CallPassback,
};

/// Largest result of a step that is kept, to the letter, in bytes; a larger one is left out.
const RESULT_BYTES: usize = 128 * 1024;

impl Deliberation<'_> {
    /// Adds an event of a turn that the draft knows.
    pub(super) fn add_event(&mut self, turn_id: Uuid, event: Event) -> Uuid {
        let known = self.mind.turns.get(&turn_id).map(|turn| (turn.thread_id.clone(), turn.correlation));
        // A turn that has ended within this decision is no longer in the draft; what it said before shows where it was.
        let before = || {
            let id = turn_id.to_string();
            let of = |event: &&DecidedEvent| event.turn_id == id || event.correlation_id == id;
            let event = self.decision.events.iter().rev().find(of)?;
            Some((event.thread_id.clone(), Uuid::parse_str(&event.correlation_id).ok()?))
        };
        let (thread_id, correlation) =
            known.or_else(before).unwrap_or((String::new(), self.input.envelope.correlation_id));
        self.add_event_to(turn_id, &thread_id, correlation, event)
    }

    pub(super) fn add_event_to(&mut self, turn_id: Uuid, thread_id: &str, correlation: Uuid, event: Event) -> Uuid {
        let position = self.decision.events.len();
        let event_id = ids::derive(self.decision_id, &position.to_string());
        self.decision.events.push(DecidedEvent {
            event_id: event_id.to_string(),
            thread_id: thread_id.to_owned(),
            correlation_id: correlation.to_string(),
            turn_id: if turn_id == correlation { String::new() } else { turn_id.to_string() },
            event: Some(event),
        });
        event_id
    }

    pub(super) fn say(&mut self, turn_id: Uuid, text: &str, last: bool) {
        self.say_to_user(turn_id, Say { text: text.to_owned(), r#final: last, ..Default::default() });
    }

    /// Says what ended a turn that failed, of this kind: words for people, and no answer. Builds before epoch 10 said it as one.
    pub(super) fn say_failure(&mut self, turn_id: Uuid, text: &str, kind: &str) {
        let failure = if self.limits.is_of_old_build() { String::new() } else { kind.to_owned() };
        self.say_to_user(turn_id, Say { text: text.to_owned(), r#final: true, failure, ..Default::default() });
    }

    /// Says something to the user of a turn.
    pub(super) fn say_to_user(&mut self, turn_id: Uuid, say: Say) {
        let Some(turn) = self.turn(turn_id) else { return };
        // What is said in a thread of work, or for another agent, nobody hears; what is said aside is in no conversation.
        let is_heard = !self.mind.is_background_turn(turn) && turn.agent_request().is_none() && !turn.is_aside();
        let user = if !is_heard { String::new() } else { turn.user.clone() };
        let say = Say { user, message_id: turn.message_id.clone(), ..say };
        self.add_event(turn_id, Event::Action(AgentAction { action: Some(Action::Say(say)) }));
    }

    pub(super) fn add_thought(&mut self, turn_id: Uuid, text: &str) {
        self.add_event(turn_id, Event::Thought(AgentThought { text: text.to_owned(), ..AgentThought::default() }));
    }

    pub(super) fn record_failure(&mut self, turn_id: Uuid, kind: &str, message: &str, attempt: u32, retried: bool) {
        self.record_answer_failure(turn_id, &AnswerFailure::of_kind(kind, message), attempt, retried);
    }

    pub(super) fn record_answer_failure(
        &mut self,
        turn_id: Uuid,
        failure: &AnswerFailure,
        attempt: u32,
        retried: bool,
    ) {
        let AnswerFailure { kind, message, retry_after_ms, .. } = failure;
        let kind = kind.clone();
        let message = message.clone();
        let retry_after_ms = *retry_after_ms;
        self.add_event(turn_id, Event::Failed(AgentFailed { kind, message, attempt, retried, retry_after_ms }));
    }

    /// Calls a tool, as a step of a chain or by itself. `consent`: what a human was asked and said yes to, and where in the
    /// log it was asked.
    pub(super) fn call_tool(
        &mut self,
        turn_id: Uuid,
        step: Option<(Uuid, usize)>,
        tool: &str,
        arguments: String,
        consent: Option<(Uuid, u64)>,
    ) {
        let back = step.map(|(_, at)| self.passback_of_step(turn_id, at)).unwrap_or_default();
        self.call_tool_with(turn_id, step, tool, arguments, consent, back);
    }

    /// As [`Self::call_tool`], with the id by which the model knows the call and what its server wants back with it.
    pub(super) fn call_tool_with(
        &mut self,
        turn_id: Uuid,
        step: Option<(Uuid, usize)>,
        tool: &str,
        arguments: String,
        consent: Option<(Uuid, u64)>,
        back: CallPassback,
    ) {
        let (user, ordered) =
            self.turn(turn_id).map_or((String::new(), false), |turn| (turn.user.clone(), turn.is_order()));
        // Whether somebody may order it, whoever gave the order has looked.
        let reach = if ordered { TargetScope::All } else { TargetScope::User(&user) };
        if tool == "action.cancel" && self.withdraw_from_agent(turn_id, step.map(|(_, step)| step), &arguments, reach) {
            return;
        }
        match self.member_request_for(turn_id, tool, &arguments) {
            Some(Ok(ask)) => return self.ask_agent(turn_id, step, ask),
            Some(Err(reason)) => {
                let (_, step) = step.unwrap_or_default();
                return self.end_step(turn_id, step, &Ended::Failed, Value::Null, &reason);
            }
            None => {}
        }
        let (action, after) = call_target::find_target(&self.mind, tool, &arguments, reach, self.decision.cursor);
        let call = ToolCall {
            tool: tool.to_owned(),
            arguments,
            target_action_id: action.map(|action| action.to_string()).unwrap_or_default(),
            target_after: after,
            chain_id: step.map(|(chain, _)| chain.to_string()).unwrap_or_default(),
            step: step.map(|(_, step)| saturating_index(step)).unwrap_or_default(),
            approval_id: consent.map(|(request, _)| request.to_string()).unwrap_or_default(),
            asked_at: consent.map(|(_, at)| at).unwrap_or_default(),
            user: Some(user),
            reasoning_details: back.reasoning_details,
            call_id: back.call_id,
            passed_back: back.passed_back,
            answer_passed_back: back.answer_passed_back,
        };
        self.add_event(turn_id, Event::Action(AgentAction { action: Some(Action::ToolCall(call)) }));
    }

    /// Asks the user whether a step may call its tool.
    pub(super) fn request_approval(&mut self, turn_id: Uuid, chain: Uuid, step: usize, tool: &str, arguments: String) {
        if let Some(reason) = self.no_room_for_approval(&arguments) {
            return self.end_step(turn_id, step, &Ended::Failed, Value::Null, &reason);
        }
        let turn = self.turn(turn_id).map(|turn| (turn.user.clone(), self.mind.provenance_of(turn).marks()));
        let (user, outside) = turn.unwrap_or_default();
        let requested = ApprovalRequested {
            user,
            tool: tool.to_owned(),
            arguments,
            chain_id: chain.to_string(),
            step: saturating_index(step),
            outside,
            expires_at: self.consent_deadline(),
        };
        self.add_event(turn_id, Event::ApprovalRequested(requested));
    }

    /// A step ends without having run.
    pub(super) fn end_step(&mut self, turn_id: Uuid, step: usize, outcome: &Ended, result: Value, reason: &str) {
        let ended = ChainStepEnded { reason: reason.to_owned(), ..ChainStepEnded::default() };
        self.add_step_end(turn_id, step, outcome, result, ended);
    }

    /// A step that the mind itself carried out is done.
    pub(super) fn end_step_done(&mut self, turn_id: Uuid, step: usize, params: &Map<String, Value>, result: Value) {
        self.end_step_having_read(turn_id, step, params, result, &Provenance::default());
    }

    /// Ends a step that the mind itself carried out and that read content from these sources.
    pub(super) fn end_step_having_read(
        &mut self,
        turn_id: Uuid,
        step: usize,
        params: &Map<String, Value>,
        result: Value,
        outside: &Provenance,
    ) {
        let params = Value::Object(params.clone()).to_string();
        let ended = ChainStepEnded { params, outside: outside.marks(), ..ChainStepEnded::default() };
        self.add_step_end(turn_id, step, &Ended::Done, result, ended);
    }

    fn add_step_end(&mut self, turn_id: Uuid, step: usize, outcome: &Ended, result: Value, ended: ChainStepEnded) {
        let Some(chain) = self.turn(turn_id).and_then(|turn| turn.chain.as_ref()) else { return };
        // At the end of the day, one thread that cannot be written down does not keep the others from it.
        let is_of_system =
            chain.task.and_then(|task| self.mind.tasks.get(task)).is_some_and(|task| task.is_of_system());
        let outcome = if *outcome == Ended::Failed && is_of_system { &Ended::Skipped } else { outcome };
        let mut text = if result.is_null() { String::new() } else { result.to_string() };
        if text.len() > RESULT_BYTES {
            text = json!({ "left_out": "the result is too large" }).to_string();
        }
        let ended = ChainStepEnded {
            chain_id: chain.id.to_string(),
            step: saturating_index(step),
            outcome: outcome.text(),
            result: text,
            ..ended
        };
        self.add_event(turn_id, Event::ChainStepEnded(ended));
        self.apply_decided();
    }

    pub(super) fn end_chain(&mut self, turn_id: Uuid, chain: Uuid, outcome: &ChainOutcome, reason: &str) {
        let ended = ChainEnded { chain_id: chain.to_string(), outcome: outcome.text(), reason: reason.to_owned() };
        self.add_event(turn_id, Event::ChainEnded(ended));
    }

    /// Ends the chain a turn is in, if it is in one.
    pub(super) fn end_chain_of(&mut self, turn_id: Uuid, outcome: &ChainOutcome, reason: &str) {
        if let Some(chain) = self.turn(turn_id).and_then(|turn| turn.chain.as_ref()).map(|chain| chain.id) {
            self.end_chain(turn_id, chain, outcome, reason);
        }
    }
}

pub(super) fn saturating_index(step: usize) -> u32 {
    u32::try_from(step).unwrap_or(u32::MAX)
}
