//! Seed 002's event format: how events look to people and to clients of HTTP, WebSocket and the CLI.
//!
//! A message that holds several events (a decision, an invoke) becomes several of them here, each with its own id.

#![allow(clippy::indexing_slicing, reason = "indexing a serde_json::Value yields null, it does not panic")]

mod words;

use jiff::Timestamp;
use kairo_proto::{
    Body,
    v1::{self, agent_action::Action},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{envelope::Origin, ids, media, record::Record};

/// An event in seed 002's form, with its place in the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventJson {
    pub event_id: Uuid,
    pub ts: Timestamp,
    /// user, tool, system or internal.
    pub source: String,
    /// text, image, audio or state.
    pub modality: String,
    /// What it says; `text` says it to people.
    pub payload: Value,
    pub meta: Meta,
    #[serde(rename = "type")]
    pub type_name: String,
    /// Sequence of the message in the log.
    pub sequence: u64,
    /// Position of the event within its message, from 0.
    pub position: u32,
    pub subject: String,
    pub correlation_id: Uuid,
    pub causation_id: Option<Uuid>,
    pub thread_id: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    pub tags: Vec<String>,
}

/// The id of the event that says an action has begun.
pub fn invocation_id(action: Uuid) -> Uuid {
    ids::derived(action, "invoke")
}

/// What tells an event from others, without what it says.
#[derive(Clone, Debug, PartialEq)]
pub struct Heading {
    /// Position of the event within its message, from 0.
    pub position: u32,
    pub event_id: Uuid,
    pub type_name: &'static str,
    pub correlation_id: Uuid,
    pub causation_id: Option<Uuid>,
    pub thread_id: Option<String>,
}

/// What the events of a record are, in order; cheap, as nothing of what they say is read.
pub fn headings(record: &Record) -> Vec<Heading> {
    match &record.body {
        Body::AgentDecision(decision) => {
            let events = decision.events.iter().zip(0..);
            events.filter_map(|(event, position)| decided(record, event, position)).collect()
        }
        Body::ToolInvoke(invoke) => {
            let actions = invoke.actions.iter().zip(0..);
            actions.map(|(action, position)| invoked(record, action, position)).collect()
        }
        body => vec![whole(record, body.type_name())],
    }
}

/// The events of a record, in order.
pub fn events(record: &Record) -> Vec<EventJson> {
    headings(record).into_iter().map(|heading| shown(record, heading)).collect()
}

/// A message that is one event.
fn whole(record: &Record, type_name: &'static str) -> Heading {
    let envelope = &record.envelope;
    Heading {
        position: 0,
        event_id: envelope.id,
        type_name,
        correlation_id: envelope.correlation_id,
        causation_id: envelope.causation_id,
        thread_id: envelope.thread_id.clone(),
    }
}

fn decided(record: &Record, event: &v1::DecidedEvent, position: u32) -> Option<Heading> {
    Some(Heading {
        position,
        event_id: Uuid::parse_str(&event.event_id).unwrap_or_default(),
        correlation_id: Uuid::parse_str(&event.correlation_id).unwrap_or(record.envelope.correlation_id),
        thread_id: (!event.thread_id.is_empty()).then(|| event.thread_id.clone()),
        ..whole(record, event.event.as_ref()?.type_name())
    })
}

fn invoked(record: &Record, action: &v1::ToolInvocation, position: u32) -> Heading {
    let action_id = Uuid::parse_str(&action.action_id).unwrap_or_default();
    Heading {
        position,
        event_id: invocation_id(action_id),
        causation_id: Some(action_id),
        thread_id: (!action.thread_id.is_empty()).then(|| action.thread_id.clone()),
        ..whole(record, record.body.type_name())
    }
}

fn shown(record: &Record, heading: Heading) -> EventJson {
    let envelope = &record.envelope;
    let (payload, tags, origin) = said(record, heading.position);
    EventJson {
        event_id: heading.event_id,
        ts: envelope.time,
        source: origin.as_str().to_owned(),
        modality: envelope.modality.as_str().to_owned(),
        payload,
        meta: Meta { tags },
        type_name: heading.type_name.to_owned(),
        sequence: record.sequence,
        position: heading.position,
        subject: record.subject.clone(),
        correlation_id: heading.correlation_id,
        causation_id: heading.causation_id,
        thread_id: heading.thread_id,
    }
}

