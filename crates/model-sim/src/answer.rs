//! Answers of the simulator, independent of how they go over the wire.

use crate::form::WireForm;
use crate::raw::RawReply;
use crate::scenario::{Fault, Pace, ReasoningForm};

/// A rendered answer to send back.
#[derive(Debug, PartialEq)]
pub struct SimulatedAnswer<'s> {
    /// The rule that gave it; none if no rule matched.
    pub rule: Option<&'s str>,
    pub pace: Pace,
    pub fault: Option<Fault>,
    /// In which forms it is sent, one after the other; of a message alone.
    pub forms: Vec<WireForm>,
    pub reply: Reply,
}

#[derive(Debug, PartialEq)]
pub enum Reply {
    Message(ReplyMessage),
    /// Written out.
    Raw(RawReply),
    Error(ErrorReply),
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReplyMessage {
    pub text: Option<String>,
    /// Unless it stands in the text.
    pub reasoning: Option<String>,
    pub reasoning_form: ReasoningForm,
    pub reasoning_details: Vec<serde_json::Value>,
    /// The ends of the text's chunks in a stream, in characters from its beginning.
    pub chunk_ends: Option<Vec<usize>>,
    pub tool_calls: Vec<ReplyToolCall>,
    pub finish_reason: String,
    pub prompt_tokens: u32,
    pub completion_tokens: u32,
}

#[derive(Debug, PartialEq, Eq)]
pub struct ReplyToolCall {
    /// Given by the scenario; else the answer's own id is used to make one.
    pub id: Option<String>,
    /// As on the wire.
    pub name: String,
    /// JSON, unless the scenario wants it malformed.
    pub arguments: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorReply {
    pub status: u16,
    pub message: String,
    pub kind: String,
    pub code: Option<String>,
    /// In seconds.
    pub retry_after: Option<u64>,
}
