//! A tool call that is in flight, or in doubt. Pure.

use jiff::Timestamp;
use kairo_core::event_json::EventJson;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::happening::field;

/// A tool call.
#[derive(Clone, Debug, Serialize)]
pub struct Action {
    pub action_id: Uuid,
    pub tool: String,
    pub arguments: Value,
    pub asked_at: Timestamp,
    /// True once the call has been started.
    pub begun: bool,
    pub process_id: Option<Uuid>,
    pub fraction: Option<f64>,
    pub message: String,
    pub cancel_requested: bool,
    /// The reason why nobody knows whether the call happened; `None` if it is not in doubt.
    pub in_doubt: Option<String>,
}

impl Action {
    /// A call as it was decided on.
    pub(super) fn from_event(event: &EventJson) -> Self {
        Self {
            action_id: event.event_id,
            tool: field(&event.payload, "tool").to_owned(),
            arguments: event.payload.get("args").cloned().unwrap_or_default(),
            asked_at: event.ts,
            begun: false,
            process_id: None,
            fraction: None,
            message: String::new(),
            cancel_requested: false,
            in_doubt: None,
        }
    }

    /// Takes in how far it says it is.
    pub(super) fn advance(&mut self, payload: &Value) {
        self.fraction = payload.get("fraction").and_then(Value::as_f64);
        self.message = field(payload, "message").to_owned();
    }
}
