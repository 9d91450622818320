//! The bytes of an answer: one JSON body, or a stream of server-sent events.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use crate::answer::{ErrorReply, ReplyMessage, ReplyToolCall, SimulatedAnswer};
use crate::scenario::{Fault, ReasoningForm};

/// The parts that make an answer's ids unlike any other's.
#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    /// Differs between two runs of the server.
    pub run: u64,
    /// Differs between two requests of a run.
    pub request: u64,
    /// When the answer was made, in seconds since 1970.
    pub created: u64,
}

/// The delivery that the client wants of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    Whole,
    Stream { include_usage: bool },
}

/// A step in sending a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    Data(Bytes),
    /// Send nothing for so many milliseconds.
    Wait(u64),
    /// Send nothing more, and keep the connection open until the client leaves.
    Stall,
    /// Break the connection off.
    Cut,
}

/// An answer as it goes over the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireAnswer {
    pub status: u16,
    pub content_type: String,
    /// Names and values, beside the content type.
    pub headers: Vec<(String, String)>,
    pub frames: Vec<Frame>,
    /// True if each frame is written by itself: it matters where the bytes are cut.
    pub is_apart: bool,
}

impl WireAnswer {
    /// A body of JSON.
    #[must_use]
    pub fn json(status: u16, body: Bytes) -> Self {
        let content_type = "application/json".to_owned();
        Self { status, content_type, headers: Vec::new(), frames: vec![Frame::Data(body)], is_apart: false }
    }
}

#[derive(Serialize)]
struct WireUsage {
    prompt_tokens: u32,
    completion_tokens: u32,
    total_tokens: u32,
}

#[derive(Serialize)]
struct Function<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    arguments: &'a str,
}

#[derive(Serialize)]
struct WireCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none", rename = "type")]
    kind: Option<&'static str>,
    function: Function<'a>,
}

#[derive(Default, Serialize)]
struct MessageOrDelta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    reasoning_details: &'a [Value],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
}

#[derive(Serialize)]
struct WireChoice<'a> {
    index: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<MessageOrDelta<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<MessageOrDelta<'a>>,
    finish_reason: Option<&'a str>,
}

#[derive(Serialize)]
struct WireCompletion<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: Vec<WireChoice<'a>>,
    /// Absent, `null` or there: a stream with usage has `null` in all chunks but the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Option<WireUsage>>,
}

impl<'a> MessageOrDelta<'a> {
    /// Adds reasoning, in the fields of its form.
    fn with_reasoning(self, reasoning: Option<&'a str>, form: ReasoningForm) -> Self {
        let (reasoning_content, reasoning) = match form {
            ReasoningForm::ReasoningContent => (reasoning, None),
            ReasoningForm::Reasoning => (None, reasoning),
            ReasoningForm::Both => (reasoning, reasoning),
            // It stands in the text.
            ReasoningForm::Think | ReasoningForm::Thinking => (None, None),
        };
        Self { reasoning_content, reasoning, ..self }
    }
}

/// A message as it is sent, in its forms, fault and all.
#[must_use]
pub fn to_wire_answer(
    answer: &SimulatedAnswer<'_>,
    message: &ReplyMessage,
    model: &str,
    stamp: Stamp,
    delivery: Delivery,
) -> WireAnswer {
    let content_type = if delivery == Delivery::Whole { "application/json" } else { "text/event-stream" };
    let frames = frames(answer, message, model, stamp, delivery);
    let sent =
        WireAnswer { status: 200, content_type: content_type.to_owned(), headers: Vec::new(), frames, is_apart: false };
    answer.forms.iter().fold(sent, |sent, form| form.shape(sent, delivery))
}

/// The steps in which a message is sent, fault and all.
#[must_use]
pub fn frames(
    answer: &SimulatedAnswer<'_>,
    message: &ReplyMessage,
    model: &str,
    stamp: Stamp,
    delivery: Delivery,
) -> Vec<Frame> {
    let mut frames = match delivery {
        Delivery::Whole => {
            let body = whole(message, model, stamp);
            if answer.fault.is_none() {
                vec![Frame::Data(body)]
            } else {
                let half = body.len() / 2;
                vec![Frame::Data(body.slice(..half)), Frame::Data(body.slice(half..))]
            }
        }
        Delivery::Stream { include_usage } => {
            let stream = CompletionStream { id: completion_id(stamp), model, stamp, include_usage };
            stream.events(message, answer.pace.chunk_chars).into_iter().map(Frame::Data).collect()
        }
    };
    if let Some(fault) = answer.fault {
        spoil(&mut frames, fault, delivery);
    }
    frames
}

