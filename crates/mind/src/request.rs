//! Requests to models, built from the state alone, so that they need not be kept.

mod block;
mod conversation;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kairo_events::{consent, ids, media};
use kairo_proto::v1::{Completion, Part, RequestDigests, ToolArgument, ToolSpec};
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use self::conversation::LEFT_OUT;
pub use self::{
    block::{CLOSE, OPEN, block_contents, blocks_offset, context_block, defuse_markers},
    conversation::{Conversation, check_conversation, is_call_id, short_call_id},
};

/// The event of a plan.
pub const PLAN: &str = "agent.chain";
/// The event of an answer.
pub const REPLY: &str = "agent.reply";

/// A model call to be made.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ModelRequest {
    /// heavy, fast or light.
    pub tier: &'static str,
    /// In the form that [`Conversation`] gives them.
    pub messages: Vec<PromptMessage>,
    /// They stay the same through a turn, whether or not they may be called: messages hold calls of them, and what is the same
    /// again is paid for once.
    pub tools: Vec<Tool>,
    /// Further tools that may be called and that the request does not list: a model may know them from earlier in the conversation.
    #[serde(skip)]
    pub unlisted: Vec<Tool>,
    #[serde(skip_serializing_if = "ToolChoice::is_free")]
    pub tool_choice: ToolChoice,
    /// The form of the answer, where it is to be JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_schema: Option<AnswerSchema>,
    /// True if the answer is for the steps that follow, not for the user.
    #[serde(skip)]
    pub analysis: bool,
    /// True for a request of background work, which keeps no user waiting.
    #[serde(skip)]
    pub is_work: bool,
    /// The user on whose behalf the request is made; empty for none. The model does not see it.
    #[serde(skip)]
    pub user: String,
    /// The thread that it belongs to, for traces; empty while none is chosen.
    #[serde(skip)]
    pub thread_id: String,
}

/// The choice of tools that a model may call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// Any of them, or none.
    #[default]
    Free,
    /// None: it must answer.
    None,
    /// At least one.
    Required,
    /// This one.
    Named(String),
}

impl ToolChoice {
    fn is_free(&self) -> bool {
        *self == Self::Free
    }
}

/// The form of an answer in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AnswerSchema {
    /// Name of the schema for endpoints: letters, digits, `_` and `-`, at most 64.
    pub name: Arc<str>,
    /// A JSON Schema of an object, as text.
    pub schema: Arc<str>,
    /// True if the schema keeps to OpenAI's rules for strict ones: every object is closed and requires all its fields.
    pub is_strict: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum PromptMessage {
    System {
        text: String,
    },
    User {
        text: String,
        /// Images and audio, by the digests of their bytes.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        parts: Vec<Part>,
    },
    Assistant {
        text: String,
        calls: Vec<ToolCall>,
        /// Reasoning details to send back to the model server with the calls; see `Completion.reasoning_details`.
        #[serde(skip_serializing_if = "String::is_empty")]
        reasoning_details: String,
        /// Other fields to send back; see `Completion.passed_back`.
        #[serde(skip_serializing_if = "String::is_empty")]
        passed_back: String,
    },
    Tool {
        call_id: String,
        text: String,
    },
}

impl PromptMessage {
    /// Of the model, in words alone.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::assistant_with_calls(text, Vec::new())
    }

    /// Of the model, with calls.
    pub fn assistant_with_calls(text: impl Into<String>, calls: Vec<ToolCall>) -> Self {
        Self::Assistant { text: text.into(), calls, reasoning_details: String::new(), passed_back: String::new() }
    }

    /// Of a user, in words alone.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User { text: text.into(), parts: Vec::new() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ToolCall {
    pub id: String,
    pub tool: String,
    pub arguments: String,
    /// Fields to send back to the model server with the call; see `CompletionToolCall.passed_back`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub passed_back: String,
}

/// A tool as it is offered to a model. Every request has all of them, so a copy shares its texts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tool {
    pub name: Arc<str>,
    pub description: Arc<str>,
    /// JSON Schema of the arguments, as text.
    pub schema: Arc<str>,
    /// True if a human must consent to each call; the model need not know.
    #[serde(skip)]
    pub needs_approval: bool,
    /// Arguments with which a call needs a human's consent, if not every call does.
    #[serde(skip)]
    pub needs_approval_with: Vec<ToolArgument>,
    /// True if the tool has effects that others see: a human must consent to it in a turn that has seen content from
    /// outside.
    #[serde(skip)]
    pub acts_outside: bool,
}

