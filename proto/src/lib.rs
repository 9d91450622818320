//! The contract between Kairo's services: every message that may stand in the log, and its type.
//!
//! The structs and lists are generated from `kairo/v1/*.proto` (`cargo run -p kairo-generator`) and committed; a test
//! of the generator holds them to the protos. [`Body`] is the closed list of messages that have a type of their own. A
//! type carries its version (`kairo.tool.result.v1`): within a version, fields are only ever added.

mod body;
pub mod json;
// Generated code in it matches on every oneof, of however many kinds that have anything personal.
#[allow(clippy::single_match)]
pub mod personal;
pub mod time;
mod values;
pub mod words;

use v1::{agent_action::Action, decided_event::Event};

/// The protos, as a compiled `google.protobuf.FileDescriptorSet`, for gRPC reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!("generated/kairo.v1.bin");

pub use body::{About, Body, ContentType, Decided, READER, READERS, Type, Unreadable};

/// Opens a block in which the runtime tells a model something within a conversation.
pub const CONTEXT_OPEN: &str = "<kairo:context>";
/// Closes such a block.
pub const CONTEXT_CLOSE: &str = "</kairo:context>";

/// The groups of messages by subject: a reader that needs only a few messages matches these groups, and names those it
/// skips. A new message joins a group where it is declared, and the build then fails until every match on that group
/// handles it.
pub mod about {
    pub use crate::body::{
        About, Agent, Chain, Decided, Live, Memory, Outside, Process, State, System, Task, Thread, Tool, Turn, User,
    };
}

/// The generated messages of package `kairo.v1`.
#[allow(clippy::all, clippy::pedantic, clippy::unwrap_used, clippy::expect_used, unused_qualifications)]
pub mod v1 {
    include!("generated/kairo.v1.rs");
}

impl v1::DecidedEvent {
    /// Returns the words, if the decision is to say something.
    pub fn say(&self) -> Option<&v1::Say> {
        match self.action()? {
            Action::Say(say) => Some(say),
            Action::ToolCall(_) | Action::Ask(_) => None,
        }
    }

    /// Returns the tool call, if the decision is one.
    pub fn tool_call(&self) -> Option<&v1::ToolCall> {
        match self.action()? {
            Action::ToolCall(call) => Some(call),
            Action::Say(_) | Action::Ask(_) => None,
        }
    }

    /// Returns the question to another agent, if the decision is one.
    pub fn ask(&self) -> Option<&v1::Ask> {
        match self.action()? {
            Action::Ask(ask) => Some(ask),
            Action::Say(_) | Action::ToolCall(_) => None,
        }
    }

    fn action(&self) -> Option<&Action> {
        let Some(Event::Action(action)) = &self.event else { return None };
        action.action.as_ref()
    }
}

/// A row shows every field of a part.
impl From<v1::PartRow> for v1::Part {
    fn from(v1::PartRow { media_type, digest, size, name }: v1::PartRow) -> Self {
        Self { media_type, digest, size, name }
    }
}

impl v1::AgentDecision {
    /// Returns the stream sequence of the input decided on.
    pub fn decided_on(&self) -> u64 {
        match (self.work_input, self.overtaking) {
            (0, 0) => self.cursor,
            (0, order) => order,
            (work, _) => work,
        }
    }
}
