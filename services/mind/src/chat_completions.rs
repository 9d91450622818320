//! Requests in the chat-completions format, as model servers are sent them.

use std::{borrow::Cow, slice::Iter};

use kairo_events::media;
use kairo_proto::v1::Part;
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};
use uuid::Uuid;

use super::{
    deliberation::made_id,
    request::{Message, ModelRequest, Tool, ToolCall, add_line, in_place_of},
};

/// What becomes of one part of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// Its bytes, in base64.
    Data { media_type: String, base64: String },
    /// Words in its place, with the reason.
    Told(&'static str),
}

/// What of a request the model's configuration says.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'r> {
    pub model: &'r str,
    pub stream: bool,
    /// 0 for what the endpoint takes.
    pub max_output_tokens: u32,
}

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
        #[serde(flatten)]
        passed_back: Map<String, Value>,
    },
    Tool {
        tool_call_id: Cow<'r, str>,
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
    id: Cow<'r, str>,
    function: Arguments<'r>,
    #[serde(flatten)]
    passed_back: Map<String, Value>,
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
    settings: Settings<'r>,
) -> Body<'r> {
    let mut shown = shown.iter();
    let Settings { model, stream, max_output_tokens } = settings;
    Body {
        model,
        messages: request.messages.iter().map(|message| said(message, &mut shown)).collect(),
        tools: (!request.tools.is_empty()).then_some(tools),
        stream,
        stream_options: stream.then_some(StreamOptions { include_usage: true }),
        max_completion_tokens: (max_output_tokens > 0).then_some(max_output_tokens),
    }
}

fn said<'r>(message: &'r Message, shown: &mut Iter<'r, Shown>) -> Said<'r> {
    match message {
        Message::System { text } => Said::System { content: text },
        Message::User { text, parts } => Said::User { content: content(text, parts, shown) },
        Message::Tool { call_id, text } => Said::Tool { tool_call_id: wire_id(call_id), content: text },
        Message::Assistant { text, calls, reasoning_details, passed_back } => Said::Assistant {
            content: (calls.is_empty() || !text.is_empty()).then_some(text),
            tool_calls: calls.iter().map(called).collect(),
            reasoning_details: serde_json::from_str(reasoning_details).ok(),
            passed_back: fields(
                passed_back,
                &[&["role", "content", "tool_calls"], own_details(reasoning_details)].concat(),
            ),
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
    Called {
        id: wire_id(&call.id),
        function: Arguments { name: to_wire(&call.tool), arguments: &call.arguments },
        passed_back: fields(&call.passed_back, &["id", "type", "function"]),
    }
}

/// The field that details of reasoning take, where there are any.
fn own_details(details: &str) -> &'static [&'static str] {
    if details.is_empty() { &[] } else { &["reasoning_details"] }
}

/// Fields that go back to the model server as it sent them, but for those that a request has of its own.
fn fields(passed_back: &str, own: &[&str]) -> Map<String, Value> {
    let mut fields: Map<String, Value> = serde_json::from_str(passed_back).unwrap_or_default();
    own.iter().for_each(|name| _ = fields.remove(*name));
    fields
}

/// The id of a call on the wire. Those of a model's own calls stay as they are; for one that Kairo derived stands one of nine
/// alphanumeric characters, since Mistral's API takes no other.
fn wire_id(id: &str) -> Cow<'_, str> {
    match Uuid::try_parse(id) {
        Ok(derived) if derived.get_version_num() == 5 => made_id(derived).into(),
        _ => id.into(),
    }
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
pub fn to_wire(tool: &str) -> String {
    tool.replace('.', "__")
}

#[cfg(test)]
mod tests {
    use serde_json::{json, value::to_raw_value};

    use super::*;

    fn sent(asked: &ModelRequest, shown: &[Shown], settings: Settings<'_>) -> Value {
        let wire = to_raw_value(&tools(&asked.tools)).unwrap();
        serde_json::to_value(request(asked, &wire, shown, settings)).unwrap()
    }

    #[test]
    fn a_request_is_what_the_format_says() {
        let call = ToolCall {
            id: "c1".into(),
            tool: "tools.now".into(),
            arguments: "{}".into(),
            passed_back: r#"{"extra_content":{"google":{"thought_signature":"SIG"}},"id":"other"}"#.into(),
        };
        let asked = ModelRequest {
            tier: "heavy",
            messages: vec![
                Message::System { text: "Be brief.".into() },
                Message::said("What time is it?"),
                Message::Assistant {
                    text: String::new(),
                    calls: vec![call],
                    reasoning_details: r#"[{"type":"reasoning.encrypted","data":"x"}]"#.into(),
                    passed_back: r#"{"reasoning_content":"hm","role":"user","reasoning_details":[]}"#.into(),
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
        let settings = Settings { model: "m", stream: true, max_output_tokens: 9 };
        let function = json!({ "name": "tools__now", "arguments": "{}" });
        let expected = json!({
            "model": "m",
            "messages": [
                { "role": "system", "content": "Be brief." },
                { "role": "user", "content": "What time is it?" },
                { "role": "assistant", "content": null,
                  "tool_calls": [{ "type": "function", "id": "c1", "function": function,
                                   "extra_content": { "google": { "thought_signature": "SIG" } } }],
                  "reasoning_content": "hm",
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
        assert_eq!(sent(&asked, &[], settings), expected);
        let plain = Settings { model: "m", stream: false, max_output_tokens: 0 };
        let nothing = json!({ "model": "m", "messages": [], "stream": false });
        let empty = ModelRequest::with("heavy", Vec::new());
        assert_eq!(sent(&empty, &[], plain), nothing);
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
        let data = |media_type: &str| Shown::Data { media_type: media_type.to_owned(), base64: "Ynl0ZXM=".to_owned() };
        let shown = [
            Shown::Told("no longer shown"),
            data("image/png"),
            data("audio/mpeg"),
            Shown::Told("gone"),
            data("image/gif"),
        ];
        let sent = sent(&asked, &shown, Settings { model: "m", stream: false, max_output_tokens: 0 });
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
}
