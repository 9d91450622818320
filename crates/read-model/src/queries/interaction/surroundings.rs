//! The perceptions before a message was thought about: the words of the user's client, and what the agent looked at.
//! Pure.

use std::collections::HashMap;

use kairo_core::event_json::EventJson;
use kairo_proto::{
    v1::{self, Json, PerceivedRow},
    words::{ChainOrigin, TaskStatus},
};
use serde_json::Value;

use super::steps::{payload_text, result_of};

/// The rows perceived so far, and the index of the row for each look under way.
#[derive(Default)]
pub(super) struct Surroundings {
    pub rows: Vec<PerceivedRow>,
    /// Chains that look around: where the row of their first step is.
    chains: HashMap<String, usize>,
    calls: HashMap<String, usize>,
}

impl Surroundings {
    /// Returns true if the chain that starts looks around, and adds a row for each of its steps.
    pub fn claim_chain(&mut self, event: &EventJson) -> bool {
        if payload_text(event, "origin") != ChainOrigin::Environment.known_word() {
            return false;
        }
        self.chains.insert(payload_text(event, "chain_id").to_owned(), self.rows.len());
        let steps = event.payload.get("steps").and_then(Value::as_array).into_iter().flatten();
        let row = |step: &Value| {
            let tool = step.get("event").and_then(Value::as_str).map(str::to_owned);
            PerceivedRow { tool, ..PerceivedRow::default() }
        };
        self.rows.extend(steps.map(row));
        true
    }

    /// Returns true if an event is of a chain that looks around.
    pub fn knows_chain(&self, event: &EventJson) -> bool {
        self.chains.contains_key(payload_text(event, "chain_id"))
    }

    fn row_index(&self, event: &EventJson) -> Option<usize> {
        let step = event.payload.get("step").and_then(Value::as_u64).unwrap_or_default();
        Some(self.chains.get(payload_text(event, "chain_id"))? + usize::try_from(step).ok()?)
    }

    /// Returns true if a call, or a request to a member, belongs to a chain that looks around.
    pub fn claim_call(&mut self, event: &EventJson) -> bool {
        let Some(at) = self.row_index(event) else { return false };
        self.calls.insert(event.event_id.to_string(), at);
        true
    }

    /// Returns true if a step without a call belongs to a chain that looks around, and records why it failed.
    pub fn claim_failure(&mut self, event: &EventJson) -> bool {
        let Some(at) = self.row_index(event) else { return false };
        if let Some(row) = self.rows.get_mut(at) {
            row.error = Some(payload_text(event, "reason").to_owned());
        }
        true
    }

    /// Returns true if the event is the result of a look around. The environment in a user's message is taken in,
    /// too.
    pub fn claim_result(&mut self, event: &EventJson) -> bool {
        let said = payload_text(event, "environment");
        if event.type_name == v1::UserMessage::TYPE
            && let Ok(said) = serde_json::from_str::<Value>(said)
        {
            self.rows.push(PerceivedRow { result: Some(Json::from(&said)), ..PerceivedRow::default() });
        }
        let (action, is_done) = match event.type_name.as_str() {
            v1::ToolResult::TYPE => ("action_id", event.payload.get("ok") == Some(&Value::Bool(true))),
            v1::AgentAnswer::TYPE => {
                ("request_id", payload_text(event, "status") == TaskStatus::Completed.known_word())
            }
            _ => return false,
        };
        let Some(at) = self.calls.get(payload_text(event, action)) else { return false };
        if let Some(row) = self.rows.get_mut(*at) {
            row.result = result_of(event).filter(|_| is_done).as_ref().map(Json::from);
            row.error = (!is_done).then(|| event.text().to_owned());
        }
        true
    }
}
