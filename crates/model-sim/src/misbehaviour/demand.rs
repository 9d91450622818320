//! Demands that providers make of a request, and refuse it for. Pure.
//!
//! Each is a rule of a real provider or a widespread chat template; its users report that agents break it.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::Value;

use crate::json::at;

/// The longest id of a call that OpenAI takes, in bytes.
const CALL_ID: usize = 64;
/// Length of a call's id that Mistral wants, in characters.
const MISTRAL_ID: usize = 9;

/// A demand by the name that scenarios know it by.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Demand {
    /// An assistant message says something or calls something (Anthropic, Mistral).
    FullAssistant,
    /// A message with calls holds the `reasoning_content` that came with them (DeepSeek, Kimi).
    ReasoningContent,
    /// A message with calls holds the `reasoning_details` that came with them (OpenRouter).
    ReasoningDetails,
    /// The first call of a message holds the signature that came with it (Gemini 3).
    ThoughtSignature,
    /// If messages hold calls, `tools` is there (Anthropic and Bedrock behind LiteLLM).
    ToolsWithCalls,
    /// The checks of OpenAI: names, schemas and ids.
    OpenAi,
    /// No schema has a list of types, an `enum` without a type or an array without items (Gemini, strict validators).
    PlainSchemas,
    /// One system message at most, and it is the first (templates of Qwen 3.5, Mistral Small, Gemma).
    OneSystem,
    /// No two user messages follow one another, nor two assistant messages (templates of Gemma and Mistral).
    Alternating,
    /// Ids of calls are nine letters or digits (Mistral).
    NineCharacterIds,
    /// Each call has its result and each result its call (OpenAI, Anthropic).
    PairedResults,
}

impl Demand {
    /// Returns why it refuses the request, in words; none if it takes it.
    #[must_use]
    pub fn violation(self, request: &Value) -> Option<String> {
        match self {
            Self::FullAssistant => first(assistants(request), |(_, message)| is_empty_message(message))
                .map(|(at, _)| format!("messages.{at}: text content blocks must be non-empty")),
            Self::ReasoningContent => find_missing_field(request, "reasoning_content"),
            Self::ReasoningDetails => find_missing_field(request, "reasoning_details"),
            Self::ThoughtSignature => find_missing_signature(request),
            Self::ToolsWithCalls => find_missing_tools(request),
            Self::OpenAi => tools(request).find_map(bad_tool).or_else(|| bad_ids(request)),
            Self::PlainSchemas => tools(request).find_map(|(_, tool)| bad_schema(&tool["parameters"])),
            Self::OneSystem => find_late_system(request),
            Self::Alternating => find_repeated_role(request),
            Self::NineCharacterIds => find_bad_mistral_id(request),
            Self::PairedResults => find_unpaired_result(request),
        }
    }
}

fn messages(request: &Value) -> impl Iterator<Item = (usize, &Value)> {
    request["messages"].as_array().into_iter().flatten().enumerate()
}

fn assistants(request: &Value) -> impl Iterator<Item = (usize, &Value)> {
    messages(request).filter(|(_, message)| message["role"] == "assistant")
}

fn calls(message: &Value) -> &[Value] {
    message["tool_calls"].as_array().map_or(&[], Vec::as_slice)
}

/// Messages that hold calls.
fn callers(request: &Value) -> impl Iterator<Item = (usize, &Value)> {
    assistants(request).filter(|(_, message)| !calls(message).is_empty())
}

fn tools(request: &Value) -> impl Iterator<Item = (usize, &Value)> {
    request["tools"].as_array().into_iter().flatten().map(|tool| &tool["function"]).enumerate()
}

fn first<T>(mut all: impl Iterator<Item = T>, fits: impl Fn(&T) -> bool) -> Option<T> {
    all.find(fits)
}

fn is_empty_message(message: &Value) -> bool {
    let content = &message["content"];
    let says = content.as_str().is_some_and(|text| !text.trim().is_empty());
    !says && content.as_array().is_none_or(Vec::is_empty) && calls(message).is_empty()
}

fn find_missing_field(request: &Value, field: &str) -> Option<String> {
    let lacking = |message: &Value| message[field].is_null() || message[field] == "";
    first(callers(request), |(_, message)| lacking(message))
        .map(|(at, _)| format!("Missing `{field}` field in the assistant message at message index {at}."))
}

fn find_missing_signature(request: &Value) -> Option<String> {
    let lacking = |message: &Value| !at(message, "/tool_calls/0/extra_content/google/thought_signature").is_string();
    first(callers(request), |(_, message)| lacking(message))
        .map(|_| "Function call is missing a thought_signature in functionCall parts.".to_owned())
}

