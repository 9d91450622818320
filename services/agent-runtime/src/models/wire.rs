//! The chat-completions format, written and read leniently: endpoints differ in what they add and leave out.

#![allow(clippy::indexing_slicing, reason = "indexing a serde_json::Value yields null, it does not panic")]

use kairo_proto::v1::{Completion, CompletionToolCall};
use serde_json::{Value, json};

use super::thinking::{Added, Splitter};
use crate::{
    config::ModelConfig,
    mind::request::{Message, ModelRequest, Tool, ToolCall},
};

/// The body of a request.
pub fn request(request: &ModelRequest, config: &ModelConfig) -> Value {
    let mut body = json!({
        "model": config.model,
        "messages": request.messages.iter().map(message).collect::<Vec<_>>(),
        "stream": config.stream,
    });
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    if config.stream {
        body["stream_options"] = json!({ "include_usage": true });
    }
    if config.max_output_tokens > 0 {
        body["max_completion_tokens"] = json!(config.max_output_tokens);
    }
    body
}

fn message(message: &Message) -> Value {
    match message {
        Message::System { text } => json!({ "role": "system", "content": text }),
        Message::User { text } => json!({ "role": "user", "content": text }),
        Message::Tool { call_id, text } => json!({ "role": "tool", "tool_call_id": call_id, "content": text }),
        Message::Assistant { text, calls } if calls.is_empty() => json!({ "role": "assistant", "content": text }),
        Message::Assistant { text, calls } => json!({
            "role": "assistant",
            "content": if text.is_empty() { Value::Null } else { json!(text) },
            "tool_calls": calls.iter().map(call).collect::<Vec<_>>(),
        }),
    }
}

fn call(call: &ToolCall) -> Value {
    let function = json!({ "name": to_wire(&call.tool), "arguments": call.arguments });
    json!({ "id": call.id, "type": "function", "function": function })
}

fn tool(tool: &Tool) -> Value {
    let parameters: Value = serde_json::from_str(&tool.schema).unwrap_or_else(|_| json!({ "type": "object" }));
    let function = json!({ "name": to_wire(&tool.name), "description": tool.description, "parameters": parameters });
    json!({ "type": "function", "function": function })
}

/// Names on the wire may not hold dots.
fn to_wire(tool: &str) -> String {
    tool.replace('.', "__")
}

/// The tool a model means. Only the offer knows: a name may hold two underscores of its own.
fn from_wire(name: &str, offered: &[Tool]) -> String {
    let meant = offered.iter().find(|tool| to_wire(&tool.name) == name);
    meant.map_or(name, |tool| tool.name.as_str()).to_owned()
}

/// A completion as it grows, from chunks or from one whole answer.
#[derive(Debug, Default)]
pub struct Growing {
    splitter: Splitter,
    text: String,
    reasoning: String,
    calls: Vec<(u64, CompletionToolCall)>,
    finish_reason: String,
    model: String,
    input_tokens: u64,
    output_tokens: u64,
}

impl Growing {
    /// Takes in a chunk of a stream or a whole answer: they differ in `delta` and `message` only.
    pub fn take(&mut self, chunk: &Value) -> Added {
        if let Some(model) = chunk["model"].as_str() {
            self.model = model.to_owned();
        }
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            self.input_tokens = usage["prompt_tokens"].as_u64().unwrap_or(0);
            self.output_tokens = usage["completion_tokens"].as_u64().unwrap_or(0);
        }
        let choice = &chunk["choices"][0];
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.finish_reason = reason.to_owned();
        }
        let said = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
        let field = |name: &str| said[name].as_str().unwrap_or_default();
        let Added { text, reasoning } = self.splitter.take(field("content"));
        let reasoning = [field("reasoning_content"), field("reasoning"), &reasoning].concat();
        self.text.push_str(&text);
        self.reasoning.push_str(&reasoning);
        for (position, call) in said["tool_calls"].as_array().into_iter().flatten().enumerate() {
            self.take_call(call["index"].as_u64().unwrap_or(position as u64), call);
        }
        Added { text, reasoning }
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
        let held = self.splitter.finish();
        Completion {
            model: self.model,
            text: self.text + &held.text,
            reasoning: (self.reasoning + &held.reasoning).trim().to_owned(),
            tool_calls: self
                .calls
                .into_iter()
                .map(|(_, call)| CompletionToolCall { tool: from_wire(&call.tool, offered), ..call })
                .collect(),
            finish_reason: self.finish_reason,
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            ..Default::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grow(chunks: &[Value]) -> Completion {
        let mut growing = Growing::default();
        for chunk in chunks {
            growing.take(chunk);
        }
        let offered = ["tools.now", "http.get", "files.read__all"];
        growing.finish(&offered.map(|name| Tool { name: name.into(), description: String::new(), schema: "{}".into() }))
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
    fn reasoning_is_kept_apart() {
        let whole = |message: Value| grow(&[json!({ "choices": [{ "message": message }] })]);
        let tagged = whole(json!({ "content": "<think>hm</think>\nHello" }));
        let field = whole(json!({ "content": "Hello", "reasoning_content": "hm" }));
        for completion in [tagged, field] {
            assert_eq!((completion.reasoning.as_str(), completion.text.as_str()), ("hm", "Hello"));
        }
    }
}
