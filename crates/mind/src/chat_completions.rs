//! Requests in the chat-completions format, as model servers are sent them.

mod features;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, slice::Iter};

use kairo_events::{ids, media};
use kairo_proto::v1::Part;
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};

pub use self::features::{EndpointFeatures, ResponseFormat};
use super::{
    request::{
        AnswerSchema, ModelRequest, PromptMessage, Tool, ToolCall, ToolChoice, add_line, describe_omitted_part,
        short_call_id,
    },
    schema,
};

/// Longest description of a tool, in characters: OpenAI refuses longer ones.
const DESCRIPTION_CHARS: usize = 1_024;
/// Longest name of a tool, in characters.
const NAME_CHARS: usize = 64;
/// Of these, what tells names apart that are too long.
const DIGEST_CHARS: usize = 9;

/// The form in which one part of a request is sent.
#[derive(Clone, Debug, PartialEq)]
pub enum ShownPart {
    /// The part's bytes, in base64.
    Data { media_type: String, base64: String },
    /// A text in place of the part, with the reason.
    Told(&'static str),
}

/// The fields of a request that come from the model's configuration, and the known limits of its endpoint.
#[derive(Clone, Copy, Debug)]
pub struct RequestSettings<'r> {
    pub model: &'r str,
    pub stream: bool,
    /// 0 for the endpoint's own limit.
    pub max_output_tokens: u32,
    pub takes: EndpointFeatures,
}

/// The body of a request. It borrows what it can: conversations and schemas are long, and every turn sends them.
#[derive(Serialize)]
pub struct RequestBody<'r> {
    model: &'r str,
    messages: Vec<CompletionMessage<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'r RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<WireToolChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<WireResponseFormat<'r>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum WireToolChoice {
    Word(&'static str),
    Function {
        #[serde(rename = "type")]
        kind: &'static str,
        function: NamedFunction,
    },
}

#[derive(Serialize)]
struct NamedFunction {
    name: String,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireResponseFormat<'r> {
    JsonObject,
    JsonSchema { json_schema: JsonSchema<'r> },
}

#[derive(Serialize)]
struct JsonSchema<'r> {
    name: &'r str,
    schema: &'r RawValue,
    strict: bool,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum CompletionMessage<'r> {
    System {
        content: &'r str,
    },
    User {
        content: WireContent<'r>,
    },
    Assistant {
        content: Option<&'r str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireToolCall<'r>>,
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
enum WireContent<'r> {
    Text(Cow<'r, str>),
    Pieces(Vec<ContentPiece<'r>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPiece<'r> {
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
struct WireToolCall<'r> {
    id: Cow<'r, str>,
    function: FunctionArguments<'r>,
    #[serde(flatten)]
    passed_back: Map<String, Value>,
}

#[derive(Serialize)]
struct FunctionArguments<'r> {
    name: String,
    arguments: &'r str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "function")]
pub struct WireTool<'r> {
    function: FunctionSignature<'r>,
}

#[derive(Serialize)]
struct FunctionSignature<'r> {
    name: String,
    description: Cow<'r, str>,
    parameters: Value,
}

/// Builds the body sent to the endpoint. `shown` holds the form of each of the request's parts, in their order.
pub fn build_body<'r>(
    request: &'r ModelRequest,
    tools: &'r RawValue,
    shown: &'r [ShownPart],
    settings: RequestSettings<'r>,
) -> RequestBody<'r> {
    let RequestSettings { model, stream, max_output_tokens, takes } = settings;
    let tools = (!request.tools.is_empty()).then_some(tools);
    RequestBody {
        model,
        messages: completion_messages(&request.messages, &mut shown.iter(), takes),
        tools,
        tool_choice: tools.and_then(|_| wire_tool_choice(&request.tool_choice)),
        parallel_tool_calls: tools.filter(|_| !takes.parallel_calls).map(|_| false),
        response_format: request
            .answer_schema
            .as_ref()
            .and_then(|schema| wire_response_format(schema, takes.response_format)),
        stream,
        stream_options: stream.then_some(StreamOptions { include_usage: true }),
        max_completion_tokens: (max_output_tokens > 0).then_some(max_output_tokens),
    }
}

fn wire_tool_choice(choice: &ToolChoice) -> Option<WireToolChoice> {
    match choice {
        ToolChoice::Free => None,
        ToolChoice::None => Some(WireToolChoice::Word("none")),
        ToolChoice::Required => Some(WireToolChoice::Word("required")),
        ToolChoice::Named(tool) => {
            Some(WireToolChoice::Function { kind: "function", function: NamedFunction { name: to_wire_name(tool) } })
        }
    }
}

fn wire_response_format(schema: &AnswerSchema, takes: ResponseFormat) -> Option<WireResponseFormat<'_>> {
    let AnswerSchema { name, schema, is_strict } = schema;
    match takes {
        ResponseFormat::None => None,
        ResponseFormat::JsonObject => Some(WireResponseFormat::JsonObject),
        ResponseFormat::JsonSchema => {
            let schema = serde_json::from_str(schema).ok()?;
            Some(WireResponseFormat::JsonSchema { json_schema: JsonSchema { name, schema, strict: *is_strict } })
        }
    }
}