fn spoil(frames: &mut Vec<Frame>, fault: Fault, delivery: Delivery) {
    let half = frames.len() / 2;
    match fault {
        Fault::Hang => *frames = vec![Frame::Stall],
        Fault::Stall => {
            frames.truncate(half);
            frames.push(Frame::Stall);
        }
        Fault::Truncate => frames.truncate(half),
        Fault::Drop => {
            frames.truncate(half);
            frames.push(Frame::Cut);
        }
        Fault::InvalidJson if delivery == Delivery::Whole => {
            *frames = vec![Frame::Data(Bytes::from_static(b"{\"id\": \"chatcmpl-sim\", choices"))];
        }
        Fault::InvalidJson => {
            let broken = Bytes::from_static(b"data: {\"id\": \"chatcmpl-sim\", choices\n\n");
            frames.insert(half, Frame::Data(broken));
        }
    }
}

fn completion_id(stamp: Stamp) -> String {
    format!("chatcmpl-sim-{:x}-{}", stamp.run, stamp.request)
}

fn call_id(call: &ReplyToolCall, index: usize, stamp: Stamp) -> String {
    let made = || format!("call_{:x}_{}_{index}", stamp.run, stamp.request);
    call.id.clone().unwrap_or_else(made)
}

fn usage(message: &ReplyMessage) -> WireUsage {
    WireUsage {
        prompt_tokens: message.prompt_tokens,
        completion_tokens: message.completion_tokens,
        total_tokens: message.prompt_tokens.saturating_add(message.completion_tokens),
    }
}

fn whole(message: &ReplyMessage, model: &str, stamp: Stamp) -> Bytes {
    let ids: Vec<_> = message.tool_calls.iter().enumerate().map(|(index, call)| call_id(call, index, stamp)).collect();
    let calls = message.tool_calls.iter().zip(&ids).map(|(call, id)| WireCall {
        index: None,
        id: Some(id),
        kind: Some("function"),
        function: Function { name: Some(&call.name), arguments: &call.arguments },
    });
    let said = MessageOrDelta {
        role: Some("assistant"),
        content: message.text.as_deref(),
        tool_calls: calls.collect(),
        reasoning_details: &message.reasoning_details,
        ..MessageOrDelta::default()
    };
    let said = said.with_reasoning(message.reasoning.as_deref(), message.reasoning_form);
    json_bytes(&WireCompletion {
        id: &completion_id(stamp),
        object: "chat.completion",
        created: stamp.created,
        model,
        choices: vec![WireChoice {
            index: 0,
            message: Some(said),
            delta: None,
            finish_reason: Some(&message.finish_reason),
        }],
        usage: Some(Some(usage(message))),
    })
}

/// An item with the first half of its data, and the rest of that, if it can be told which item it belongs to.
fn split_encrypted(item: &Value) -> (Value, Option<Value>) {
    let data = item.get("data").and_then(Value::as_str).filter(|data| data.is_ascii());
    let (Some(data), Some(index)) = (data, item.get("index")) else { return (item.clone(), None) };
    let (first, rest) = data.split_at(data.len() / 2);
    let mut head = item.clone();
    if let Some(fields) = head.as_object_mut() {
        fields.insert("data".to_owned(), Value::from(first));
    }
    (head, Some(json!({ "type": item.get("type"), "index": index, "data": rest })))
}

struct CompletionStream<'a> {
    id: String,
    model: &'a str,
    stamp: Stamp,
    include_usage: bool,
}

