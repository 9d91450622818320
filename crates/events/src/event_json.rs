//! Seed 002's event format: how events look to people and to clients of HTTP, WebSocket and the CLI.
//!
//! A message that holds several events (a decision, an invoke) becomes several of them here, each with its own id.

#![allow(clippy::indexing_slicing, reason = "indexing a serde_json::Value yields null, it does not panic")]

mod descriptions;

use jiff::Timestamp;
use kairo_proto::{
    About, Body, Decided,
    about::{Chain, Tool, Turn},
    time,
    v1::{self, AgentDecision, AgentRequest, agent_action::Action, decided_event::Event},
    words::RequestKind,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{
    envelope::{Modality, Origin},
    ids,
    principal::Principal,
    record::Record,
};

/// Placeholder for words that nobody can read any more.
const FORGOTTEN: &str = "(forgotten)";

/// An event in seed 002's form, with its place in the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventJson {
    pub event_id: Uuid,
    pub ts: Timestamp,
    /// user, tool, system or internal.
    pub source: String,
    /// text, image, audio or state.
    pub modality: String,
    /// The content of the event; its `text` is for people.
    pub payload: Value,
    pub meta: EventJsonMeta,
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
    /// The principal that entered it, as the gateway knew it: `api_key:<id>`, `unauthenticated:loopback`. None for an
    /// event that nobody entered.
    #[serde(default)]
    pub entered_by: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventJsonMeta {
    pub tags: Vec<String>,
}

/// As the contract has it.
impl From<EventJson> for v1::Event {
    fn from(event: EventJson) -> Self {
        Self {
            event_id: event.event_id.to_string(),
            ts: Some(time::message(event.ts)),
            source: event.source,
            modality: event.modality,
            payload: Some((&event.payload).into()),
            meta: Some(v1::EventMeta { tags: event.meta.tags }),
            r#type: event.type_name,
            sequence: event.sequence,
            position: event.position,
            subject: event.subject,
            correlation_id: event.correlation_id.to_string(),
            causation_id: event.causation_id.map(|id| id.to_string()),
            thread_id: event.thread_id,
            entered_by: event.entered_by,
        }
    }
}

/// The id of the event that says an action has begun.
pub fn invocation_id(action: Uuid) -> Uuid {
    ids::derive(action, "invoke")
}

/// The identity of an event, without its content.
#[derive(Clone, Debug, PartialEq)]
pub struct EventHeading {
    /// Position of the event within its message, from 0.
    pub position: u32,
    pub event_id: Uuid,
    pub type_name: &'static str,
    pub correlation_id: Uuid,
    pub causation_id: Option<Uuid>,
    pub thread_id: Option<String>,
}

/// Returns the headings of the events of a record, in order; cheap, as none of their content is read.
pub fn headings(record: &Record) -> Vec<EventHeading> {
    let one = || vec![single_event_heading(record, record.body.type_name())];
    match record.body.about() {
        About::Decision(decision) => {
            let events = decision.events.iter().zip(0..);
            events.filter_map(|(event, position)| decided_heading(record, event, position)).collect()
        }
        About::Tool(Tool::Invoke(invoke)) => {
            let actions = invoke.actions.iter().zip(0..);
            actions.map(|(action, position)| invocation_heading(record, action, position)).collect()
        }
        About::Tool(Tool::Order(_) | Tool::Progress(_) | Tool::Result(_)) | About::Process(_) => one(),
        About::User(_) | About::Agent(_) | About::Decided(_) | About::Outside(_) => one(),
        About::System(_) | About::Live(_) => one(),
    }
}

/// The ids of the events that a message holds, where it holds several: what others name as their cause, and no header
/// but [`HELD`](crate::envelope::HELD) tells of.
pub fn contained_event_ids(body: &Body) -> Vec<Uuid> {
    match body.about() {
        About::Decision(decision) => {
            decision.events.iter().filter_map(|event| Uuid::parse_str(&event.event_id).ok()).collect()
        }
        About::Tool(Tool::Invoke(invoke)) => {
            let actions = invoke.actions.iter().filter_map(|action| Uuid::parse_str(&action.action_id).ok());
            actions.map(invocation_id).collect()
        }
        About::Tool(Tool::Order(_) | Tool::Progress(_) | Tool::Result(_)) | About::Process(_) => Vec::new(),
        About::User(_) | About::Agent(_) | About::Decided(_) | About::Outside(_) => Vec::new(),
        About::System(_) | About::Live(_) => Vec::new(),
    }
}

/// The id by which others name a record as their cause: of a message that holds several events, which is none itself, the last of
/// what it decided on tasks or, without such, the last event; of one that holds none, its own cause.
pub fn cause_id(record: &Record) -> Option<Uuid> {
    let Some(decision) = AgentDecision::of(&record.body) else {
        return contained_event_ids(&record.body).pop().or(Some(record.envelope.id));
    };
    let is_of_task =
        |event: &v1::DecidedEvent| event.event.as_ref().is_some_and(|event| matches!(event.about(), Decided::Task(_)));
    let of_task = decision.events.iter().rev().find(|event| is_of_task(event));
    let event = of_task.or(decision.events.last());
    event.map_or(record.envelope.causation_id, |event| Uuid::parse_str(&event.event_id).ok())
}

/// The events of a record, in order.
pub fn events(record: &Record) -> Vec<EventJson> {
    headings(record).into_iter().map(|heading| to_event_json(record, heading)).collect()
}

/// A message that is one event.
fn single_event_heading(record: &Record, type_name: &'static str) -> EventHeading {
    let envelope = &record.envelope;
    EventHeading {
        position: 0,
        event_id: envelope.id,
        type_name,
        correlation_id: envelope.correlation_id,
        causation_id: asking_action(record).or(envelope.causation_id),
        thread_id: envelope.thread_id.clone(),
    }
}

/// The event that has another agent asked, told from the ids of a request: logs of before epoch 10 name the decision that holds it,
/// which is no event.
fn asking_action(record: &Record) -> Option<Uuid> {
    let request = AgentRequest::of(&record.body)?;
    let action = Uuid::parse_str(&request.request_id).ok()?;
    (ids::derive(action, "request") == record.envelope.id).then_some(action)
}

fn decided_heading(record: &Record, event: &v1::DecidedEvent, position: u32) -> Option<EventHeading> {
    Some(EventHeading {
        position,
        event_id: Uuid::parse_str(&event.event_id).unwrap_or_default(),
        correlation_id: Uuid::parse_str(&event.correlation_id).unwrap_or(record.envelope.correlation_id),
        thread_id: (!event.thread_id.is_empty()).then(|| event.thread_id.clone()),
        ..single_event_heading(record, event.event.as_ref()?.type_name())
    })
}

fn invocation_heading(record: &Record, action: &v1::ToolInvocation, position: u32) -> EventHeading {
    let action_id = Uuid::parse_str(&action.action_id).unwrap_or_default();
    EventHeading {
        position,
        event_id: invocation_id(action_id),
        causation_id: Some(action_id),
        thread_id: (!action.thread_id.is_empty()).then(|| action.thread_id.clone()),
        ..single_event_heading(record, record.body.type_name())
    }
}

fn to_event_json(record: &Record, heading: EventHeading) -> EventJson {
    let envelope = &record.envelope;
    let (mut payload, tags, origin) = event_content(record, heading.position);
    if is_forgotten(record, heading.position) {
        payload["text"] = FORGOTTEN.into();
    }
    EventJson {
        event_id: heading.event_id,
        ts: envelope.time,
        source: origin.as_str().to_owned(),
        modality: event_modality(record, heading.position).as_str().to_owned(),
        payload,
        meta: EventJsonMeta { tags },
        type_name: heading.type_name.to_owned(),
        sequence: record.sequence,
        position: heading.position,
        subject: record.subject.clone(),
        correlation_id: heading.correlation_id,
        causation_id: heading.causation_id,
        thread_id: heading.thread_id,
        entered_by: envelope.entered_by.as_ref().map(Principal::to_string),
    }
}

/// Returns true if nobody can read the content of an event any more.
fn is_forgotten(record: &Record, position: u32) -> bool {
    let envelope = &record.envelope;
    let owner = envelope.owners.owner_of_part(usize::try_from(position).unwrap_or(usize::MAX));
    owner.is_some_and(|owner| envelope.forgotten.contains(owner))
}

/// Returns the content of the event at a position, its tags, and its origin.
fn event_content(record: &Record, position: u32) -> (Value, Vec<String>, Origin) {
    let envelope = &record.envelope;
    let at = usize::try_from(position).unwrap_or(usize::MAX);
    let one = || (body_payload(&record.body), envelope.tags.clone(), envelope.origin);
    match record.body.about() {
        About::Decision(decision) => {
            let event = decision.events.get(at).and_then(|event| event.event.as_ref());
            let tags = vec!["decision".to_owned(), event.map_or("thread", decision_tag).to_owned()];
            (event.cloned().map(|event| body_payload(&event.into())).unwrap_or_default(), tags, envelope.origin)
        }
        About::Tool(Tool::Invoke(invoke)) => {
            let action = invoke.actions.get(at).map(|action| invocation_payload(invoke, action));
            (action.unwrap_or_default(), envelope.tags.clone(), Origin::Tool)
        }
        About::Tool(Tool::Order(_) | Tool::Progress(_) | Tool::Result(_)) | About::Process(_) => one(),
        About::User(_) | About::Agent(_) | About::Decided(_) | About::Outside(_) => one(),
        About::System(_) | About::Live(_) => one(),
    }
}

/// Returns the modality of the event at a position: in a decision, a change of the agent's inner state is state.
fn event_modality(record: &Record, position: u32) -> Modality {
    let decision = AgentDecision::of(&record.body);
    let event = decision.and_then(|it| it.events.get(usize::try_from(position).unwrap_or(usize::MAX))?.event.as_ref());
    match event.map(Event::about) {
        Some(Decided::State(_)) => Modality::State,
        Some(Decided::Turn(_) | Decided::Thread(_) | Decided::Chain(_) | Decided::Task(_) | Decided::Memory(_))
        | None => record.envelope.modality,
    }
}

/// Returns the tag for the kind of event that was decided.
fn decision_tag(event: &Event) -> &'static str {
    match event.about() {
        Decided::Turn(Turn::Thought(_)) => "thought",
        Decided::Turn(Turn::Action(_)) => "action",
        Decided::Turn(Turn::Failed(_)) => "failure",
        Decided::Turn(Turn::Joined(_)) => "joined",
        Decided::Turn(Turn::Goal(_)) => "goal",
        Decided::Turn(Turn::Reflected(_)) => "reflection",
        Decided::Turn(Turn::Answered(_)) => "answer",
        Decided::Turn(Turn::Briefed(_)) => "briefing",
        Decided::Turn(Turn::TeamChanged(_)) => "team",
        Decided::Turn(Turn::SubmoduleChanged(_)) => "submodule",
        Decided::Turn(Turn::SubmoduleFailed(_)) => "failure",
        Decided::Turn(Turn::SubmoduleAsked(_)) => "question",
        Decided::Turn(Turn::Broadcast(_)) => "broadcast",
        Decided::Thread(_) => "thread",
        Decided::Chain(Chain::ApprovalRequested(_)) => "approval",
        Decided::Chain(Chain::Started(_) | Chain::StepEnded(_) | Chain::Ended(_)) => "chain",
        Decided::Task(_) => "task",
        Decided::Memory(_) => "memory",
        Decided::State(_) => "state",
    }
}