impl Tool {
    /// Returns true if a human must consent to a call with these arguments.
    pub fn needs_approval_of(&self, arguments: &str) -> bool {
        self.needs_approval || consent::is_needed_for_text(&self.needs_approval_with, arguments)
    }
}

impl From<ToolSpec> for Tool {
    fn from(tool: ToolSpec) -> Self {
        let ToolSpec { name, description, schema, needs_approval, needs_approval_with, acts_outside, .. } = tool;
        let name = name.into();
        let description = description.into();
        let schema = schema.into();
        Self { name, description, schema, needs_approval, needs_approval_with, acts_outside }
    }
}

/// Every tool there is, as the catalogue in force lists them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalogue {
    pub version: String,
    pub tools: Vec<Tool>,
}

impl Catalogue {
    /// The tool of this name.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| *tool.name == *name)
    }
}

impl ModelRequest {
    /// One step of the mind, which is told what it is and what it is about, and calls no tools.
    pub fn from_prompt(tier: &'static str, system: impl Into<String>, user: impl Into<String>) -> Self {
        let mut request = Self::from_messages(tier, vec![PromptMessage::System { text: system.into() }]);
        request.conversation().push_user(&user.into(), &[]);
        request
    }

    /// One that offers no tools.
    pub fn from_messages(tier: &'static str, messages: Vec<PromptMessage>) -> Self {
        Self { tier, messages, ..Self::default() }
    }

    /// Has the request answered in JSON of this form.
    #[must_use]
    pub fn with_answer_schema(self, schema: AnswerSchema) -> Self {
        Self { answer_schema: Some(schema), ..self }
    }

    /// Returns true if the model may call a tool.
    pub fn may_call_tools(&self) -> bool {
        !self.tools.is_empty() && self.tool_choice != ToolChoice::None
    }

