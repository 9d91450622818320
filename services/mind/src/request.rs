//! What a model is asked, built from the state alone, so that the request need not be kept.

use std::sync::Arc;

use kairo_events::{consent, ids, media};
use kairo_proto::v1::{Part, RequestDigests, ToolArgument, ToolSpec};
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// The event of a plan.
pub const PLAN: &str = "agent.chain";
/// The event of an answer.
pub const REPLY: &str = "agent.reply";

/// A model call to be made.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelRequest {
    /// heavy, fast or light.
    pub tier: &'static str,
    pub messages: Vec<Message>,
    pub tools: Vec<Tool>,
    /// Whether the answer is meant for the steps that follow, and not for the user.
    #[serde(skip)]
    pub analysis: bool,
    /// Whether it is made for what is worked on in the background, which keeps no user waiting.
    #[serde(skip)]
    pub is_work: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
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
        /// What the model server wants back with them; see `Completion.reasoning_details`.
        #[serde(skip_serializing_if = "String::is_empty")]
        reasoning_details: String,
        /// The same of other fields; see `Completion.passed_back`.
        #[serde(skip_serializing_if = "String::is_empty")]
        passed_back: String,
    },
    Tool {
        call_id: String,
        text: String,
    },
}

impl Message {
    /// Of the model, in words alone.
    pub fn answered(text: impl Into<String>) -> Self {
        Self::called(text, Vec::new())
    }

    /// Of the model, with calls.
    pub fn called(text: impl Into<String>, calls: Vec<ToolCall>) -> Self {
        Self::Assistant { text: text.into(), calls, reasoning_details: String::new(), passed_back: String::new() }
    }

