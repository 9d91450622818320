//! A turn as the log tells it: from a user's message to what is answered. Pure.

#[cfg(test)]
mod tests;

use kairo_core::event_json::EventJson;
use kairo_proto::v1::{self, ChatToolCall};
use kairo_proto::words::AnswerEnding;
use serde_json::Value;
use uuid::Uuid;

use super::{
    questions::{self, OpenQuestion},
    queued_work::QueuedWork,
};
use crate::tail::TailMessage;

#[derive(Debug)]
pub struct ChatTurn {
    /// Of the turn and of the message that are answered: those of another message when both are answered together.
    correlation: Uuid,
    message_id: String,
    /// The agent's messages so far, in order.
    said: Vec<String>,
    replied: bool,
    /// The ending of the last message; `calls` are those of the client's own tools.
    ending: AnswerEnding,
    calls: Vec<ChatToolCall>,
    /// The failure, if the turn has no answer.
    failed: Option<TurnFailure>,
    /// The last try that failed without another one, in the message that is taken in.
    last_failed: Option<TurnFailure>,
    undelivered: Option<String>,
    open: Vec<OpenQuestion>,
    tokens: TokenUsage,
    /// The tasks whose results are the answer, if the client waits for them.
    work: Option<QueuedWork>,
}

/// The reply of a turn, as a client gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatReply {
    pub text: String,
    pub ending: AnswerEnding,
    /// Of the client's own tools.
    pub calls: Vec<ChatToolCall>,
}

/// The failure of a turn that has no answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnFailure {
    /// As in `AgentFailed.kind`.
    pub kind: String,
    /// For people.
    pub text: String,
    /// 0 if it is not known.
    pub retry_after_ms: u64,
}

/// Beginnings of the messages by which builds before epoch 10 report a failure.
const TOLD: [&str; 2] = ["I could not finish this: ", "I cannot do this: "];
/// The kind of failure of a message whose thread has moved on.
const MOVED_ON: &str = "thread_moved_on";

/// The tokens that a turn took of models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenUsage {
    pub input: u64,
    pub output: u64,
    /// Input tokens that model servers read from a cache.
    pub cached: u64,
}

impl TokenUsage {
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self {
            input: self.input.saturating_add(more.input),
            output: self.output.saturating_add(more.output),
            cached: self.cached.saturating_add(more.cached),
        }
    }
}

/// The outcome of a turn.
#[derive(Debug, PartialEq, Eq)]
pub enum TurnOutcome {
    Replied,
    /// It ended without an answer.
    Failed(TurnFailure),
    /// The agent waits for the user's answer; the text says to what, and how to give it.
    Question(String),
    /// No agent can receive the message.
    Undelivered(String),
}

impl ChatTurn {
    pub fn new(correlation: Uuid, message_id: String) -> Self {
        Self {
            correlation,
            message_id,
            said: Vec::new(),
            replied: false,
            ending: AnswerEnding::Complete,
            calls: Vec::new(),
            failed: None,
            last_failed: None,
            undelivered: None,
            open: Vec::new(),
            tokens: TokenUsage::default(),
            work: None,
        }
    }

    /// Has the results of the tasks that the turn queues be its answer.
    #[must_use]
    pub fn awaiting_work(self, is_awaited: bool) -> Self {
        Self { work: is_awaited.then(QueuedWork::default), ..self }
    }

    /// Takes a message of the log in. Returns the input that was decided on, if it is a decision of this turn.
    pub fn apply_message(&mut self, message: &TailMessage) -> Option<Uuid> {
        let mut decided = None;
        self.last_failed = None;
        for event in &message.events {
            self.close_questions(event);
            if event.correlation_id == self.correlation && !self.is_over() {
                self.apply_event(event);
                decided = decided.or(event.causation_id.filter(|_| message.subject.ends_with(".decision")));
            }
        }
        if decided.is_some() {
            self.tokens = self.tokens.plus(message.tokens);
        }
        decided
    }

    /// Returns the outcome of the turn, if it has one yet.
    pub fn outcome(&self) -> Option<TurnOutcome> {
        match &self.undelivered {
            _ if self.failed.is_some() => self.failed.clone().map(TurnOutcome::Failed),
            _ if self.is_over() => Some(self.work_failure().map_or(TurnOutcome::Replied, TurnOutcome::Failed)),
            Some(reason) => Some(TurnOutcome::Undelivered(reason.clone())),
            None if self.open.is_empty() => None,
            None => Some(TurnOutcome::Question(questions::describe_questions(&self.open))),
        }
    }

    /// Returns the correlation id of the turn's events.
    pub fn correlation(&self) -> Uuid {
        self.correlation
    }

    /// Returns true if the message was refused because its thread has moved on: it belongs in another thread.
    pub fn has_moved_on(&self) -> bool {
        self.failed.as_ref().is_some_and(|failed| failed.kind == MOVED_ON)
    }

    /// Returns the ending of the reply, and the calls of the client's tools in it.
    pub fn reply_ending(&self) -> (AnswerEnding, &[ChatToolCall]) {
        (self.ending.clone(), &self.calls)
    }

    /// The answer so far: what the agent said or, once there are any, the results of the work.
    pub fn agent_messages(&self) -> &[String] {
        self.work.as_ref().map(QueuedWork::results).filter(|results| !results.is_empty()).unwrap_or(&self.said)
    }