    /// Adds to its messages.
    pub fn conversation(&mut self) -> Conversation<'_> {
        Conversation::from_messages(&mut self.messages)
    }

    /// Shows the model its answer and what is wrong with it, in a form that every endpoint takes.
    pub fn push_correction(&mut self, answer: &Completion, correction: &str) {
        self.conversation().push_correction(answer, correction);
    }

    /// Every image and piece of audio in it, the oldest first.
    pub fn media_parts(&self) -> impl DoubleEndedIterator<Item = &Part> {
        self.messages.iter().flat_map(|message| match message {
            PromptMessage::User { parts, .. } => parts.as_slice(),
            _ => &[],
        })
    }

    /// Puts words in the place of every image and piece of audio.
    pub fn replace_media_with_words(&mut self, why: &str) {
        for message in &mut self.messages {
            let PromptMessage::User { text, parts } = message else { continue };
            parts.drain(..).for_each(|part| add_line(text, &describe_omitted_part(&part, why)));
        }
    }

    /// Leaves out the older half of what was said, but for the system's first words and the user's last ones. What is left is a
    /// conversation as every endpoint takes it.
    pub fn drop_older_half(&mut self) {
        let first = usize::from(matches!(self.messages.first(), Some(PromptMessage::System { .. })));
        let mut rest = self.messages.split_off(first.min(self.messages.len()));
        // It says that something was left out, and stands for nothing.
        let is_mark = |message: &PromptMessage| matches!(message, PromptMessage::User { text, .. } if *text == context_block(LEFT_OUT));
        if rest.first().is_some_and(is_mark) {
            rest.remove(0);
        }
        let is_said = |message: &PromptMessage| {
            matches!(message, PromptMessage::User { .. }) && !conversation::holds_result_parts(message)
        };
        let last_said = rest.iter().rposition(is_said);
        let half = rest.len() / 2;
        // A result is nothing without its call.
        let is_result = |message: &&PromptMessage| {
            matches!(message, PromptMessage::Tool { .. }) || conversation::holds_result_parts(message)
        };
        let half = half + rest.iter().skip(half).take_while(is_result).count();
        let kept = rest.into_iter().enumerate().filter(|(at, _)| *at >= half || Some(*at) == last_said);
        let kept: Vec<PromptMessage> = kept.map(|(_, message)| message).collect();
        if !matches!(kept.first(), Some(PromptMessage::User { .. })) {
            self.messages.push(PromptMessage::user(context_block(LEFT_OUT)));
        }
        self.messages.extend(kept);
    }

    /// Digests of its parts, but for what is sent; `tools` is that of its tools as JSON. Facts are the blocks behind its last words.
    pub fn part_digests(&self, tools: u64) -> RequestDigests {
        let is_system = |message: &&PromptMessage| matches!(message, PromptMessage::System { .. });
        let (system, rest) = self.messages.split_at(self.messages.iter().take(1).take_while(is_system).count());
        let of = |messages: &[&PromptMessage]| match messages {
            [] => 0,
            messages => short_digest(&serde_json::to_vec(messages).unwrap_or_default()),
        };
        let (last, facts) = rest.last().map_or((None, ""), split_off_blocks);
        let earlier = rest.get(..rest.len().saturating_sub(1)).unwrap_or_default();
        let history: Vec<&PromptMessage> = earlier.iter().chain(&last).collect();
        RequestDigests {
            system: of(&system.iter().collect::<Vec<_>>()),
            tools: if self.tools.is_empty() { 0 } else { tools },
            history: of(&history),
            facts: if facts.is_empty() { 0 } else { short_digest(facts.as_bytes()) },
            sent: 0,
        }
    }

    /// Proves that a rebuilt request is the one that was sent.
    pub fn digest(&self) -> String {
        Self::digest_of_json(&serde_json::to_vec(self).unwrap_or_default())
    }

    fn digest_of_json(canonical: &[u8]) -> String {
        ids::from_parts("request", &[canonical]).to_string()
    }

    /// Returns the digest of the request, with its tools already written as JSON.
    pub fn digest_with_tools(&self, tools: &RawValue) -> String {
        self.digest_with_buffer(tools, &mut Vec::new())
    }

    /// Returns the digest of the request, for callers that make many: its JSON overwrites the content of `json`.
    pub(crate) fn digest_with_buffer(&self, tools: &RawValue, json: &mut Vec<u8>) -> String {
        #[derive(Serialize)]
        struct CanonicalRequest<'r> {
            tier: &'r str,
            messages: &'r [PromptMessage],
            tools: &'r RawValue,
            #[serde(skip_serializing_if = "is_free")]
            tool_choice: &'r ToolChoice,
            #[serde(skip_serializing_if = "Option::is_none")]
            answer_schema: &'r Option<AnswerSchema>,
        }
        fn is_free(choice: &&ToolChoice) -> bool {
            choice.is_free()
        }
        let Self { tier, messages, tool_choice, answer_schema, .. } = self;
        let canonical = CanonicalRequest { tier, messages, tools, tool_choice, answer_schema };
        json.clear();
        match serde_json::to_writer(&mut *json, &canonical) {
            Ok(()) => Self::digest_of_json(json),
            Err(_) => Self::digest_of_json(&[]),
        }
    }
}

/// A message without the blocks with which it ends, where anything is left, and these blocks.
fn split_off_blocks(message: &PromptMessage) -> (Option<PromptMessage>, &str) {
    let (PromptMessage::User { text, .. } | PromptMessage::Tool { text, .. }) = message else {
        return (Some(message.clone()), "");
    };
    let (words, facts) = text.split_at(blocks_offset(text));
    let is_bare = words.is_empty() && matches!(message, PromptMessage::User { parts, .. } if parts.is_empty());
    let bare = match message {
        PromptMessage::Tool { call_id, .. } => PromptMessage::Tool { call_id: call_id.clone(), text: words.to_owned() },
        PromptMessage::User { parts, .. } => PromptMessage::User { text: words.to_owned(), parts: parts.clone() },
        other => other.clone(),
    };
    ((!is_bare).then_some(bare), facts)
}

/// The first 8 bytes of the SHA-256.
pub fn short_digest(bytes: &[u8]) -> u64 {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    digest.first_chunk().copied().map_or(0, u64::from_be_bytes)
}

/// Describes an image or a piece of audio that a model is not shown, with the reason.
pub fn describe_omitted_part(part: &Part, why: &str) -> String {
    format!("{} ({why})", media::describe_part(part))
}

/// Puts a line below others.
pub fn add_line(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}