fn completion_messages<'r>(
    messages: &'r [PromptMessage],
    shown: &mut Iter<'r, ShownPart>,
    takes: EndpointFeatures,
) -> Vec<CompletionMessage<'r>> {
    let mut said_all = Vec::with_capacity(messages.len());
    let rest = match messages {
        [PromptMessage::System { text: system }, PromptMessage::User { text, parts }, rest @ ..]
            if !takes.system_message =>
        {
            let first = wire_content(Cow::Owned(format!("{system}\n\n{text}")), parts, shown);
            said_all.push(CompletionMessage::User { content: first });
            rest
        }
        messages => messages,
    };
    for (at, message) in rest.iter().enumerate() {
        match message {
            PromptMessage::Assistant { calls, .. } if calls.len() > 1 && !takes.parallel_calls => {
                let results = rest.get(at + 1..).unwrap_or_default();
                said_all.extend(split_calls(message, results, takes));
            }
            PromptMessage::Tool { .. } if !takes.parallel_calls && is_one_of_several(rest, at) => {}
            message => said_all.push(completion_message(message, shown, takes)),
        }
    }
    said_all
}

/// Returns true if the result at this index answers a message with several calls.
fn is_one_of_several(messages: &[PromptMessage], at: usize) -> bool {
    let before = messages.get(..at).unwrap_or_default().iter().rev();
    let called = before.skip_while(|message| matches!(message, PromptMessage::Tool { .. })).take(1);
    called.into_iter().any(|message| matches!(message, PromptMessage::Assistant { calls, .. } if calls.len() > 1))
}

/// Splits a message with several calls into messages of one call each, followed by its result.
fn split_calls<'r>(
    message: &'r PromptMessage,
    results: &'r [PromptMessage],
    takes: EndpointFeatures,
) -> Vec<CompletionMessage<'r>> {
    let PromptMessage::Assistant { text, calls, reasoning_details, passed_back } = message else { return Vec::new() };
    let mut all = Vec::with_capacity(calls.len() * 2);
    for (number, call) in calls.iter().enumerate() {
        let words = Some(text.as_str()).filter(|text| number == 0 && !text.is_empty());
        all.push(CompletionMessage::Assistant {
            content: words,
            tool_calls: vec![wire_tool_call(call, takes)],
            reasoning_details: serde_json::from_str(reasoning_details).ok(),
            passed_back: answer_fields(passed_back, reasoning_details),
        });
        let result = results.iter().find_map(|result| match result {
            PromptMessage::Tool { call_id, text } if *call_id == call.id => Some(text),
            _ => None,
        });
        all.extend(
            result.map(|text| CompletionMessage::Tool { tool_call_id: wire_call_id(&call.id, takes), content: text }),
        );
    }
    all
}

fn completion_message<'r>(
    message: &'r PromptMessage,
    shown: &mut Iter<'r, ShownPart>,
    takes: EndpointFeatures,
) -> CompletionMessage<'r> {
    match message {
        PromptMessage::System { text } => CompletionMessage::System { content: text },
        PromptMessage::User { text, parts } => {
            CompletionMessage::User { content: wire_content(Cow::Borrowed(text), parts, shown) }
        }
        PromptMessage::Tool { call_id, text } => {
            CompletionMessage::Tool { tool_call_id: wire_call_id(call_id, takes), content: text }
        }
        PromptMessage::Assistant { text, calls, reasoning_details, passed_back } => CompletionMessage::Assistant {
            content: (calls.is_empty() || !text.is_empty()).then_some(text),
            tool_calls: calls.iter().map(|call| wire_tool_call(call, takes)).collect(),
            reasoning_details: serde_json::from_str(reasoning_details).ok(),
            passed_back: answer_fields(passed_back, reasoning_details),
        },
    }
}