    /// The part of the answer that can be shown before it is whole: nothing while work is waited for, since its results
    /// take the place of the acknowledgement.
    pub fn final_messages(&self) -> &[String] {
        if self.work.is_some() && !self.is_over() { &[] } else { self.agent_messages() }
    }

    /// Returns true if the agent has replied, and the work that is waited for is over.
    fn is_over(&self) -> bool {
        self.replied && !self.work.as_ref().is_some_and(QueuedWork::is_open)
    }

    fn work_failure(&self) -> Option<TurnFailure> {
        self.work.as_ref().and_then(QueuedWork::failure).cloned()
    }

    pub fn tokens(&self) -> TokenUsage {
        self.tokens
    }

    fn apply_event(&mut self, event: &EventJson) {
        if let Some(work) = &mut self.work {
            work.apply_event(event);
        }
        let text = |name: &str| event.payload.get(name).and_then(Value::as_str).unwrap_or_default();
        match event.type_name.as_str() {
            // What is said besides, such as by a reminder, answers nothing.
            v1::AgentAction::TYPE
                if text("type") == "say" && text("message_id") == self.message_id && !self.replied =>
            {
                self.apply_answer(event);
            }
            v1::AgentFailed::TYPE if event.payload.get("retried").and_then(Value::as_bool) != Some(true) => {
                let retry_after_ms = parse_json_number(event.payload.get("retry_after_ms"));
                let kind = text("kind").to_owned();
                let text = text("message").to_owned();
                self.last_failed = Some(TurnFailure { kind, text, retry_after_ms });
            }
            v1::AgentJoined::TYPE if text("message_id") == self.message_id => {
                if let Ok(into) = Uuid::parse_str(text("into_correlation_id")) {
                    self.correlation = into;
                    self.message_id = text("into_message_id").to_owned();
                }
            }
            v1::ThreadSuggested::TYPE => self.open.push(questions::thread_question(event)),
            v1::ToolProgress::TYPE => self.open.extend(questions::tool_question(event)),
            v1::ApprovalRequested::TYPE => self.open.push(questions::approval_question(event)),
            v1::UserMessageUndelivered::TYPE => self.undelivered = Some(event.text().to_owned()),
            _ => {}
        }
    }

    /// Applies an event by which the agent answers the message.
    fn apply_answer(&mut self, event: &EventJson) {
        let field = |name: &str| event.payload.get(name).and_then(Value::as_str).unwrap_or_default();
        let words = event.text();
        let last_failed = self.last_failed.take().unwrap_or_default();
        let kind = match field("failure") {
            "" if TOLD.iter().any(|told| words.starts_with(told)) => last_failed.kind.clone(),
            kind => kind.to_owned(),
        };
        if !kind.is_empty() {
            let retry_after_ms = if last_failed.kind == kind { last_failed.retry_after_ms } else { 0 };
            self.failed = Some(TurnFailure { kind, text: words.to_owned(), retry_after_ms });
            self.replied = true;
            return;
        }
        self.calls = event.payload.get("client_calls").map(parse_tool_calls).unwrap_or_default();
        if !words.is_empty() || self.calls.is_empty() {
            self.said.push(words.to_owned());
        }
        self.ending = match field("ending") {
            "" => AnswerEnding::Complete,
            ending => AnswerEnding::from(ending),
        };
        self.replied = event.is_final_reply();
    }

    /// An answer of the user to what is open. It begins a chain of its own, but for what a call asked: that ends in the call's.
    fn close_questions(&mut self, event: &EventJson) {
        let id = |value: Option<&Value>| value.and_then(Value::as_str).and_then(|id| Uuid::parse_str(id).ok());
        if event.type_name == v1::ToolResult::TYPE {
            let call = id(event.payload.get("action_id"));
            self.open.retain(|question| question.call.is_none() || question.call != call);
        }
        let ended = event.payload.get("question_ended").and_then(|ended| id(ended.get("question_id")));
        self.open.retain(|question| ended.is_none() || Some(question.id) != ended);
        let field = match event.type_name.as_str() {
            v1::AgentChoice::TYPE => "offer_id",
            v1::AgentApproval::TYPE => "action_id",
            // Nobody has answered in time.
            v1::TaskDue::TYPE => "task_id",
            _ => return,
        };
        let named = event.payload.get(field).and_then(Value::as_str).and_then(|id| Uuid::parse_str(id).ok());
        self.open.retain(|question| Some(question.id) != named);
    }
}

/// In JSON, numbers of 64 bits are texts.
fn parse_json_number(value: Option<&Value>) -> u64 {
    let read = |value: &Value| value.as_u64().or_else(|| value.as_str()?.parse().ok());
    value.and_then(read).unwrap_or_default()
}

fn parse_tool_calls(list: &Value) -> Vec<ChatToolCall> {
    let call = |call: &Value| {
        let text = |name: &str| call.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        // In JSON, arguments are what they are, and a text where they are no JSON.
        let arguments = match call.get("args") {
            Some(Value::String(arguments)) => arguments.clone(),
            Some(arguments) => arguments.to_string(),
            None => "{}".to_owned(),
        };
        ChatToolCall { call_id: text("call_id"), tool: text("tool"), arguments }
    };
    list.as_array().map(|list| list.iter().map(call).collect()).unwrap_or_default()
}