fn invocation_payload(invoke: &v1::ToolInvoke, action: &v1::ToolInvocation) -> Value {
    json!({
        "text": format!("{} {}", action.tool, action.arguments),
        "action_id": action.action_id,
        "tool": action.tool,
        "args": parse_nested(&action.arguments),
        "executor": action.executor,
        "runner": invoke.runner,
    })
}

/// Most are shown as they are.
fn body_payload(body: &Body) -> Value {
    if let Body::AgentAction(v1::AgentAction { action: Some(action) }) = body {
        action_payload(action)
    } else if let Body::ToolResult(result) = body {
        tool_result_payload(result)
    } else {
        payload_with_text(body)
    }
}

fn action_payload(action: &Action) -> Value {
    match action {
        Action::Say(say) => say_payload(say),
        Action::ToolCall(call) => tool_call_payload(call),
        Action::Ask(ask) => ask_payload(ask),
    }
}

fn say_payload(say: &v1::Say) -> Value {
    let mut payload = json!({
        "type": "say",
        "text": say.text,
        "user": say.user,
        "message_id": say.message_id,
        "final": say.r#final,
    });
    for (name, word) in [("ending", &say.ending), ("failure", &say.failure)] {
        if !word.is_empty() {
            payload[name] = json!(word);
        }
    }
    if !say.client_calls.is_empty() {
        let call = |call: &v1::CompletionToolCall| json!({ "call_id": call.call_id, "tool": call.tool, "args": parse_nested(&call.arguments) });
        payload["client_calls"] = say.client_calls.iter().map(call).collect();
    }
    payload
}

