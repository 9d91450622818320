//! The chat-completions format, written and read leniently: endpoints differ in what they add and leave out.

#![allow(clippy::indexing_slicing, reason = "indexing a serde_json::Value yields null, it does not panic")]

use kairo_proto::v1::{Completion, CompletionToolCall};
use serde::Serialize;
use serde_json::{Value, value::RawValue};

use super::thinking::{Added, Splitter};
use crate::{
    config::ModelConfig,
    mind::request::{Message, ModelRequest, Tool, ToolCall},
};

/// The body of a request. It borrows what it can: conversations and schemas are long, and every turn sends them.
#[derive(Serialize)]
pub struct Body<'r> {
    model: &'r str,
    messages: Vec<Said<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Offered<'r>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum Said<'r> {
    System {
        content: &'r str,
    },
    User {
        content: &'r str,
    },
    Assistant {
        content: Option<&'r str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Called<'r>>,
    },
    Tool {
        tool_call_id: &'r str,
        content: &'r str,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "function")]
struct Called<'r> {
    id: &'r str,
    function: Arguments<'r>,
}

#[derive(Serialize)]
struct Arguments<'r> {
    name: String,
    arguments: &'r str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "function")]
struct Offered<'r> {
    function: Signature<'r>,
}

#[derive(Serialize)]
struct Signature<'r> {
    name: String,
    description: &'r str,
    /// Left out where the schema is no JSON: the endpoint would refuse the whole request.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'r RawValue>,
}

/// What is sent to the endpoint.
pub fn request<'r>(request: &'r ModelRequest, config: &'r ModelConfig) -> Body<'r> {
    Body {
        model: &config.model,
        messages: request.messages.iter().map(said).collect(),
        tools: request.tools.iter().map(offered).collect(),
        stream: config.stream,
        stream_options: config.stream.then_some(StreamOptions { include_usage: true }),
        max_completion_tokens: (config.max_output_tokens > 0).then_some(config.max_output_tokens),
    }
}

fn said(message: &Message) -> Said<'_> {
    match message {
        Message::System { text } => Said::System { content: text },
        Message::User { text } => Said::User { content: text },
        Message::Tool { call_id, text } => Said::Tool { tool_call_id: call_id, content: text },
        Message::Assistant { text, calls } => Said::Assistant {
            content: (calls.is_empty() || !text.is_empty()).then_some(text),
            tool_calls: calls.iter().map(called).collect(),
        },
    }
}

fn called(call: &ToolCall) -> Called<'_> {
    Called { id: &call.id, function: Arguments { name: to_wire(&call.tool), arguments: &call.arguments } }
}

fn offered(tool: &Tool) -> Offered<'_> {
    let parameters = serde_json::from_str(&tool.schema).ok();
    Offered { function: Signature { name: to_wire(&tool.name), description: &tool.description, parameters } }
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
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_is_what_the_format_says() {
        let call = ToolCall { id: "c1".into(), tool: "tools.now".into(), arguments: "{}".into() };
        let asked = ModelRequest {
            tier: "heavy",
            messages: vec![
                Message::System { text: "Be brief.".into() },
                Message::User { text: "What time is it?".into() },
                Message::Assistant { text: String::new(), calls: vec![call] },
                Message::Tool { call_id: "c1".into(), text: "noon".into() },
                Message::Assistant { text: "Noon.".into(), calls: Vec::new() },
            ],
            tools: ["{ \"type\": \"object\" }", "no JSON"]
                .map(|schema| Tool {
                    name: "tools.now".into(),
                    description: "The time".into(),
                    schema: schema.into(),
                    needs_approval: false,
                })
                .into(),
            analysis: false,
        };
        let config = ModelConfig { model: "m".into(), stream: true, max_output_tokens: 9, ..Default::default() };
        let function = json!({ "name": "tools__now", "arguments": "{}" });
        let expected = json!({
            "model": "m",
            "messages": [
                { "role": "system", "content": "Be brief." },
                { "role": "user", "content": "What time is it?" },
                { "role": "assistant", "content": null,
                  "tool_calls": [{ "type": "function", "id": "c1", "function": function }] },
                { "role": "tool", "tool_call_id": "c1", "content": "noon" },
                { "role": "assistant", "content": "Noon." },
            ],
            "tools": [
                { "type": "function", "function": {
                    "name": "tools__now", "description": "The time", "parameters": { "type": "object" } } },
                { "type": "function", "function": { "name": "tools__now", "description": "The time" } },
            ],
            "stream": true,
            "stream_options": { "include_usage": true },
            "max_completion_tokens": 9,
        });
        assert_eq!(serde_json::to_value(request(&asked, &config)).unwrap(), expected);
        let plain = ModelConfig { model: "m".into(), stream: false, ..Default::default() };
        let nothing = json!({ "model": "m", "messages": [], "stream": false });
        let empty = ModelRequest { tier: "heavy", messages: Vec::new(), tools: Vec::new(), analysis: false };
        assert_eq!(serde_json::to_value(request(&empty, &plain)).unwrap(), nothing);
    }

    fn grow(chunks: &[Value]) -> Completion {
        let mut growing = Growing::default();
        for chunk in chunks {
            growing.take(chunk);
        }
        let offered = ["tools.now", "http.get", "files.read__all"];
        growing.finish(&offered.map(|name| Tool {
            name: name.into(),
            description: String::new(),
            schema: "{}".into(),
            needs_approval: false,
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
    fn reasoning_is_kept_apart() {
        let whole = |message: Value| grow(&[json!({ "choices": [{ "message": message }] })]);
        let tagged = whole(json!({ "content": "<think>hm</think>\nHello" }));
        let field = whole(json!({ "content": "Hello", "reasoning_content": "hm" }));
        for completion in [tagged, field] {
            assert_eq!((completion.reasoning.as_str(), completion.text.as_str()), ("hm", "Hello"));
        }
    }
}
