//! The features of a request that an endpoint refuses, and without which it may answer.

use std::sync::LazyLock;

use regex::Regex;

use super::body::ErrorBody;

/// A part of a request that an endpoint does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusedFeature {
    /// `response_format`, or the schema within.
    ResponseFormat,
    StreamOptions,
    /// `max_completion_tokens`: it may know `max_tokens`.
    MaxCompletionTokens,
    ToolChoice,
    /// One tool, by its name on the wire.
    Tool(String),
    /// One tool, by its place among those that were offered.
    ToolAt(usize),
    /// Images, audio and video.
    Parts,
    /// A system message, as templates like Gemma 2's do.
    SystemMessage,
    /// Several calls in one message, as Llama 3's template does.
    ParallelCalls,
    /// Ids of calls that are not nine letters and digits, as Mistral does.
    CallIds,
    /// A field of messages that is passed back.
    MessageField(String),
}

impl RefusedFeature {
    /// Returns true if it is the form of the conversation.
    pub fn is_form(&self) -> bool {
        matches!(self, Self::SystemMessage | Self::ParallelCalls | Self::CallIds)
    }

    /// Returns true if it is a schema.
    pub fn is_schema(&self) -> bool {
        matches!(self, Self::ResponseFormat | Self::Tool(_) | Self::ToolAt(_))
    }
}

/// Words of those who refuse something.
const REFUSING: [&str; 25] = [
    "only supports",
    "unsupported",
    "not support",
    "n't support",
    "unrecognized",
    "unrecognised",
    "unknown",
    "unexpected",
    "extra inputs",
    "extra fields",
    "not permitted",
    "not allowed",
    "additional propert",
    "unavailable",
    "not available",
    "invalid",
    "not implemented",
    "must be",
    "should be",
    "cannot be",
    "not a valid",
    "no endpoints found",
    "failed",
    "not enabled",
    "missing",
];
/// Fields that are passed back within messages.
const MESSAGE_FIELDS: [&str; 7] = [
    "reasoning_content",
    "reasoning_details",
    "extra_content",
    "thinking_blocks",
    "provider_specific_fields",
    "thought_signature",
    "reasoning",
];

static TOOL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?:schema for (?:function|tool)|(?:function|tool)(?: named| name)?) ['"`]+(?P<name>[A-Za-z0-9_.-]{1,128})['"`]"#).ok()
});
static TOOL_AT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?:tools|functions|function_declarations|functiondeclarations)(?:\[(?P<in>\d{1,4})\]|\.(?P<behind>\d{1,4})\b)").ok()
});
/// Gemini counts the functions within one tool.
static DECLARED_AT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?:function_declarations|functiondeclarations)\[(?P<in>\d{1,4})\]").ok());

/// Returns the refused feature; none if nothing names one.
pub fn find(said: &ErrorBody) -> Option<RefusedFeature> {
    if !said.has_words(&REFUSING) {
        return None;
    }
    let names = |words: &[&str]| said.has_words(words);
    if names(&["stream_options", "include_usage"]) {
        return Some(RefusedFeature::StreamOptions);
    }
    if names(&["max_completion_tokens"]) && !names(&["use 'max_completion_tokens'", "too large", "at least", "exceed"])
    {
        return Some(RefusedFeature::MaxCompletionTokens);
    }
    if names(&["response_format", "response format", "structured output", "guided decoding"]) {
        return Some(RefusedFeature::ResponseFormat);
    }
    if names(&["tool_choice", "tool choice"]) {
        return Some(RefusedFeature::ToolChoice);
    }
    if let Some(form) = form(said) {
        return Some(form);
    }
    if let Some(tool) = tool(said) {
        return Some(tool);
    }
    if names(&["json_schema", "json schema", "grammar"]) {
        return Some(RefusedFeature::ResponseFormat);
    }
    let is_field = |field: &&&str| said.text.contains(**field) && !said.text.contains("missing");
    if let Some(field) = MESSAGE_FIELDS
        .iter()
        .find(is_field)
        .filter(|field| **field != "reasoning" || names(&["'reasoning'", "\"reasoning\"", ".reasoning"]))
    {
        return Some(RefusedFeature::MessageField((*field).to_owned()));
    }
    let of_parts = [
        "image input",
        "image_url",
        "images",
        "image content",
        "multimodal",
        "vision",
        "input_audio",
        "audio input",
        "video_url",
    ];
    let denies = [
        "not support",
        "n't support",
        "unsupported",
        "no endpoints found",
        "unknown variant",
        "not a multimodal",
        "invalid",
        "not enabled",
    ];
    (names(&of_parts) && names(&denies)).then_some(RefusedFeature::Parts)
}

/// Returns the fault in the form of a conversation that a chat template refuses.
fn form(said: &ErrorBody) -> Option<RefusedFeature> {
    let names = |words: &[&str]| said.has_words(words);
    match () {
        () if names(&[
            "system role not supported",
            "system role is not supported",
            "system message is not supported",
        ]) =>
        {
            Some(RefusedFeature::SystemMessage)
        }
        () if names(&["does not support system", "doesn't support system", "system messages are not supported"]) => {
            Some(RefusedFeature::SystemMessage)
        }
        () if names(&["only supports single tool-calls at once", "single tool call", "parallel tool calls"]) => {
            Some(RefusedFeature::ParallelCalls)
        }
        () if names(&["tool call id", "tool_call_id", "tool call ids"])
            && names(&["length of 9", "length 9", "9 characters"]) =>
        {
            Some(RefusedFeature::CallIds)
        }
        () => None,
    }
}

fn tool(said: &ErrorBody) -> Option<RefusedFeature> {
    let original = said.message.as_str();
    let all = said.fields.iter().map(|(_, text)| text.as_str());
    let texts: Vec<&str> = std::iter::once(original).chain(all).collect();
    let is_schema = said.has_words(&["schema", "parameters", "function.name", "properties", "input_schema", "items"]);
    let declared = texts
        .iter()
        .find_map(|text| DECLARED_AT.as_ref()?.captures(&text.to_lowercase())?.name("in")?.as_str().parse().ok());
    if let Some(at) = declared.filter(|_| is_schema) {
        return Some(RefusedFeature::ToolAt(at));
    }
    let named = texts.iter().find_map(|text| Some(TOOL.as_ref()?.captures(text)?.name("name")?.as_str().to_owned()));
    if let Some(name) = named.filter(|_| is_schema) {
        return Some(RefusedFeature::Tool(name));
    }
    let at = texts.iter().find_map(|text| {
        let text = text.to_lowercase();
        let found = TOOL_AT.as_ref()?.captures(&text)?;
        found.name("in").or_else(|| found.name("behind"))?.as_str().parse().ok()
    });
    at.filter(|_| is_schema).map(RefusedFeature::ToolAt)
}