/// What the event at a position says, its tags, and who it comes from.
fn said(record: &Record, position: u32) -> (Value, Vec<String>, Origin) {
    let envelope = &record.envelope;
    let at = usize::try_from(position).unwrap_or(usize::MAX);
    match &record.body {
        Body::AgentDecision(decision) => {
            let body = decision.events.get(at).and_then(|event| event.event.clone()).map(Body::from);
            let tags = vec!["decision".to_owned(), body.as_ref().map_or("thread", tag).to_owned()];
            (body.as_ref().map(payload).unwrap_or_default(), tags, envelope.origin)
        }
        Body::ToolInvoke(invoke) => {
            let action = invoke.actions.get(at).map(|action| invocation(invoke, action));
            (action.unwrap_or_default(), envelope.tags.clone(), Origin::Tool)
        }
        body => (payload(body), envelope.tags.clone(), envelope.origin),
    }
}

/// What kind of thing was decided.
fn tag(body: &Body) -> &'static str {
    match body {
        Body::AgentThought(_) => "thought",
        Body::AgentAction(_) => "action",
        Body::AgentFailed(_) => "failure",
        Body::AgentJoined(_) => "joined",
        Body::ChainStarted(_) | Body::ChainStepEnded(_) | Body::ChainEnded(_) => "chain",
        Body::ApprovalRequested(_) => "approval",
        Body::TaskScheduled(_) | Body::TaskFired(_) | Body::TaskChanged(_) => "task",
        Body::MemoryAppended(_) => "memory",
        _ => "thread",
    }
}

fn invocation(invoke: &v1::ToolInvoke, action: &v1::ToolInvocation) -> Value {
    json!({
        "text": format!("{} {}", action.tool, action.arguments),
        "action_id": action.action_id,
        "tool": action.tool,
        "args": nested(&action.arguments),
        "executor": action.executor,
        "runner": invoke.runner,
    })
}

fn payload(body: &Body) -> Value {
    match body {
        Body::AgentAction(v1::AgentAction { action: Some(Action::Say(say)) }) => json!({
            "type": "say",
            "text": say.text,
            "user": say.user,
            "message_id": say.message_id,
            "final": say.r#final,
        }),
        Body::AgentAction(v1::AgentAction { action: Some(Action::ToolCall(call)) }) => tool_call(call),
        Body::ToolResult(result) => tool_result(result),
        other => with_text(other),
    }
}

fn tool_call(call: &v1::ToolCall) -> Value {
    let mut payload = json!({
        "type": "tool_call",
        "text": format!("{} {}", call.tool, call.arguments),
        "tool": call.tool,
        "args": nested(&call.arguments),
    });
    if !call.chain_id.is_empty() {
        payload["chain_id"] = json!(call.chain_id);
        payload["step"] = json!(call.step);
    }
    payload
}

fn tool_result(result: &v1::ToolResult) -> Value {
    let (kind, message) = result.error.as_ref().map_or(("", ""), |error| (error.kind.as_str(), error.message.as_str()));
    let mut payload = json!({
        "action_id": result.action_id,
        "tool": result.tool,
        "ok": result.ok,
        "duration_ms": result.duration_ms,
        "runner": result.runner,
    });
    if result.ok {
        payload["text"] = json!(result.result);
        payload["result"] = nested(&result.result);
    } else {
        payload["text"] = json!(format!("{kind}: {message}"));
        payload["error"] = json!(kind);
        payload["message"] = json!(message);
    }
    payload
}

/// The body as it is, and beside it what it says to people.
fn with_text(body: &Body) -> Value {
    let Value::Object(mut fields) = body.to_json() else { return json!({}) };
    if !fields.contains_key("text") {
        let text = text(body);
        let mut first = Map::from_iter([("text".to_owned(), Value::String(text))]);
        first.append(&mut fields);
        fields = first;
    }
    Value::Object(fields)
}

