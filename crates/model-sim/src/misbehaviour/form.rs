//! Forms in which real endpoints give an answer that is meant well: what a scenario says, in other bytes. Pure.
//!
//! A client must get the same out of all of them, except of those that [`WireForm::fails`], which it must survive by asking again.

mod whole;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    json::{at, remove_field, set_field},
    raw::{event, single_bytes},
    wire::response::{Delivery, Frame, WireAnswer, json_bytes},
};

/// The call in a chunk, and its arguments.
const CALL: &str = "/choices/0/delta/tool_calls/0";
const ARGUMENTS: &str = "/choices/0/delta/tool_calls/0/function/arguments";

/// A form by the name that scenarios know it by.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum WireForm {
    /// Lines end in a carriage return and a newline.
    Crlf,
    /// Comments, pings and empty data stand between the chunks.
    Noise,
    /// Each byte comes by itself.
    Split,
    /// The connection ends without `[DONE]`.
    NoDone,
    /// No chunk has a finish reason.
    NoFinish,
    /// Tokens are not told.
    NoUsage,
    /// Tokens are told as a fraction, as text and not at all.
    OddUsage,
    /// Every call has the index 0.
    SameIndex,
    /// No call has an index.
    NoIndex,
    /// The indexes of calls have gaps and fall.
    GappedIndex,
    /// The arguments of a call begin with `{}`, then come as they are.
    EmptyFirst,
    /// Arguments are JSON within a text within a text.
    EncodedTwice,
    /// Arguments are an object and no text.
    ObjectArguments,
    /// Behind arguments stands what a parser left over.
    TrailingRubbish,
    /// Names of tools have the prefix of another format.
    PrefixedName,
    /// All of it in one body of JSON, where a stream was asked for.
    WholeBody,
    /// 429, to be tried again at once.
    Busy,
    /// 503 with a page of HTML.
    HtmlError,
    /// 529 with an error that has no code.
    Overloaded,
    /// 200 with an error in place of an answer.
    ErrorBody,
    /// An error in the middle of the stream.
    ErrorInStream,
    /// A finish reason that says it failed.
    ErrorFinish,
    /// The connection breaks in the middle.
    Broken,
    /// An answer that says nothing.
    Empty,
}

impl WireForm {
    /// Those that a client must survive by itself: what misbehaviour at random is drawn from.
    pub const ALL: [Self; 24] = [
        Self::Crlf,
        Self::Noise,
        Self::Split,
        Self::NoDone,
        Self::NoFinish,
        Self::NoUsage,
        Self::OddUsage,
        Self::SameIndex,
        Self::NoIndex,
        Self::GappedIndex,
        Self::EmptyFirst,
        Self::EncodedTwice,
        Self::ObjectArguments,
        Self::TrailingRubbish,
        Self::PrefixedName,
        Self::WholeBody,
        Self::Busy,
        Self::HtmlError,
        Self::Overloaded,
        Self::ErrorBody,
        Self::ErrorInStream,
        Self::ErrorFinish,
        Self::Broken,
        Self::Empty,
    ];

    /// Returns true if no answer comes of it: the client has to retry.
    #[must_use]
    pub fn fails(self) -> bool {
        matches!(
            self,
            Self::Busy
                | Self::HtmlError
                | Self::Overloaded
                | Self::ErrorBody
                | Self::ErrorInStream
                | Self::ErrorFinish
                | Self::Broken
                | Self::Empty
        )
    }

