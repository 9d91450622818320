//! Answers in the chat-completions format, read leniently: endpoints differ in what they add and leave out. Requests are
//! written by [`chat_completions`](kairo_mind::chat_completions).

#![allow(clippy::indexing_slicing, reason = "indexing a serde_json::Value yields null, it does not panic")]

use std::borrow::Cow;

use kairo_mind::{chat_completions::to_wire, request::Tool};
use kairo_proto::v1::{Completion, CompletionToolCall};
use serde_json::Value;

use super::{
    details::Details,
    thinking::{Added, Splitter},
};
use crate::{config::ModelConfig, received::SoFar};

/// The tool a model means. Only the request knows: a name may hold two underscores of its own.
fn from_wire(name: &str, offered: &[Tool]) -> String {
    let meant = offered.iter().find(|tool| to_wire(&tool.name) == name);
    meant.map_or(name, |tool| &*tool.name).to_owned()
}

/// What a piece of an answer brings: words, which may hold blocks of reasoning, and reasoning that is told apart from them:
/// in a field of its own, of which some endpoints send two that say the same, or as parts of the content.
fn told_apart(said: &Value) -> (Cow<'_, str>, Cow<'_, str>) {
    let fields = ["reasoning_content", "reasoning"].map(|name| said[name].as_str().unwrap_or_default());
    let field = fields.into_iter().find(|field| !field.is_empty()).unwrap_or_default();
    match &said["content"] {
        Value::Array(parts) => {
            let of = |kind: &str| parts.iter().filter(|part| part["type"] == kind).collect::<Vec<_>>();
            let words = of("text").iter().filter_map(|part| part["text"].as_str()).collect::<String>();
            let thought = of("thinking").into_iter().flat_map(|part| match &part["thinking"] {
                Value::Array(pieces) => pieces.iter().filter_map(|piece| piece["text"].as_str()).collect::<Vec<_>>(),
                thought => thought.as_str().into_iter().collect(),
            });
            (words.into(), std::iter::once(field).chain(thought).collect::<String>().into())
        }
        content => (content.as_str().unwrap_or_default().into(), field.into()),
    }
}

/// A completion as it grows, from chunks or from one whole answer.
#[derive(Debug)]
pub struct Growing {
    splitter: Splitter,
    text: String,
    reasoning: String,
    max_reasoning_bytes: usize,
    /// Bytes of it that were too many.
    reasoning_left_out: usize,
    calls: Vec<(u64, CompletionToolCall)>,
    details: Details,
    finish_reason: String,
    so_far: SoFar,
}

impl Growing {
    pub fn new(config: &ModelConfig) -> Self {
        Self {
            splitter: Splitter::new(config.thinks_first),
            text: String::new(),
            reasoning: String::new(),
            max_reasoning_bytes: config.max_reasoning_bytes,
            reasoning_left_out: 0,
            calls: Vec::new(),
            details: Details::new(config.max_reasoning_bytes),
            finish_reason: String::new(),
            so_far: SoFar::default(),
        }
    }