fn ask_payload(ask: &v1::Ask) -> Value {
    let mut payload = json!({
        "type": "ask",
        "text": format!("{} {} {}{}", ask.kind, ask.agent, ask.title, ask.request_id).trim_end(),
        "agent": ask.agent,
        "kind": ask.kind,
        "user": ask.user,
    });
    let said =
        [("request_id", &ask.request_id), ("title", &ask.title), ("task", &ask.text), ("chain_id", &ask.chain_id)];
    for (name, said) in said.into_iter().filter(|(_, said)| !said.is_empty()) {
        payload[name] = json!(said);
    }
    if !ask.chain_id.is_empty() {
        payload["step"] = json!(ask.step);
    }
    if ask.kind_word() == RequestKind::Call {
        payload["tool"] = json!(ask.tool);
        payload["args"] = parse_nested(&ask.arguments);
    }
    payload
}

fn tool_call_payload(call: &v1::ToolCall) -> Value {
    let mut payload = json!({
        "type": "tool_call",
        "text": format!("{} {}", call.tool, call.arguments),
        "tool": call.tool,
        "args": parse_nested(&call.arguments),
    });
    if !call.chain_id.is_empty() {
        payload["chain_id"] = json!(call.chain_id);
        payload["step"] = json!(call.step);
    }
    payload
}