    /// Its name in scenarios and journals.
    #[must_use]
    pub fn name(self) -> String {
        let mut name = String::new();
        for letter in format!("{self:?}").chars() {
            if letter.is_ascii_uppercase() && !name.is_empty() {
                name.push('_');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }

    /// A well-formed answer in this form.
    #[must_use]
    pub fn shape(self, mut sent: WireAnswer, delivery: Delivery) -> WireAnswer {
        match self {
            Self::Busy => return refusal(429, &json!({ "error": { "message": "slow down", "code": 429 } }), Some("0")),
            Self::HtmlError => return html_error(),
            Self::Overloaded => {
                return refusal(
                    529,
                    &json!({ "error": { "type": "overloaded_error", "message": "Overloaded" } }),
                    None,
                );
            }
            Self::ErrorBody => {
                return refusal(200, &json!({ "error": { "message": "upstream is away", "code": 502 } }), None);
            }
            Self::Split => {
                sent.frames = sent.frames.into_iter().flat_map(single_bytes).collect();
                sent.is_apart = true;
                return sent;
            }
            Self::Crlf => {
                sent.frames = sent.frames.into_iter().map(with_crlf).collect();
                return sent;
            }
            Self::Broken => {
                let half = sent.frames.len() / 2;
                sent.frames.truncate(half);
                sent.frames.push(Frame::Cut);
                sent.is_apart = true;
                return sent;
            }
            _ => {}
        }
        match delivery {
            Delivery::Whole => self.shape_body(sent),
            Delivery::Stream { .. } => self.shape_stream(sent),
        }
    }

    fn shape_body(self, mut sent: WireAnswer) -> WireAnswer {
        let Some(mut body) = sent.frames.first().and_then(data).and_then(|data| serde_json::from_slice(data).ok())
        else {
            return sent;
        };
        self.shape_json(&mut body, "message");
        match self {
            Self::ErrorInStream => set_field(&mut body, "error", upstream_error()),
            Self::Empty => {
                if let Some(choice) = body.pointer_mut("/choices/0") {
                    set_field(choice, "message", json!({ "role": "assistant", "content": "" }));
                }
            }
            _ => {}
        }
        sent.frames = vec![Frame::Data(json_bytes(&body))];
        sent
    }

    fn shape_stream(self, mut sent: WireAnswer) -> WireAnswer {
        let mut chunks: Vec<Value> = sent.frames.iter().filter_map(chunk).collect();
        chunks.iter_mut().for_each(|chunk| self.shape_json(chunk, "delta"));
        match self {
            Self::EmptyFirst => chunks = chunks.into_iter().map(empty_first).collect(),
            Self::EncodedTwice | Self::ObjectArguments | Self::TrailingRubbish => {
                chunks = self.with_whole_calls(chunks)
            }
            Self::WholeBody => return WireAnswer::json(200, json_bytes(&whole::body(&chunks))),
            Self::Empty => chunks.retain(says_nothing),
            Self::ErrorInStream => {
                chunks.truncate(chunks.len() / 2);
                chunks.push(json!({ "error": upstream_error() }));
            }
            _ => {}
        }
        let last = chunks.len().saturating_sub(1);
        sent.frames = chunks.iter().map(|chunk| Frame::Data(event(chunk, "\n"))).collect();
        if self == Self::Noise {
            sent.frames = sent.frames.into_iter().flat_map(with_noise).collect();
        }
        if self == Self::NoDone {
            // Nor is there the blank line behind the last event.
            let told = chunks.get(last).map(|chunk| Frame::Data(Bytes::from(format!("data: {chunk}\n"))));
            sent.frames.truncate(last);
            sent.frames.extend(told);
        } else {
            sent.frames.push(Frame::Data(Bytes::from_static(b"data: [DONE]\n\n")));
        }
        sent
    }

    /// Changes a chunk, or a whole body, in place.
    fn shape_json(self, answer: &mut Value, said: &str) {
        match self {
            Self::NoUsage => remove_field(answer, "usage"),
            Self::OddUsage if answer["usage"].is_object() => {
                set_field(
                    answer,
                    "usage",
                    json!({ "prompt_tokens": 12.0, "completion_tokens": "7", "total_tokens": null }),
                );
            }
            _ => {}
        }
        let Some(choice) = answer.pointer_mut("/choices/0") else { return };
        match self {
            Self::NoFinish => set_field(choice, "finish_reason", Value::Null),
            Self::ErrorFinish if choice["finish_reason"].is_string() => {
                set_field(choice, "finish_reason", json!("error"))
            }
            _ => {}
        }
        let calls = choice.pointer_mut(&format!("/{said}/tool_calls")).and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten() {
            self.shape_call(call);
        }
    }

    fn shape_call(self, call: &mut Value) {
        let index = call["index"].as_u64();
        match self {
            Self::SameIndex if index.is_some() => set_field(call, "index", json!(0)),
            Self::NoIndex => remove_field(call, "index"),
            Self::GappedIndex => {
                if let Some(index) = index {
                    set_field(call, "index", json!(100_u64.saturating_sub(index * 3)));
                }
            }
            Self::PrefixedName => {
                if let Some(Value::String(name)) = call.pointer_mut("/function/name") {
                    name.insert_str(0, "functions.");
                }
            }
            _ => {}
        }
    }

    /// Each call in one chunk, its arguments in this form.
    fn with_whole_calls(self, chunks: Vec<Value>) -> Vec<Value> {
        let mut shaped: Vec<Value> = Vec::new();
        for chunk in chunks {
            let call = at(&chunk, CALL).clone();
            let more = at(&call, "/function/arguments").as_str().unwrap_or_default();
            let last = shaped.last_mut().filter(|_| call.is_object() && at(&call, "/id").is_null());
            match last.and_then(|last| last.pointer_mut(ARGUMENTS)) {
                Some(Value::String(arguments)) => arguments.push_str(more),
                _ => shaped.push(chunk),
            }
        }
        for chunk in &mut shaped {
            if let Some(arguments) = chunk.pointer_mut(ARGUMENTS) {
                *arguments = self.arguments(arguments.as_str().unwrap_or_default());
            }
        }
        shaped
    }

    fn arguments(self, text: &str) -> Value {
        match self {
            Self::EncodedTwice => Value::from(Value::from(text).to_string()),
            Self::TrailingRubbish => Value::from(format!("{text}\n</tool_call>")),
            _ => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
        }
    }
}

fn data(frame: &Frame) -> Option<&Bytes> {
    match frame {
        Frame::Data(data) => Some(data),
        Frame::Wait(_) | Frame::Stall | Frame::Cut => None,
    }
}

/// The JSON of an event; none of the one that ends the stream.
fn chunk(frame: &Frame) -> Option<Value> {
    serde_json::from_slice(data(frame)?.strip_prefix(b"data: ")?).ok()
}

fn says_nothing(chunk: &Value) -> bool {
    let delta = at(chunk, "/choices/0/delta");
    let is_empty = |field: &str| delta[field].as_str().is_none_or(str::is_empty);
    is_empty("content") && is_empty("reasoning") && is_empty("reasoning_content") && delta["tool_calls"].is_null()
}

fn with_crlf(frame: Frame) -> Frame {
    match frame {
        Frame::Data(data) if data.starts_with(b"data:") => {
            Frame::Data(Bytes::from(String::from_utf8_lossy(&data).replace('\n', "\r\n")))
        }
        other => other,
    }
}

fn with_noise(frame: Frame) -> Vec<Frame> {
    let noise = b": keep-alive\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\ndata:\n\n";
    vec![Frame::Data(Bytes::from_static(noise)), frame]
}

/// The first piece of arguments, which is empty, becomes `{}`.
fn empty_first(mut chunk: Value) -> Value {
    let begins = !at(&chunk, CALL)["id"].is_null();
    match chunk.pointer_mut(ARGUMENTS) {
        Some(arguments) if begins && *arguments == "" => *arguments = json!("{}"),
        _ => {}
    }
    chunk
}

fn upstream_error() -> Value {
    json!({ "message": "Provider disconnected unexpectedly", "code": 502 })
}

fn refusal(status: u16, body: &Value, retry_after: Option<&str>) -> WireAnswer {
    let mut sent = WireAnswer::json(status, json_bytes(body));
    sent.headers.extend(retry_after.map(|seconds| ("retry-after".to_owned(), seconds.to_owned())));
    sent
}

fn html_error() -> WireAnswer {
    let page = "<html><head><title>503 Service Temporarily Unavailable</title></head></html>";
    WireAnswer { status: 503, content_type: "text/html".to_owned(), ..WireAnswer::json(503, Bytes::from(page)) }
}

#[cfg(test)]
mod tests;
