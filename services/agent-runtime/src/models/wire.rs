//! The chat-completions format, written and read leniently: endpoints differ in what they add and leave out.

#![allow(clippy::indexing_slicing, reason = "indexing a serde_json::Value yields null, it does not panic")]

use std::{borrow::Cow, slice::Iter};

use kairo_core::media;
use kairo_mind::request::{Message, ModelRequest, Tool, ToolCall, add_line, in_place_of};
use kairo_proto::v1::{Completion, CompletionToolCall, Part};
use serde::Serialize;
use serde_json::{Value, value::RawValue};

use super::{
    details::Details,
    parts::Shown,
    thinking::{Added, Splitter},
};
use crate::{config::ModelConfig, received::SoFar};

/// The body of a request. It borrows what it can: conversations and schemas are long, and every turn sends them.
#[derive(Serialize)]
pub struct Body<'r> {
    model: &'r str,
    messages: Vec<Said<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'r RawValue>,
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
        content: Content<'r>,
    },
    Assistant {
        content: Option<&'r str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Called<'r>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_details: Option<&'r RawValue>,
    },
    Tool {
        tool_call_id: &'r str,
        content: &'r str,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'r> {
    Text(Cow<'r, str>),
    Pieces(Vec<Piece<'r>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece<'r> {
    Text { text: Cow<'r, str> },
    ImageUrl { image_url: DataUrl },
    VideoUrl { video_url: DataUrl },
    InputAudio { input_audio: InputAudio<'r> },
}

#[derive(Serialize)]
struct DataUrl {
    url: String,
}

#[derive(Serialize)]
struct InputAudio<'r> {
    data: &'r str,
    format: &'static str,
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
pub struct WireTool<'r> {
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

/// What is sent to the endpoint. `shown` says what becomes of each of the request's parts, in their order.
pub fn request<'r>(
    request: &'r ModelRequest,
    tools: &'r RawValue,
    shown: &'r [Shown],
    config: &'r ModelConfig,
) -> Body<'r> {
    let mut shown = shown.iter();
    Body {
        model: &config.model,
        messages: request.messages.iter().map(|message| said(message, &mut shown)).collect(),
        tools: (!request.tools.is_empty()).then_some(tools),
        stream: config.stream,
        stream_options: config.stream.then_some(StreamOptions { include_usage: true }),
        max_completion_tokens: (config.max_output_tokens > 0).then_some(config.max_output_tokens),
    }
}

fn said<'r>(message: &'r Message, shown: &mut Iter<'r, Shown>) -> Said<'r> {
    match message {
        Message::System { text } => Said::System { content: text },
        Message::User { text, parts } => Said::User { content: content(text, parts, shown) },
        Message::Tool { call_id, text } => Said::Tool { tool_call_id: call_id, content: text },
        Message::Assistant { text, calls, reasoning_details } => Said::Assistant {
            content: (calls.is_empty() || !text.is_empty()).then_some(text),
            tool_calls: calls.iter().map(called).collect(),
            reasoning_details: serde_json::from_str(reasoning_details).ok(),
        },
    }
}

/// Words, with those that stand for what is not shown, and behind them what is.
fn content<'r>(text: &'r str, parts: &[Part], shown: &mut Iter<'r, Shown>) -> Content<'r> {
    let (mut words, mut pieces) = (Cow::Borrowed(text), Vec::new());
    for (part, shown) in parts.iter().zip(shown) {
        match shown {
            Shown::Told(why) => add_line(words.to_mut(), &in_place_of(part, why)),
            Shown::Data { media_type, base64 } => pieces.push(piece(media_type, base64)),
        }
    }
    if pieces.is_empty() {
        return Content::Text(words);
    }
    if !words.is_empty() {
        pieces.insert(0, Piece::Text { text: words });
    }
    Content::Pieces(pieces)
}

fn piece<'r>(media_type: &str, base64: &'r str) -> Piece<'r> {
    let audio = |format| Piece::InputAudio { input_audio: InputAudio { data: base64, format } };
    match media_type {
        "audio/wav" => audio("wav"),
        "audio/mpeg" => audio("mp3"),
        "audio/mp4" => audio("mp4"),
        "audio/ogg" => audio("ogg"),
        "audio/webm" => audio("webm"),
        "audio/flac" => audio("flac"),
        other => {
            let url = DataUrl { url: format!("data:{other};base64,{base64}") };
            match other.split('/').next() {
                Some(media::VIDEO) => Piece::VideoUrl { video_url: url },
                _ => Piece::ImageUrl { image_url: url },
            }
        }
    }
}

fn called(call: &ToolCall) -> Called<'_> {
    Called { id: &call.id, function: Arguments { name: to_wire(&call.tool), arguments: &call.arguments } }
}

/// Tools as an endpoint is told of them.
pub fn tools(tools: &[Tool]) -> Vec<WireTool<'_>> {
    tools.iter().map(|tool| WireTool { function: signature(tool) }).collect()
}