/// The id of a call as the endpoint takes it.
fn wire_call_id(id: &str, takes: EndpointFeatures) -> Cow<'_, str> {
    let is_short = id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match takes.call_ids || is_short {
        true => Cow::Borrowed(id),
        false => Cow::Owned(short_call_id(ids::from_parts("call", &[id]))),
    }
}

/// Words, with those that stand for what is not shown, and behind them what is.
fn wire_content<'r>(mut words: Cow<'r, str>, parts: &[Part], shown: &mut Iter<'r, ShownPart>) -> WireContent<'r> {
    let mut pieces = Vec::new();
    for (part, shown) in parts.iter().zip(shown) {
        match shown {
            ShownPart::Told(why) => add_line(words.to_mut(), &describe_omitted_part(part, why)),
            ShownPart::Data { media_type, base64 } => pieces.push(content_piece(media_type, base64)),
        }
    }
    if pieces.is_empty() {
        return WireContent::Text(words);
    }
    if !words.is_empty() {
        pieces.insert(0, ContentPiece::Text { text: words });
    }
    WireContent::Pieces(pieces)
}

fn content_piece<'r>(media_type: &str, base64: &'r str) -> ContentPiece<'r> {
    let audio = |format| ContentPiece::InputAudio { input_audio: InputAudio { data: base64, format } };
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
                Some(media::VIDEO) => ContentPiece::VideoUrl { video_url: url },
                _ => ContentPiece::ImageUrl { image_url: url },
            }
        }
    }
}

fn wire_tool_call(call: &ToolCall, takes: EndpointFeatures) -> WireToolCall<'_> {
    WireToolCall {
        id: wire_call_id(&call.id, takes),
        function: FunctionArguments { name: to_wire_name(&call.tool), arguments: &call.arguments },
        passed_back: passed_back_fields(&call.passed_back, &["id", "type", "function"]),
    }
}

/// The field that details of reasoning take, where there are any.
fn reasoning_field(details: &str) -> &'static [&'static str] {
    if details.is_empty() { &[] } else { &["reasoning_details"] }
}

/// Fields of an answer that go back with it.
fn answer_fields(passed_back: &str, reasoning_details: &str) -> Map<String, Value> {
    passed_back_fields(passed_back, &[&["role", "content", "tool_calls"], reasoning_field(reasoning_details)].concat())
}

/// Fields that go back to the model server as it sent them, but for those that a request has of its own.
fn passed_back_fields(passed_back: &str, own: &[&str]) -> Map<String, Value> {
    let mut fields: Map<String, Value> = serde_json::from_str(passed_back).unwrap_or_default();
    own.iter().for_each(|name| _ = fields.remove(*name));
    fields
}

/// Tools as an endpoint is told of them. What the strictest provider refuses of a schema is put differently.
pub fn wire_tools(tools: &[Tool]) -> Vec<WireTool<'_>> {
    tools.iter().map(|tool| WireTool { function: function_signature(tool) }).collect()
}

fn function_signature(tool: &Tool) -> FunctionSignature<'_> {
    let name = to_wire_name(&tool.name);
    let description = match tool.description.trim() {
        // Bedrock refuses an empty one.
        "" => Cow::Owned(name.clone()),
        said => match said.char_indices().nth(DESCRIPTION_CHARS) {
            None => Cow::Borrowed(said),
            Some(_) => Cow::Owned(said.chars().take(DESCRIPTION_CHARS - 1).chain(['…']).collect()),
        },
    };
    FunctionSignature { name, description, parameters: schema::to_wire_schema(&tool.schema) }
}

/// A tool's name as every endpoint takes it: letters, digits, `_` and `-`, at most 64 of them. Dots become two underscores; a name
/// that is too long, or has other characters, ends in a digest of the whole.
pub fn to_wire_name(tool: &str) -> String {
    let dotless = tool.replace('.', "__");
    if is_wire_name(&dotless) {
        return dotless;
    }
    let kept = dotless.chars().map(|c| if is_wire_char(c) { c } else { '_' }).take(NAME_CHARS - 1 - DIGEST_CHARS);
    let digest = short_call_id(ids::from_parts("tool", &[tool]));
    format!("{}_{digest}", kept.collect::<String>())
}

/// Returns true if every endpoint accepts the name as a tool's name.
pub fn is_wire_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_CHARS && name.chars().all(is_wire_char)
}

fn is_wire_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}
