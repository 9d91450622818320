//! A scenario: what the simulated model says to what. Reading one checks everything in it and
//! compiles every pattern and template, so that answering a request only matches and renders.

mod compile;
mod expand;
mod format;

use regex::Regex;

pub use format::{Fault, ReasoningForm, ResultStatus, TimesPer};

use crate::demand::Demand;
use crate::form::WireForm;
use crate::templates::{Argument, TemplateText, Templates};

/// A scenario that was checked and compiled.
pub struct Scenario {
    /// The names `GET /v1/models` lists. Requests may name any other.
    pub models: Vec<String>,
    /// In order; the first that matches answers.
    pub rules: Vec<ScenarioRule>,
    /// The pace of an answer that no rule gave.
    pub pace: Pace,
    pub(crate) templates: Templates,
}

/// Everything that is wrong with a scenario file.
#[derive(Debug, thiserror::Error)]
#[error("the scenario has {} mistake(s):\n  {}", .0.len(), .0.join("\n  "))]
pub struct ScenarioMistakes(pub Vec<String>);

pub struct ScenarioRule {
    /// Unique in the scenario.
    pub name: String,
    pub when: Conditions,
    /// The rule is passed over once it has answered this often.
    pub times: Option<Times>,
    pub script: Script,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    pub limit: u32,
    pub per: TimesPer,
    /// And no longer than this since it answered first, in milliseconds.
    pub within_ms: Option<u64>,
}

pub enum Script {
    /// One answer, given whenever the rule matches.
    Always(Box<AnswerPlan>),
    /// One answer for each round of a turn; the rule does not match in later rounds.
    Rounds(Vec<AnswerPlan>),
}

/// Conditions that must all hold for a rule to match: each pattern is found, the name is in the list (an empty list
/// takes any), all tools are offered, the numbers are equal.
pub struct Conditions {
    pub user: Vec<Regex>,
    pub conversation: Vec<Regex>,
    pub system: Vec<Regex>,
    pub models: Vec<String>,
    /// Names as on the wire.
    pub tools_offered: Vec<String>,
    pub has_image: Option<bool>,
    pub has_audio: Option<bool>,
    pub has_video: Option<bool>,
    pub part_sha256: Vec<String>,
    pub part_media_type: Vec<String>,
    pub step: Option<usize>,
    pub step_at_least: Option<usize>,
    pub round: Option<usize>,
    pub result: Option<ResultConditions>,
    /// Found in one of the user messages.
    pub any_user: Vec<Regex>,
    /// One of these is violated.
    pub violates: Vec<Demand>,
    /// The request has more tokens than this, four bytes to a token.
    pub larger_than_tokens: Option<usize>,
    /// The required value of whether a call would be taken: tools are offered, and the choice is not `none`.
    pub may_call: Option<bool>,
}

pub struct ResultConditions {
    /// Names as on the wire.
    pub tools: Vec<String>,
    pub status: Option<ResultStatus>,
    pub content: Vec<Regex>,
}

pub struct AnswerPlan {
    pub pace: Pace,
    pub fault: Option<Fault>,
    pub forms: Vec<WireForm>,
    pub content: AnswerContent,
}

pub enum AnswerContent {
    Message(MessagePlan),
    /// A [`crate::raw::RawReply`] with templates in it.
    Raw(Argument),
    Error(ErrorPlan),
}

pub struct MessagePlan {
    pub text: Option<TemplateText>,
    /// Said as JSON, in place of a text.
    pub json: Option<Argument>,
    pub reasoning: Option<TemplateText>,
    pub reasoning_form: ReasoningForm,
    /// Sent as they are.
    pub reasoning_details: Vec<serde_json::Value>,
    /// The ends of the text's chunks in a stream, in characters from its beginning; where `chunk_chars` say if absent.
    pub chunk_ends: Option<Vec<usize>>,
    pub tool_calls: Vec<ToolCallPlan>,
    pub finish_reason: Option<String>,
    /// Prompt and completion tokens; estimated if absent.
    pub usage: Option<(u32, u32)>,
}

pub struct ToolCallPlan {
    /// The name as on the wire.
    pub tool: String,
    pub id: Option<String>,
    pub arguments: Arguments,
}

pub enum Arguments {
    Json(Argument),
    /// Sent as it is, whether or not it is JSON.
    Raw(TemplateText),
}

pub struct ErrorPlan {
    pub status: u16,
    pub message: TemplateText,
    pub kind: Option<String>,
    pub code: Option<String>,
    /// In seconds, for the `Retry-After` header.
    pub retry_after: Option<u64>,
}

/// The pace of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Before the first byte of the answer, in milliseconds.
    pub delay_ms: u64,
    /// Between two chunks of a stream, in milliseconds.
    pub chunk_delay_ms: u64,
    /// Characters in a chunk of a stream; at least 1.
    pub chunk_chars: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self { delay_ms: 0, chunk_delay_ms: 0, chunk_chars: 24 }
    }
}

impl Scenario {
    /// Reads and checks the text of a scenario file.
    ///
    /// # Errors
    /// Every mistake, each with the rule's name and line.
    pub fn parse(yaml: &str) -> Result<Self, ScenarioMistakes> {
        compile::scenario(yaml).map_err(ScenarioMistakes)
    }
}

/// The name of a tool on the wire, where dots are not allowed: `tools.now` is `tools__now`.
#[must_use]
pub fn wire_tool_name(name: &str) -> String {
    name.replace('.', "__")
}

/// The dotted name of a tool, from its name on the wire.
#[must_use]
pub fn dotted_tool_name(wire_name: &str) -> String {
    wire_name.replace("__", ".")
}