fn signature(tool: &Tool) -> Signature<'_> {
    let parameters = serde_json::from_str(&tool.schema).ok();
    Signature { name: to_wire(&tool.name), description: &tool.description, parameters }
}

/// Names on the wire may not hold dots.
fn to_wire(tool: &str) -> String {
    tool.replace('.', "__")
}

/// The tool a model means. Only the request knows: a name may hold two underscores of its own.
fn from_wire(name: &str, offered: &[Tool]) -> String {
    let meant = offered.iter().find(|tool| to_wire(&tool.name) == name);
    meant.map_or(name, |tool| tool.name.as_str()).to_owned()
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
    use crate::models::tool_sets::ToolSets;

    fn sent(asked: &ModelRequest, shown: &[Shown], config: &ModelConfig) -> Value {
        let tool_set = ToolSets::default().of(&asked.tools);
        serde_json::from_slice(&serde_json::to_vec(&request(asked, &tool_set.wire, shown, config)).unwrap()).unwrap()
    }

    #[test]
    fn a_request_is_what_the_format_says() {
        let call = ToolCall { id: "c1".into(), tool: "tools.now".into(), arguments: "{}".into() };
        let asked = ModelRequest {
            tier: "heavy",
            messages: vec![
                Message::System { text: "Be brief.".into() },
                Message::said("What time is it?"),
                Message::Assistant {
                    text: String::new(),
                    calls: vec![call],
                    reasoning_details: r#"[{"type":"reasoning.encrypted","data":"x"}]"#.into(),
                },
                Message::Tool { call_id: "c1".into(), text: "noon".into() },
                Message::answered("Noon."),
            ],
            tools: ["{ \"type\": \"object\" }", "no JSON"]
                .map(|schema| Tool {
                    name: "tools.now".into(),
                    description: "The time".into(),
                    schema: schema.into(),
                    needs_approval: false,
                    needs_approval_with: Vec::new(),
                    acts_outside: false,
                })
                .into(),
            analysis: false,
            is_work: false,
        };
        let config = ModelConfig { model: "m".into(), stream: true, max_output_tokens: 9, ..Default::default() };
        let function = json!({ "name": "tools__now", "arguments": "{}" });
        let expected = json!({
            "model": "m",
            "messages": [
                { "role": "system", "content": "Be brief." },
                { "role": "user", "content": "What time is it?" },
                { "role": "assistant", "content": null,
                  "tool_calls": [{ "type": "function", "id": "c1", "function": function }],
                  "reasoning_details": [{ "type": "reasoning.encrypted", "data": "x" }] },
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
        assert_eq!(sent(&asked, &[], &config), expected);
        let plain = ModelConfig { model: "m".into(), stream: false, ..Default::default() };
        let nothing = json!({ "model": "m", "messages": [], "stream": false });
        let empty = ModelRequest::with("heavy", Vec::new());
        assert_eq!(sent(&empty, &[], &plain), nothing);
    }

    #[test]
    fn what_is_shown_stands_behind_the_words_and_what_is_not_within_them() {
        let part = |media_type: &str, name: &str| Part {
            media_type: media_type.into(),
            name: name.into(),
            size: 7,
            ..Default::default()
        };
        let parts = vec![part("image/png", "a.png"), part("image/png", "b.png"), part("audio/mpeg", "c.mp3")];
        let messages = vec![
            Message::User { text: "Look.".into(), parts },
            Message::User { text: String::new(), parts: vec![part("image/png", "d.png")] },
            Message::User { text: String::new(), parts: vec![part("image/gif", "e.gif")] },
        ];
        let asked = ModelRequest::with("heavy", messages);
        let data = |media_type: &str| Shown::data(media_type.to_owned(), b"bytes");
        let shown = [
            Shown::Told("no longer shown"),
            data("image/png"),
            data("audio/mpeg"),
            Shown::Told("gone"),
            data("image/gif"),
        ];
        let config = ModelConfig { stream: false, ..Default::default() };
        let sent = sent(&asked, &shown, &config);
        let content: Vec<&Value> =
            sent["messages"].as_array().unwrap().iter().map(|message| &message["content"]).collect();
        let image = |media_type: &str| json!({ "type": "image_url", "image_url": { "url": format!("data:{media_type};base64,Ynl0ZXM=") } });
        let first = json!([
            { "type": "text", "text": "Look.\n[image a.png, 7 bytes] (no longer shown)" },
            image("image/png"),
            { "type": "input_audio", "input_audio": { "data": "Ynl0ZXM=", "format": "mp3" } },
        ]);
        assert_eq!(content, [&first, &json!("[image d.png, 7 bytes] (gone)"), &json!([image("image/gif")])]);
    }

    fn grow(chunks: &[Value]) -> Completion {
        let mut growing = Growing::new(&ModelConfig { max_reasoning_bytes: 16, ..Default::default() });
        for chunk in chunks {
            growing.take(chunk);
        }
        let offered = ["tools.now", "http.get", "files.read__all"];
        growing.finish(&offered.map(|name| Tool {
            name: name.into(),
            description: String::new(),
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
