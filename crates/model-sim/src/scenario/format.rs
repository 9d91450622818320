//! The scenario file as it is written, before anything in it is checked.
//!
//! Every section is a struct whose fields may all be missing. [`read_section`] relies on that: it
//! tries each key by itself, so that one run names every bad key rather than the first.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_saphyr::Spanned;

use crate::demand::Demand;
use crate::form::WireForm;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioFile {
    #[serde(default)]
    pub models: OneOrMany,
    #[serde(default)]
    pub defaults: Value,
    #[serde(default)]
    pub rules: Vec<Spanned<Value>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RuleFile {
    pub name: Option<String>,
    pub when: Value,
    pub times: Option<u32>,
    pub times_per: Option<TimesPer>,
    pub for_ms: Option<u64>,
    pub reply: Option<Value>,
    pub turn: Option<Vec<Value>>,
}

/// The scope for which a rule's `times` is counted.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum TimesPer {
    /// Each conversation has its own count.
    #[default]
    Conversation,
    /// Each user message of each conversation has its own count.
    Turn,
    /// One count for the life of the server.
    Server,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ConditionsFile {
    pub user_contains: OneOrMany,
    pub user_matches: Option<String>,
    pub conversation_contains: OneOrMany,
    pub conversation_matches: Option<String>,
    pub system_contains: OneOrMany,
    pub system_matches: Option<String>,
    pub system_starts_with: OneOrMany,
    pub model: OneOrMany,
    pub tools_offered: OneOrMany,
    pub has_image: Option<bool>,
    pub has_audio: Option<bool>,
    pub has_video: Option<bool>,
    pub part_sha256: OneOrMany,
    pub part_media_type: OneOrMany,
    pub step: Option<usize>,
    pub step_at_least: Option<usize>,
    pub round: Option<usize>,
    pub result: Option<ResultFile>,
    pub any_user_contains: OneOrMany,
    pub any_user_matches: Option<String>,
    pub violates: WordList<Demand>,
    pub larger_than_tokens: Option<usize>,
    pub may_call: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ResultFile {
    pub tool: OneOrMany,
    pub status: Option<ResultStatus>,
    pub contains: OneOrMany,
    pub matches: Option<String>,
}

/// The success or failure that a tool result reports; the README says how that is told.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ResultStatus {
    Ok,
    Error,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AnswerFile {
    pub text: Option<String>,
    pub json: Option<Value>,
    pub reasoning: Option<String>,
    pub reasoning_as: Option<ReasoningForm>,
    pub reasoning_details: Vec<Value>,
    pub tool_calls: Vec<ToolCallFile>,
    pub finish_reason: Option<String>,
    pub usage: Option<UsageFile>,
    pub error: Option<ErrorFile>,
    pub fault: Option<Fault>,
    pub form: WordList<WireForm>,
    pub raw: Option<Value>,
    pub delay_ms: Option<u64>,
    pub chunk_delay_ms: Option<u64>,
    pub chunk_chars: Option<usize>,
    pub chunk_ends: Option<Vec<usize>>,
}

/// The form of reasoning on the wire: endpoints differ.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningForm {
    /// In a field of this name.
    #[default]
    ReasoningContent,
    /// In a field of this name.
    Reasoning,
    /// In both fields, which say the same.
    Both,
    /// In the text, as `<think>…</think>`.
    Think,
    /// In the text, as `<thinking>…</thinking>`.
    Thinking,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolCallFile {
    pub tool: String,
    pub arguments: Option<Map<String, Value>>,
    pub raw_arguments: Option<String>,
    pub id: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UsageFile {
    pub prompt_tokens: u32,
    pub completion_tokens: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ErrorFile {
    pub status: u16,
    pub message: Option<String>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub code: Option<String>,
    pub retry_after: Option<u64>,
}

/// A way in which an answer goes wrong on the wire, below the level of HTTP errors.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Nothing is ever sent; the request stays open until the client leaves.
    Hang,
    /// The first half is sent, then nothing more until the client leaves.
    Stall,
    /// The body, or a chunk in its middle, is not JSON.
    InvalidJson,
    /// The body ends cleanly after its first half: no finish reason, no `[DONE]`.
    Truncate,
    /// The connection is cut after the first half.
    Drop,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DefaultsFile {
    pub delay_ms: Option<u64>,
    pub chunk_delay_ms: Option<u64>,
    pub chunk_chars: Option<usize>,
}

/// A list of known words that may be written as a single one.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum WordList<W> {
    One(W),
    Many(Vec<W>),
}

impl<W> Default for WordList<W> {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl<W> WordList<W> {
    pub(super) fn into_vec(self) -> Vec<W> {
        match self {
            Self::One(word) => vec![word],
            Self::Many(words) => words,
        }
    }
}

/// A list of strings that may be written as a single string.
#[derive(Default)]
pub(super) struct OneOrMany(pub Vec<String>);

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Strings;

        impl<'de> serde::de::Visitor<'de> for Strings {
            type Value = OneOrMany;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a string or a list of strings")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<OneOrMany, E> {
                Ok(OneOrMany(vec![text.to_owned()]))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut items: A) -> Result<OneOrMany, A::Error> {
                let mut strings = Vec::new();
                while let Some(item) = items.next_element()? {
                    strings.push(item);
                }
                Ok(OneOrMany(strings))
            }
        }

        deserializer.deserialize_any(Strings)
    }
}

/// Reads the keys of one section that fit, and says of each of the others what is wrong with it, in
/// lines that begin with `path`.
pub(super) fn read_section<T: DeserializeOwned + Default>(path: &str, section: Value) -> (T, Vec<String>) {
    let fields = match section {
        Value::Null => return (T::default(), Vec::new()),
        Value::Object(fields) => fields,
        _ => return (T::default(), vec![format!("{path}: expected a map of settings")]),
    };
    let mut fitting = Map::new();
    let mut mistakes = Vec::new();
    for (key, value) in fields {
        let alone = Map::from_iter([(key.clone(), value.clone())]);
        match T::deserialize(Value::Object(alone)) {
            Ok(_) => drop(fitting.insert(key, value)),
            Err(error) => mistakes.push(format!("{path}.{key}: {error}")),
        }
    }
    let read = T::deserialize(Value::Object(fitting)).unwrap_or_else(|error| {
        mistakes.push(format!("{path}: {error}"));
        T::default()
    });
    (read, mistakes)
}