fn find_missing_tools(request: &Value) -> Option<String> {
    let is_offered = request["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    (!is_offered && callers(request).next().is_some())
        .then(|| "Anthropic expects the `tools=` param to be passed in when the history has tool calls.".to_owned())
}

fn bad_tool((at, tool): (usize, &Value)) -> Option<String> {
    let name = tool["name"].as_str().unwrap_or_default();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !(1..=64).contains(&name.len()) || !name.bytes().all(is_name) {
        return Some(format!("Invalid 'tools[{at}].function.name': string does not match pattern: {name}"));
    }
    let schema = &tool["parameters"];
    if schema.is_null() {
        return None;
    }
    let wrong = match () {
        () if schema["type"] != "object" => Some("schema must be a JSON Schema of 'type: \"object\"'".to_owned()),
        () if !schema["required"].is_null() && !schema["required"].is_array() => {
            Some("'required' is not of type 'array'".to_owned())
        }
        () => array_without_items(schema),
    };
    wrong.map(|wrong| format!("Invalid schema for function '{name}': {wrong}"))
}

/// The schemas within a schema, itself first.
fn schemas(schema: &Value) -> Vec<&Value> {
    let named = ["properties", "$defs", "definitions"].map(|key| schema[key].as_object()).into_iter().flatten();
    let named = named.flat_map(|all| all.values());
    let single = ["items", "additionalProperties", "not"].map(|key| &schema[key]).into_iter();
    let listed = ["anyOf", "oneOf", "allOf", "prefixItems"].map(|key| schema[key].as_array()).into_iter().flatten();
    let inner = named.chain(single).chain(listed.flatten()).filter(|inner| inner.is_object());
    std::iter::once(schema).chain(inner.flat_map(schemas)).collect()
}

fn array_without_items(schema: &Value) -> Option<String> {
    let lacking =
        |schema: &&Value| schema["type"] == "array" && schema["items"].is_null() && schema["prefixItems"].is_null();
    schemas(schema).into_iter().find(lacking).map(|_| "array schema missing items.".to_owned())
}

fn bad_schema(schema: &Value) -> Option<String> {
    schemas(schema).into_iter().find_map(|schema| match () {
        () if schema["type"].is_array() => Some("Invalid value at 'type': a list of types is not supported".to_owned()),
        () if schema["enum"].is_array() && !schema["type"].is_string() => Some("'enum' needs a 'type'".to_owned()),
        () if schema["type"] == "array" && !schema["items"].is_object() => {
            Some("field 'items' is missing in a schema of type ARRAY".to_owned())
        }
        () => None,
    })
}

fn ids(request: &Value) -> impl Iterator<Item = &str> {
    let calls = callers(request).flat_map(|(_, message)| calls(message));
    calls.map(|call| call["id"].as_str().unwrap_or_default())
}

fn bad_ids(request: &Value) -> Option<String> {
    let mut seen = HashSet::new();
    let wrong_id = ids(request).find_map(|id| match () {
        () if !seen.insert(id) => Some(format!("Duplicate value for 'tool_call_id' of '{id:.40}'")),
        () if id.is_empty() || id.len() > CALL_ID => Some(format!("tool_calls.id: expected 1 to {CALL_ID} characters")),
        () => None,
    });
    let arguments =
        callers(request).flat_map(|(_, message)| calls(message)).map(|call| at(call, "/function/arguments"));
    let is_json = |text: &Value| text.as_str().is_some_and(|text| serde_json::from_str::<Value>(text).is_ok());
    wrong_id.or_else(|| first(arguments, |text| !is_json(text)).map(|_| "arguments are not JSON".to_owned()))
}

fn find_late_system(request: &Value) -> Option<String> {
    let late =
        |(at, message): &(usize, &Value)| *at > 0 && (message["role"] == "system" || message["role"] == "developer");
    first(messages(request), late).map(|_| "System message must be at the beginning.".to_owned())
}

fn find_repeated_role(request: &Value) -> Option<String> {
    let roles: Vec<&str> = messages(request).filter_map(|(_, message)| message["role"].as_str()).collect();
    let same = |pair: &&[&str]| matches!(pair, [one, next] if one == next && matches!(*one, "user" | "assistant"));
    roles
        .windows(2)
        .find(same)
        .map(|_| "Conversation roles must alternate user/assistant/user/assistant/...".to_owned())
}

fn find_bad_mistral_id(request: &Value) -> Option<String> {
    let fits = |id: &str| id.len() == MISTRAL_ID && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    first(ids(request), |id| !fits(id))
        .map(|id| format!("Tool call id was {id:.40} but must be a-z, A-Z, 0-9, with a length of {MISTRAL_ID}."))
}

fn find_unpaired_result(request: &Value) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    for (_, message) in messages(request) {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let Some(at) = open.iter().position(|one| *one == id) else {
                return Some(format!("messages with role 'tool' must be a response to a preceding call: '{id:.40}'"));
            };
            open.swap_remove(at);
        } else if let Some(id) = open.first() {
            return Some(format!("tool_call_ids did not have response messages: {id:.40}"));
        }
        open.extend(calls(message).iter().filter_map(|call| call["id"].as_str()));
    }
    open.first().map(|id| format!("tool_call_ids did not have response messages: {id:.40}"))
}

#[cfg(test)]
mod tests;
