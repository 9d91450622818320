//! The contract between Kairo's services: every message that may stand in the log, and its type.
//!
//! The structs are generated from `kairo/v1/*.proto` and committed; `tests/generated.rs` holds them to the protos.
//! [`Body`] is the closed list of messages that have a type of their own. A type carries its version
//! (`kairo.tool.result.v1`): within a version, fields are only ever added.

pub mod about;
mod body;
mod values;

use v1::{agent_action::Action, decided_event::Event};

/// The protos, as a compiled `google.protobuf.FileDescriptorSet`, for those who ask what there is.
pub const DESCRIPTORS: &[u8] = include_bytes!("generated/kairo.v1.bin");

pub use about::{About, Decided};
pub use body::{Body, ContentType, Type, Unreadable};

/// The generated messages of package `kairo.v1`.
#[allow(clippy::all, clippy::pedantic, clippy::unwrap_used, clippy::expect_used, unused_qualifications)]
pub mod v1 {
    include!("generated/kairo.v1.rs");
    include!("generated/kairo.v1.serde.rs");
}

impl v1::DecidedEvent {
    /// The words, if that is what was decided.
    pub fn say(&self) -> Option<&v1::Say> {
        match self.action()? {
            Action::Say(say) => Some(say),
            Action::ToolCall(_) => None,
        }
    }

    /// The call of a tool, if that is what was decided.
    pub fn tool_call(&self) -> Option<&v1::ToolCall> {
        match self.action()? {
            Action::ToolCall(call) => Some(call),
            Action::Say(_) => None,
        }
    }

    fn action(&self) -> Option<&Action> {
        let Some(Event::Action(action)) = &self.event else { return None };
        action.action.as_ref()
    }
}

impl v1::AgentDecision {
    /// Stream sequence of the input that was decided on.
    pub fn decided_on(&self) -> u64 {
        if self.overtaking == 0 { self.cursor } else { self.overtaking }
    }
}