    /// Takes in a chunk of a stream or a whole answer: they differ in `delta` and `message` only.
    pub fn take(&mut self, chunk: &Value) -> Added {
        if let Some(model) = chunk["model"].as_str() {
            self.so_far.model.clear();
            self.so_far.model.push_str(model);
        }
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            self.so_far.input_tokens = usage["prompt_tokens"].as_u64().unwrap_or(0);
            self.so_far.output_tokens = usage["completion_tokens"].as_u64().unwrap_or(0);
        }
        let choice = &chunk["choices"][0];
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.finish_reason = reason.to_owned();
        }
        let said = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
        self.count(said);
        self.details.take(&said["reasoning_details"]);
        let (words, apart) = told_apart(said);
        let Added { mut text, reasoning } = self.splitter.take(&words);
        let mut reasoning = apart.into_owned() + &reasoning;
        if self.is_finished() {
            // What was held back is shown, too.
            let held = std::mem::replace(&mut self.splitter, Splitter::new(false)).finish();
            text.push_str(&held.text);
            reasoning.push_str(&held.reasoning);
        }
        self.text.push_str(&text);
        self.keep_reasoning(&reasoning);
        for (position, call) in said["tool_calls"].as_array().into_iter().flatten().enumerate() {
            self.take_call(call["index"].as_u64().unwrap_or(position as u64), call);
        }
        Added { text, reasoning }
    }

    /// Keeps reasoning up to its bound.
    fn keep_reasoning(&mut self, more: &str) {
        let room = self.max_reasoning_bytes.saturating_sub(self.reasoning.len());
        let kept = more.get(..more.floor_char_boundary(room)).unwrap_or_default();
        self.reasoning.push_str(kept);
        self.reasoning_left_out += more.len() - kept.len();
        if kept.len() < more.len() {
            // What comes behind a gap is left out, too.
            self.max_reasoning_bytes = self.reasoning.len();
        }
    }

    /// Counts what a piece brings of words, reasoning and calls.
    fn count(&mut self, said: &Value) {
        let bytes = |value: &Value| value.as_str().map_or(0, str::len);
        let (words, reasoning) = told_apart(said);
        let calls = said["tool_calls"].as_array().into_iter().flatten().map(|call| &call["function"]);
        let calls = calls.map(|call| bytes(&call["name"]) + bytes(&call["arguments"]));
        let brought = (words.len() + reasoning.len() + calls.sum::<usize>()) as u64;
        self.so_far.bytes += brought;
        self.so_far.pieces += u32::from(brought > 0);
    }

    /// What has arrived up to now.
    pub fn so_far(&self) -> &SoFar {
        &self.so_far
    }

    fn take_call(&mut self, index: u64, call: &Value) {
        if !self.calls.iter().any(|(known, _)| *known == index) {
            self.calls.push((index, CompletionToolCall::default()));
        }
        let Some((_, known)) = self.calls.iter_mut().find(|(known, _)| *known == index) else { return };
        if let Some(id) = call["id"].as_str().filter(|id| !id.is_empty()) {
            known.call_id = id.to_owned();
        }
        if let Some(name) = call["function"]["name"].as_str().filter(|name| !name.is_empty()) {
            known.tool = name.to_owned();
        }
        match &call["function"]["arguments"] {
            Value::String(more) => known.arguments.push_str(more),
            // Not the standard, but some endpoints send an object.
            arguments @ Value::Object(_) => known.arguments = arguments.to_string(),
            _ => {}
        }
    }

    /// Whether the model has said that this is the end. A stream that ends without was cut off.
    pub fn is_finished(&self) -> bool {
        !self.finish_reason.is_empty()
    }

    /// The whole, when no more comes; `offered` are the tools that the model could call.
    pub fn finish(mut self, offered: &[Tool]) -> Completion {
        self.calls.sort_by_key(|(index, _)| *index);
        let held = std::mem::replace(&mut self.splitter, Splitter::new(false)).finish();
        self.keep_reasoning(&held.reasoning);
        let mut reasoning = self.reasoning.trim().to_owned();
        if self.reasoning_left_out > 0 {
            reasoning.push_str(&format!("… ({} bytes left out)", self.reasoning_left_out));
        }
        Completion {
            model: self.so_far.model,
            text: self.text + &held.text,
            reasoning,
            reasoning_details: self.details.finish(),
            tool_calls: self
                .calls
                .into_iter()
                .map(|(_, call)| CompletionToolCall { tool: from_wire(&call.tool, offered), ..call })
                .collect(),
            finish_reason: self.finish_reason,
            input_tokens: self.so_far.input_tokens,
            output_tokens: self.so_far.output_tokens,
            ..Default::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn grow(chunks: &[Value]) -> Completion {
        let mut growing = Growing::new(&ModelConfig { max_reasoning_bytes: 16, ..Default::default() });
        for chunk in chunks {
            growing.take(chunk);
        }
        let offered = ["tools.now", "http.get", "files.read__all"];
        growing.finish(&offered.map(|name| Tool {
            name: name.into(),
            description: "".into(),
            schema: "{}".into(),
            needs_approval: false,
            needs_approval_with: Vec::new(),
            acts_outside: false,
        }))
    }

    #[test]
    fn tool_calls_arrive_in_pieces() {
        let delta = |value: Value| json!({ "choices": [{ "delta": { "tool_calls": [value] } }] });
        let completion = grow(&[
            delta(json!({ "index": 1, "id": "b", "function": { "name": "files__read__all", "arguments": "" } })),
            delta(json!({ "index": 0, "id": "a", "function": { "name": "http__get", "arguments": "{\"url\":" } })),
            delta(json!({ "index": 0, "function": { "arguments": "\"x\"}" } })),
            json!({ "choices": [{ "delta": {}, "finish_reason": "tool_calls" }] }),
            json!({ "choices": [], "usage": { "prompt_tokens": 7, "completion_tokens": 3 } }),
        ]);
        let tools: Vec<_> =
            completion.tool_calls.iter().map(|call| (call.tool.as_str(), call.arguments.as_str())).collect();
        assert_eq!(tools, [("http.get", "{\"url\":\"x\"}"), ("files.read__all", "")]);
        assert_eq!((completion.input_tokens, completion.output_tokens), (7, 3));
    }

    #[test]
    fn what_has_arrived_is_counted_piece_by_piece() {
        let mut growing = Growing::new(&ModelConfig::default());
        let delta = |delta: Value| json!({ "model": "m", "choices": [{ "delta": delta }] });
        let call = json!({ "tool_calls": [{ "index": 0, "function": { "name": "a__b", "arguments": "{}" } }] });
        for piece in [json!({ "role": "assistant" }), json!({ "content": "né" }), json!({ "reasoning": "hm" }), call] {
            growing.take(&delta(piece));
        }
        let SoFar { model, bytes, pieces, input_tokens, output_tokens } = growing.so_far().clone();
        assert_eq!((model.as_str(), bytes, pieces, input_tokens, output_tokens), ("m", 3 + 2 + 6, 3, 0, 0));
        growing.take(&json!({ "choices": [], "usage": { "prompt_tokens": 7, "completion_tokens": 3 } }));
        assert_eq!((growing.so_far().input_tokens, growing.so_far().answered()), (7, (3, false)));
    }

    #[test]
    fn reasoning_is_kept_apart() {
        let whole = |message: Value| grow(&[json!({ "choices": [{ "message": message }] })]);
        let tagged = whole(json!({ "content": "<think>hm</think>\nHello" }));
        let field = whole(json!({ "content": "Hello", "reasoning_content": "hm" }));
        let other_field = whole(json!({ "content": "Hello", "reasoning": "hm" }));
        let both = whole(json!({ "content": "Hello", "reasoning_content": "hm", "reasoning": "hm" }));
        let parts = whole(json!({ "content": [
            { "type": "thinking", "thinking": [{ "type": "text", "text": "h" }, { "type": "text", "text": "m" }] },
            { "type": "text", "text": "Hello" },
        ] }));
        for completion in [tagged, field, other_field, both, parts] {
            assert_eq!((completion.reasoning.as_str(), completion.text.as_str()), ("hm", "Hello"));
        }
    }

    #[test]
    fn reasoning_is_kept_up_to_its_bound() {
        let delta = |text: &str| json!({ "choices": [{ "delta": { "reasoning_content": text } }] });
        let completion = grow(&[delta("fifteen bytes. "), delta("größer"), delta("!")]);
        assert_eq!(completion.reasoning, "fifteen bytes. g… (8 bytes left out)");
        let exact = grow(&[delta("sixteen bytes. "), delta("!")]);
        assert_eq!(exact.reasoning, "sixteen bytes. !");
    }
}
