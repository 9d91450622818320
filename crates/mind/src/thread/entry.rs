//! The entries of a thread.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kairo_proto::v1::{Part, Say};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::SUMMARIZED;
use crate::{
    chat_client::ClientCall, message_content, message_content::MessageContent, request::short_call_id,
    truncation::without_range,
};

/// Text one entry keeps for the model, in bytes. The log has the whole.
const ENTRY_BYTES: usize = 32 * 1024;
/// Of what people were told of a failure, so much is kept for the model, in bytes.
const FAILURE_BYTES: usize = 500;

/// An entry of a thread, as shown to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ThreadEntry {
    User {
        turn: Uuid,
        words: MessageContent,
    },
    Said {
        turn: Uuid,
        text: String,
    },
    Called {
        turn: Uuid,
        text: String,
        calls: Vec<ThreadCall>,
        /// Reasoning details to send back to the model server with the calls while the turn lasts.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reasoning_details: String,
        /// Other fields to send back: a JSON object as text.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        passed_back: String,
    },
    /// Calls of tools of a chat client, which the client carries out.
    Client {
        turn: Uuid,
        text: String,
        calls: Vec<ClientCall>,
    },
    /// Something that happened, and that nobody said.
    Notice {
        turn: Uuid,
        text: String,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadCall {
    pub action: Uuid,
    pub tool: String,
    pub arguments: String,
    pub since: Timestamp,
    /// Nothing about it stands in the log up to here.
    pub after: u64,
    /// Absent while it runs.
    pub result: Option<String>,
    /// The id by which the model knows it; empty where no model made it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub call_id: String,
    /// Fields to send back to the model server with the call while the turn lasts: a JSON object as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub passed_back: String,
    /// Images and audio that came with its result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

impl ThreadCall {
    /// The id by which requests name it.
    pub fn id(&self) -> String {
        if self.call_id.is_empty() { short_call_id(self.action) } else { self.call_id.clone() }
    }
}

impl ThreadEntry {
    /// Builds an entry from an agent's words. A failure becomes a notice, so that a model does not take it for its own
    /// answer.
    pub(crate) fn from_say(turn: Uuid, say: &Say) -> Self {
        match say.failure.as_str() {
            "" => Self::Said { turn, text: cut_to_entry(&say.text) },
            kind => Self::failure_notice(turn, kind, &say.text),
        }
    }

    /// Builds the notice of a failed request, with the kind and the text of the failure.
    pub(crate) fn failure_notice(turn: Uuid, kind: &str, text: &str) -> Self {
        let text = format!("What was asked for was not done ({kind}): {}", cut_to(text, FAILURE_BYTES));
        Self::Notice { turn, text }
    }

    pub fn turn(&self) -> Uuid {
        match self {
            ThreadEntry::User { turn, .. }
            | ThreadEntry::Said { turn, .. }
            | ThreadEntry::Called { turn, .. }
            | ThreadEntry::Client { turn, .. }
            | ThreadEntry::Notice { turn, .. } => *turn,
        }
    }

    /// Returns the entry in another turn, which continues its own.
    pub(crate) fn with_turn(&self, turn: Uuid) -> Self {
        let mut entry = self.clone();
        match &mut entry {
            ThreadEntry::User { turn: of, .. }
            | ThreadEntry::Said { turn: of, .. }
            | ThreadEntry::Called { turn: of, .. }
            | ThreadEntry::Client { turn: of, .. }
            | ThreadEntry::Notice { turn: of, .. } => *of = turn,
        }
        entry
    }

    /// The calls it holds.
    pub(crate) fn calls(&self) -> &[ThreadCall] {
        match self {
            ThreadEntry::Called { calls, .. } => calls,
            ThreadEntry::User { .. }
            | ThreadEntry::Said { .. }
            | ThreadEntry::Client { .. }
            | ThreadEntry::Notice { .. } => &[],
        }
    }

    /// Returns true if the entry is a summary of earlier ones.
    pub(super) fn is_summary(&self) -> bool {
        matches!(self, ThreadEntry::Notice { text, .. } if text.starts_with(SUMMARIZED))
    }

    /// Returns true for the message of a turn that is not over, and for a call that still runs.
    pub(crate) fn is_open(&self, turns: &BTreeSet<Uuid>) -> bool {
        match self {
            ThreadEntry::User { turn, .. } => turns.contains(turn),
            ThreadEntry::Called { calls, .. } => calls.iter().any(|call| call.result.is_none()),
            ThreadEntry::Client { calls, .. } => calls.iter().any(|call| call.result.is_none()),
            ThreadEntry::Said { .. } | ThreadEntry::Notice { .. } => false,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            ThreadEntry::User { words, .. } => words.bytes(),
            ThreadEntry::Said { text, .. } | ThreadEntry::Notice { text, .. } => text.len(),
            ThreadEntry::Called { text, calls, reasoning_details, passed_back, .. } => {
                let call = |call: &ThreadCall| {
                    let parts = call.parts.iter().map(message_content::part_bytes).sum::<usize>();
                    call.arguments.len() + call.passed_back.len() + call.result.as_ref().map_or(0, String::len) + parts
                };
                text.len() + reasoning_details.len() + passed_back.len() + calls.iter().map(call).sum::<usize>()
            }
            ThreadEntry::Client { text, calls, .. } => {
                let call = |call: &ClientCall| call.arguments.len() + call.result.as_ref().map_or(0, String::len);
                text.len() + calls.iter().map(call).sum::<usize>()
            }
        }
    }
}

/// At most [`ENTRY_BYTES`] of a text, saying so when it was cut.
pub(crate) fn cut_to_entry(text: &str) -> String {
    cut_to(text, ENTRY_BYTES)
}

/// At most `bytes` of a text, saying so when it was cut, also before.
pub(crate) fn cut_to(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    without_range(text, text.floor_char_boundary(bytes)..text.len())
}