impl CompletionStream<'_> {
    fn events(&self, message: &ReplyMessage, chunk_chars: usize) -> Vec<Bytes> {
        let mut events = vec![self.delta(MessageOrDelta { role: Some("assistant"), ..MessageOrDelta::default() })];
        for part in pieces(message.reasoning.as_deref().unwrap_or_default(), chunk_chars) {
            events.push(self.delta(MessageOrDelta::default().with_reasoning(Some(part), message.reasoning_form)));
        }
        for item in &message.reasoning_details {
            // What is encrypted comes in two pieces.
            let (head, rest) = split_encrypted(item);
            for piece in [Some(head), rest].into_iter().flatten() {
                events.push(self.delta(MessageOrDelta {
                    reasoning_details: std::slice::from_ref(&piece),
                    ..MessageOrDelta::default()
                }));
            }
        }
        let text = message.text.as_deref().unwrap_or_default();
        let parts: Vec<&str> = match &message.chunk_ends {
            Some(ends) => split_at_ends(text, ends).collect(),
            None => pieces(text, chunk_chars).collect(),
        };
        for part in parts {
            events.push(self.delta(MessageOrDelta { content: Some(part), ..MessageOrDelta::default() }));
        }
        for (index, call) in message.tool_calls.iter().enumerate() {
            // Id and name come once, in a first delta without arguments.
            let id = call_id(call, index, self.stamp);
            events.push(self.call(index, Some((&id, &call.name)), ""));
            for part in pieces(&call.arguments, chunk_chars) {
                events.push(self.call(index, None, part));
            }
        }
        events.push(self.event(Some((MessageOrDelta::default(), Some(&message.finish_reason))), None));
        if self.include_usage {
            events.push(self.event(None, Some(usage(message))));
        }
        events.push(Bytes::from_static(b"data: [DONE]\n\n"));
        events
    }

    fn call(&self, index: usize, first: Option<(&str, &str)>, arguments: &str) -> Bytes {
        let call = WireCall {
            index: Some(index),
            id: first.map(|(id, _)| id),
            kind: first.map(|_| "function"),
            function: Function { name: first.map(|(_, name)| name), arguments },
        };
        self.delta(MessageOrDelta { tool_calls: vec![call], ..MessageOrDelta::default() })
    }

    fn delta(&self, said: MessageOrDelta<'_>) -> Bytes {
        self.event(Some((said, None)), None)
    }

    fn event(&self, said: Option<(MessageOrDelta<'_>, Option<&str>)>, usage: Option<WireUsage>) -> Bytes {
        let choice =
            said.map(|(said, finish_reason)| WireChoice { index: 0, message: None, delta: Some(said), finish_reason });
        let chunk = json_bytes(&WireCompletion {
            id: &self.id,
            object: "chat.completion.chunk",
            created: self.stamp.created,
            model: self.model,
            choices: choice.into_iter().collect(),
            usage: self.include_usage.then_some(usage),
        });
        Bytes::from([b"data: ".as_slice(), &chunk, b"\n\n"].concat())
    }
}

/// Splits a text into pieces of so many characters, never within one.
fn pieces(text: &str, chars: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(chars).map_or(rest.len(), |(index, _)| index);
        let (piece, remainder) = rest.split_at_checked(end)?;
        rest = remainder;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Splits a text behind so many characters from its beginning, which rise.
fn split_at_ends<'t>(text: &'t str, ends: &[usize]) -> impl Iterator<Item = &'t str> {
    let place = |end: &usize| text.char_indices().nth(*end).map_or(text.len(), |(index, _)| index);
    let places = ends.iter().map(place).chain([text.len()]);
    let mut begins = 0;
    places
        .map(move |end| text.get(std::mem::replace(&mut begins, end)..end).unwrap_or_default())
        .filter(|piece| !piece.is_empty())
}

/// The body of an error answer.
#[must_use]
pub fn error_body(error: &ErrorReply) -> Bytes {
    json_bytes(&json!({ "error": {
        "message": error.message,
        "type": error.kind,
        "param": null,
        "code": error.code,
    } }))
}

/// The body of `GET /v1/models`.
#[must_use]
pub fn models_body(models: &[String]) -> Bytes {
    let data: Vec<_> = models
        .iter()
        .map(|id| json!({ "id": id, "object": "model", "created": 0, "owned_by": "kairo-model-sim" }))
        .collect();
    json_bytes(&json!({ "object": "list", "data": data }))
}

/// Serializing these types into memory cannot fail: no map has a key that is not a string.
pub(crate) fn json_bytes(value: &impl Serialize) -> Bytes {
    Bytes::from(serde_json::to_vec(value).unwrap_or_default())
}

#[cfg(test)]
mod tests;