    /// Of a user, in words alone.
    pub fn said(text: impl Into<String>) -> Self {
        Self::User { text: text.into(), parts: Vec::new() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ToolCall {
    pub id: String,
    pub tool: String,
    pub arguments: String,
    /// What the model server wants back with the call; see `CompletionToolCall.passed_back`.
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
    /// Whether a human must consent to each call; the model need not know.
    #[serde(skip)]
    pub needs_approval: bool,
    /// Where not to each: a human must consent to the calls with one of these arguments.
    #[serde(skip)]
    pub needs_approval_with: Vec<ToolArgument>,
    /// Whether it does something that others see: a human must consent to it in a turn that has seen content from outside.
    #[serde(skip)]
    pub acts_outside: bool,
}

impl Tool {
    /// Whether a human must consent to a call with these arguments.
    pub fn needs_approval_of(&self, arguments: &str) -> bool {
        self.needs_approval || consent::is_needed_for(&self.needs_approval_with, arguments)
    }
}

impl From<ToolSpec> for Tool {
    fn from(tool: ToolSpec) -> Self {
        let ToolSpec { name, description, schema, needs_approval, needs_approval_with, acts_outside, .. } = tool;
        let (name, description, schema) = (name.into(), description.into(), schema.into());
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
    pub fn of(tier: &'static str, system: impl Into<String>, user: impl Into<String>) -> Self {
        Self::with(tier, vec![Message::System { text: system.into() }, Message::said(user)])
    }

    /// One that offers no tools.
    pub fn with(tier: &'static str, messages: Vec<Message>) -> Self {
        Self { tier, messages, tools: Vec::new(), analysis: false, is_work: false }
    }

    /// Every image and piece of audio in it, the oldest first.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &Part> {
        self.messages.iter().flat_map(|message| match message {
            Message::User { parts, .. } => parts.as_slice(),
            _ => &[],
        })
    }

    /// Puts words in the place of every image and piece of audio.
    pub fn put_in_words(&mut self, why: &str) {
        for message in &mut self.messages {
            let Message::User { text, parts } = message else { continue };
            parts.drain(..).for_each(|part| add_line(text, &in_place_of(&part, why)));
        }
    }

    /// Leaves out the older half of what was said, but for the system's first words and the user's last ones.
    pub fn shorten(&mut self) {
        let first = usize::from(matches!(self.messages.first(), Some(Message::System { .. })));
        let rest = self.messages.split_off(first.min(self.messages.len()));
        let last_said = rest.iter().rposition(|message| matches!(message, Message::User { .. }));
        let half = rest.len() / 2;
        // A result is nothing without its call.
        let is_result = |message: &&Message| matches!(message, Message::Tool { .. });
        let half = half + rest.iter().skip(half).take_while(is_result).count();
        let kept = rest.into_iter().enumerate().filter(|(at, _)| *at >= half || Some(*at) == last_said);
        self.messages.extend(kept.map(|(_, message)| message));
    }

    /// Digests of its parts, but for what is sent; `tools` is that of its tools as JSON.
    pub fn digests(&self, tools: u64) -> RequestDigests {
        let is_system = |message: &&Message| matches!(message, Message::System { .. });
        let (system, rest) = self.messages.split_at(self.messages.iter().take(1).take_while(is_system).count());
        let behind = rest.iter().rev().take_while(is_system).count();
        let (history, facts) = rest.split_at(rest.len() - behind);
        let of = |messages: &[Message]| match messages {
            [] => 0,
            messages => short_digest(&serde_json::to_vec(messages).unwrap_or_default()),
        };
        let tools = if self.tools.is_empty() { 0 } else { tools };
        RequestDigests { system: of(system), tools, history: of(history), facts: of(facts), sent: 0 }
    }

    /// Proves that a rebuilt request is the one that was sent.
    pub fn digest(&self) -> String {
        Self::digest_of(&serde_json::to_vec(self).unwrap_or_default())
    }

    fn digest_of(canonical: &[u8]) -> String {
        ids::named("request", &[canonical]).to_string()
    }

    /// The same digest, where the tools were written as JSON before.
    pub fn digest_with(&self, tools: &RawValue) -> String {
        self.digest_in(tools, &mut Vec::new())
    }

    /// The same digest, for whoever makes many: the request is written as JSON in the place of what was there.
    pub(crate) fn digest_in(&self, tools: &RawValue, json: &mut Vec<u8>) -> String {
        #[derive(Serialize)]
        struct Canonical<'r> {
            tier: &'r str,
            messages: &'r [Message],
            tools: &'r RawValue,
        }
        let canonical = Canonical { tier: self.tier, messages: &self.messages, tools };
        json.clear();
        match serde_json::to_writer(&mut *json, &canonical) {
            Ok(()) => Self::digest_of(json),
            Err(_) => Self::digest_of(&[]),
        }
    }
}

/// The first 8 bytes of the SHA-256.
pub fn short_digest(bytes: &[u8]) -> u64 {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    digest.first_chunk().copied().map_or(0, u64::from_be_bytes)
}

/// What stands for an image or a piece of audio that a model is not shown.
pub fn in_place_of(part: &Part, why: &str) -> String {
    format!("{} ({why})", media::described(part))
}

/// Puts a line below others.
pub fn add_line(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_request_have_digests_of_their_own() {
        let system = |text: &str| Message::System { text: text.into() };
        let asked = |messages: &[Message]| ModelRequest::with("heavy", messages.to_vec()).digests(7);
        let whole = asked(&[system("be kind"), Message::said("hello"), system("one job runs"), system("answer now")]);
        assert_eq!((whole.tools, whole.sent), (0, 0), "none are offered");
        let other_facts = asked(&[system("be kind"), Message::said("hello"), system("no job runs")]);
        assert_eq!((other_facts.system, other_facts.history), (whole.system, whole.history));
        assert_ne!(other_facts.facts, whole.facts);
        let other_history =
            asked(&[system("be kind"), Message::said("hi"), system("one job runs"), system("answer now")]);
        assert_eq!((other_history.system, other_history.facts), (whole.system, whole.facts));
        assert_ne!(other_history.history, whole.history);
        let bare = asked(&[Message::said("hello")]);
        assert_eq!((bare.system, bare.history, bare.facts), (0, whole.history, 0));
    }

    #[test]
    fn the_digest_never_changes() {
        let call = ToolCall { id: "c1".into(), tool: "tools.now".into(), arguments: "{}".into(), ..Default::default() };
        let request = ModelRequest {
            tier: "heavy",
            messages: vec![
                Message::said("What time is it?"),
                Message::called("", vec![call]),
                Message::Tool { call_id: "c1".into(), text: "noon".into() },
            ],
            tools: vec![Tool {
                name: "tools.now".into(),
                description: "The time".into(),
                schema: r#"{"type":"object"}"#.into(),
                needs_approval: false,
                needs_approval_with: Vec::new(),
                acts_outside: false,
            }],
            analysis: false,
            is_work: false,
        };
        assert_eq!(request.digest(), "d8681fef-7343-5b77-9818-0314213e0a27");
        let tools = serde_json::value::to_raw_value(&request.tools).unwrap();
        assert_eq!(request.digest_with(&tools), request.digest());
    }
}