fn text(body: &Body) -> String {
    match body {
        Body::UserMessage(v1::UserMessage { parts, .. }) | Body::AgentMessage(v1::AgentMessage { parts, .. }) => {
            media::in_words("", parts)
        }
        Body::AgentFailed(failed) => format!("{}: {}", failed.kind, failed.message),
        Body::UserMessageUndelivered(undelivered) => undelivered.reason.clone(),
        Body::AgentDefined(v1::AgentDefined { profile }) => {
            profile.as_ref().map(|profile| profile.description.clone()).unwrap_or_default()
        }
        Body::ThreadCreated(_)
        | Body::ThreadMatched(_)
        | Body::ThreadSuggested(_)
        | Body::ThreadSummarized(_)
        | Body::ThreadArchived(_) => words::of_thread(body),
        Body::ChainStarted(_) | Body::ChainStepEnded(_) | Body::ChainEnded(_) => words::of_chain(body),
        Body::ApprovalRequested(requested) => {
            format!("may {} be called by {}? {}", requested.tool, requested.user, requested.arguments)
        }
        Body::TaskScheduled(_)
        | Body::TaskFired(_)
        | Body::TaskChanged(_)
        | Body::TaskDue(_)
        | Body::TaskTriggered(_) => words::of_task(body),
        Body::MemoryAppended(memory) => words::of_memory(memory),
        Body::EmailReceived(mail) => format!("from {}: {}", mail.sender, mail.subject),
        Body::AgentJoined(joined) => format!("answered together with {}", joined.into_message_id),
        Body::UserChoice(v1::UserChoice { option, offer_id, .. })
        | Body::AgentChoice(v1::AgentChoice { option, offer_id, .. }) => format!("{option} (of {offer_id})"),
        Body::UserApproval(v1::UserApproval { verdict, action_id, note, .. })
        | Body::AgentApproval(v1::AgentApproval { verdict, action_id, note, .. }) => {
            format!("{verdict} ({action_id}) {note}").trim_end().to_owned()
        }
        Body::UserCommand(v1::UserCommand { command, action_id, process_id, chain_id, task_id, thread_id, .. })
        | Body::AgentCommand(v1::AgentCommand {
            command, action_id, process_id, chain_id, task_id, thread_id, ..
        }) => {
            format!("{command} {action_id}{process_id}{chain_id}{task_id}{thread_id}")
        }
        Body::ToolProgress(v1::ToolProgress { fraction, message, .. })
        | Body::ProcessProgress(v1::ProcessProgress { fraction, message, .. }) => match fraction {
            Some(fraction) => format!("{:.0} % {message}", fraction * 100.0).trim_end().to_owned(),
            None => message.clone(),
        },
        Body::ProcessCanceled(canceled) => format!("asked to end within {} ms", canceled.grace_ms),
        Body::ProcessSpawned(spawned) => {
            format!("{} {} (pid {})", spawned.program, spawned.arguments.join(" "), spawned.pid)
        }
        Body::ProcessExited(exited) => match (exited.code, exited.signal) {
            (Some(code), _) => format!("{} with code {code}", exited.outcome),
            (None, Some(signal)) => format!("{} by signal {signal}", exited.outcome),
            (None, None) => format!("{}: {}", exited.outcome, exited.reason),
        },
        Body::ToolCatalogue(v1::ToolCatalogue { tools, .. })
        | Body::ProcessCapabilities(v1::ProcessCapabilities { tools, .. }) => {
            tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(" ")
        }
        Body::DeadLetter(letter) => letter.reason.clone(),
        _ => String::new(),
    }
}

/// JSON kept as text, as JSON; what is not JSON stays text.
fn nested(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

impl EventJson {
    /// What it says to people.
    pub fn text(&self) -> &str {
        self.payload.get("text").and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether this is the reply that ends the turn.
    pub fn is_final_reply(&self) -> bool {
        self.payload.get("type").and_then(Value::as_str) == Some("say")
            && self.payload.get("final").and_then(Value::as_bool) == Some(true)
    }
}