fn tool_result_payload(result: &v1::ToolResult) -> Value {
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
        payload["result"] = parse_nested(&result.result);
    } else {
        payload["text"] = json!(format!("{kind}: {message}"));
        payload["error"] = json!(kind);
        payload["message"] = json!(message);
    }
    if result.late {
        payload["late"] = json!(true);
    }
    if !result.outside.is_empty() {
        payload["outside"] = json!(result.outside);
    }
    if !result.parts.is_empty() {
        let part = |part: &v1::Part| json!({ "media_type": part.media_type, "digest": part.digest, "size": part.size.to_string() });
        payload["parts"] = result.parts.iter().map(part).collect();
    }
    payload
}

/// The body as it is, and beside it what it says to people.
fn payload_with_text(body: &Body) -> Value {
    let Value::Object(mut fields) = body.to_json() else { return json!({}) };
    if !fields.contains_key("text") {
        let text = descriptions::describe_body(body);
        let mut first = Map::from_iter([("text".to_owned(), Value::String(text))]);
        first.append(&mut fields);
        fields = first;
    }
    // Of a message: JSON, as it was given.
    let is_message = matches!(body, Body::UserMessage(_) | Body::AgentMessage(_));
    if let Some(Value::String(state)) = fields.get("state").filter(|_| is_message) {
        let state = parse_nested(state);
        fields.insert("state".to_owned(), state);
    }
    Value::Object(fields)
}

/// JSON kept as text, as JSON; what is not JSON stays text.
fn parse_nested(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// The beginnings of texts by which builds before epoch 10 told people of a failure.
const OLD_FAILURES: [&str; 2] = ["I could not finish this", "I cannot "];

impl EventJson {
    /// Returns its text for people; empty if it has none.
    pub fn text(&self) -> &str {
        self.payload.get("text").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns why the turn failed, if the text tells people of a failure; empty for an answer.
    pub fn failure(&self) -> &str {
        self.payload.get("failure").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns true if the text tells people that the turn failed. Builds before epoch 10 did not mark such texts: they
    /// are known by their beginnings if `after_failure`, if the turn has failed at something that was not retried.
    pub fn tells_of_failure(&self, after_failure: bool) -> bool {
        let is_old = || OLD_FAILURES.iter().any(|beginning| self.text().starts_with(beginning));
        !self.failure().is_empty() || after_failure && is_old()
    }

    /// Returns true if this is the reply that ends the turn.
    pub fn is_final_reply(&self) -> bool {
        self.payload.get("type").and_then(Value::as_str) == Some("say")
            && self.payload.get("final").and_then(Value::as_bool) == Some(true)
    }
}
