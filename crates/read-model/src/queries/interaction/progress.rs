//! The progress of a turn, from its events as they come. Pure.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kairo_core::event_json::EventJson;
use kairo_proto::{
    v1,
    words::{InteractionStatus, RequestKind},
};
use serde_json::Value;

use super::steps::{is_action, payload_text};

/// The state from which the status of a turn follows. Apply its events in the order of the log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnProgress {
    /// Actions that were called and have not ended.
    running: BTreeSet<String>,
    /// Questions to a human that have no answer yet.
    asked: BTreeSet<String>,
    /// True if an agent has the message. It thinks about it from then on, long before it has decided.
    delivered: bool,
    /// True if anything was decided; `waits` is true if a call has ended and nothing was decided since.
    decided: bool,
    waits: bool,
    failed: bool,
    outcome: Option<(InteractionStatus, Timestamp)>,
}

impl TurnProgress {
    pub fn status(&self) -> InteractionStatus {
        match &self.outcome {
            Some((outcome, _)) => outcome.clone(),
            None if !self.running.is_empty() || !self.asked.is_empty() => InteractionStatus::Executing,
            None if self.waits => InteractionStatus::Reflecting,
            None if self.decided || self.delivered => InteractionStatus::Planning,
            None => InteractionStatus::Started,
        }
    }

    /// When it was answered, or failed.
    pub fn ended_at(&self) -> Option<Timestamp> {
        self.outcome.as_ref().map(|(_, at)| *at)
    }

    /// Takes in the next event of the turn. What comes after its end changes nothing.
    pub fn apply_event(&mut self, event: &EventJson) {
        if self.outcome.is_some() {
            return;
        }
        if event.subject.ends_with(".decision") {
            (self.decided, self.waits) = (true, false);
        }
        match event.type_name.as_str() {
            v1::AgentMessage::TYPE => self.delivered = true,
            v1::AgentAction::TYPE if is_action(event, "tool_call") => self.start_call(event),
            v1::AgentAction::TYPE if is_action(event, "ask") && is_awaited(payload_text(event, "kind")) => {
                self.start_call(event)
            }
            v1::AgentAction::TYPE if event.is_final_reply() && !payload_text(event, "message_id").is_empty() => {
                let is_failed = event.tells_of_failure(self.failed);
                self.end_turn(if is_failed { InteractionStatus::Failed } else { InteractionStatus::Completed }, event);
            }
            // Its message became part of another turn, which answers for both.
            v1::AgentJoined::TYPE => self.end_turn(InteractionStatus::Completed, event),
            v1::AgentFailed::TYPE => {
                self.failed = event.payload.get("retried").and_then(Value::as_bool) != Some(true);
            }
            v1::ApprovalRequested::TYPE => _ = self.asked.insert(event.event_id.to_string()),
            v1::AgentApproval::TYPE => _ = self.asked.remove(payload_text(event, "action_id")),
            v1::ChainEnded::TYPE => self.asked.clear(),
            v1::ToolResult::TYPE => self.end_call(payload_text(event, "action_id")),
            v1::AgentAnswer::TYPE => self.end_call(payload_text(event, "request_id")),
            v1::UserMessageUndelivered::TYPE => self.end_turn(InteractionStatus::Failed, event),
            _ => {}
        }
    }

    fn start_call(&mut self, event: &EventJson) {
        self.running.insert(event.event_id.to_string());
    }

    /// The first end counts.
    fn end_call(&mut self, action: &str) {
        self.waits |= self.running.remove(action);
    }

    fn end_turn(&mut self, outcome: InteractionStatus, event: &EventJson) {
        *self = Self { outcome: Some((outcome, event.ts)), ..Self::default() };
    }
}

/// Returns true if a request of this kind waits for another agent's answer. A call is reported as a tool's.
pub(super) fn is_awaited(kind: &str) -> bool {
    [RequestKind::Work, RequestKind::Think].iter().any(|it| it.known_word() == kind)
}
