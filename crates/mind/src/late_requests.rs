//! Requests that other agents did not answer in time. At the deadline a timer ends the call, and the decision on it
//! tells the other agent to stop. Built from the log.

use kairo_events::record::Record;
use kairo_proto::{
    v1::{ToolError, ToolResult},
    words::ToolErrorKind,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::state::{AgentState, Profile};

/// Seconds until a request is late, when neither the call nor the profile says.
const DEADLINE: u32 = 600;
/// Longest deadline of a request, in seconds: a day.
pub const LONGEST_DEADLINE: u32 = 86_400;

/// A request whose deadline passed at an input that is not decided on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateRequest {
    /// Sequence of the input.
    pub input: u64,
    /// The action that asked.
    pub action: Uuid,
    /// The agent that was asked.
    pub agent: String,
    /// The turn that asked, its thread, and the chain of events that it belongs to.
    pub turn: Uuid,
    pub thread_id: String,
    pub correlation: Uuid,
    /// True if the other agent was told to stop already.
    pub is_canceled: bool,
    /// For people.
    pub message: String,
}

impl Profile {
    /// Seconds until a request of the agent is late whose call does not say.
    pub fn request_deadline(&self) -> u32 {
        if self.request_deadline == 0 { DEADLINE } else { self.request_deadline.min(LONGEST_DEADLINE) }
    }
}

impl AgentState {
    /// Takes in that the deadline of a request has passed: if there is no answer, the call ends.
    pub(super) fn apply_deadline_passed(&mut self, record: &Record, action: Uuid) {
        let Some(known) = self.in_flight.get(&action) else { return };
        let (Some(agent), Some(due)) = (known.asked.clone(), known.due.clone()) else { return };
        let message = format!("{agent} had not answered by {due}, and was told to stop");
        let late = LateRequest {
            input: record.sequence,
            action,
            agent,
            turn: known.turn,
            thread_id: known.thread_id.clone(),
            correlation: self.turns.get(&known.turn).map_or(record.envelope.correlation_id, |turn| turn.correlation),
            is_canceled: known.cancel_requested,
            message: message.clone(),
        };
        self.late.push(late);
        let error = ToolError { kind: ToolErrorKind::TimedOut.text(), message };
        let ended =
            ToolResult { action_id: action.to_string(), ok: false, error: Some(error), ..ToolResult::default() };
        self.apply_tool_result(record, &ended);
    }

    /// The requests that are late at this input.
    pub(super) fn late_at(&self, input: u64) -> impl Iterator<Item = &LateRequest> {
        self.late.iter().filter(move |late| late.input == input)
    }
}
