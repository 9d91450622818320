//! What became of a verdict or an order: the agent refused it, or did what it says. Pure.

use kairo_core::event_json::EventJson;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::{lapse, watch};

const AGENT_FAILED: &str = "kairo.agent.failed.v1";
const UNDELIVERED: &str = "kairo.user.undelivered.v1";
const TOOL_RESULT: &str = "kairo.tool.result.v1";

/// Failures by which an agent says that it cannot do what it was told; it goes on after all others.
const REFUSALS: [&str; 5] = ["unknown_action", "unknown_offer", "not_in_doubt", "unknown_verdict", "unknown_command"];

/// What ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// The words of the agent, once it has gone on.
    Words,
    /// The result of the tool that the order became.
    Result,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    Done { text: String },
    Failed { reason: String },
}

/// Watches the events that follow from an order.
#[derive(Clone, Debug)]
pub struct Order {
    correlation_id: Uuid,
    until: Awaited,
    failure: Option<String>,
}

impl Order {
    pub fn new(correlation_id: Uuid, until: Awaited) -> Self {
        Self { correlation_id, until, failure: None }
    }

    /// Looks at the next event; `Some` when it ended the order. Events of other orders are passed over.
    pub fn observe(&mut self, event: &EventJson) -> Option<Outcome> {
        if event.correlation_id != self.correlation_id {
            return None;
        }
        let text = event.text().to_owned();
        match event.type_name.as_str() {
            UNDELIVERED => Some(Outcome::Failed { reason: text }),
            AGENT_FAILED => self.failed(event, text),
            TOOL_RESULT if self.until == Awaited::Result => match flag(event, "ok") {
                true => Some(Outcome::Done { text }),
                false => Some(Outcome::Failed { reason: text }),
            },
            _ if self.until == Awaited::Words && event.is_final_reply() => Some(match self.failure.take() {
                Some(reason) => Outcome::Failed { reason },
                None => Outcome::Done { text },
            }),
            _ => None,
        }
    }

    fn failed(&mut self, event: &EventJson, text: String) -> Option<Outcome> {
        let kind = event.payload.get("kind").and_then(Value::as_str).unwrap_or_default();
        if REFUSALS.contains(&kind) {
            return Some(Outcome::Failed { reason: text });
        }
        self.failure = (!flag(event, "retried")).then_some(text);
        None
    }
}

/// The result of an order in words: how the process or the action ended that was to be stopped.
pub fn in_words(result: &str) -> String {
    let Ok(told) = serde_json::from_str::<Value>(result) else { return result.to_owned() };
    let text = |name: &str| told.get(name).and_then(Value::as_str);
    let number = |name: &str| told.get(name).and_then(Value::as_i64);
    if let (Some(process), Some(outcome)) = (text("process_id"), text("outcome")) {
        let program = watch::program_name(text("program").unwrap_or("process"));
        let how = watch::how(outcome, number("code"), number("signal"), text("reason").unwrap_or_default());
        let ran = number("ran_ms").and_then(|ran| u64::try_from(ran / 1_000).ok()).map(lapse::short);
        let ran = ran.map(|ran| format!(" after {ran}")).unwrap_or_default();
        return format!("{program} ({}){ran}: {how}", watch::short(process));
    }
    if let (Some(action), Some(tool), Some(status)) = (text("action_id"), text("tool"), text("status")) {
        let why = told.pointer("/error/message").and_then(Value::as_str);
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        return format!("{tool} ({}) {status}{why}", watch::short(action));
    }
    result.to_owned()
}

fn flag(event: &EventJson, name: &str) -> bool {
    event.payload.get(name).and_then(Value::as_bool).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(type_name: &str, payload: Value) -> EventJson {
        serde_json::from_value(json!({
            "event_id": Uuid::nil(), "ts": "2026-01-01T00:00:00Z", "source": "internal", "modality": "text",
            "payload": payload, "meta": {"tags": []}, "type": type_name, "sequence": 1, "position": 0,
            "subject": "kairo.agent.a.decision", "correlation_id": Uuid::from_u128(1), "causation_id": null,
            "thread_id": null,
        }))
        .unwrap()
    }

    fn outcome(awaited: Awaited, events: &[EventJson]) -> Option<Outcome> {
        let mut order = Order::new(Uuid::from_u128(1), awaited);
        events.iter().find_map(|event| order.observe(event))
    }

    fn failed(kind: &str) -> EventJson {
        event(AGENT_FAILED, json!({"kind": kind, "text": format!("{kind}: no")}))
    }

    fn say() -> EventJson {
        event("kairo.agent.action.v1", json!({"type": "say", "text": "going on", "final": true, "message_id": ""}))
    }

    #[test]
    fn a_verdict_ends_with_the_words_of_the_agent_and_an_order_with_its_result() {
        let result = event(TOOL_RESULT, json!({"ok": true, "text": "{}"}));
        let done = |text: &str| Some(Outcome::Done { text: text.into() });
        assert_eq!(outcome(Awaited::Words, &[result.clone(), say()]), done("going on"));
        assert_eq!(outcome(Awaited::Result, &[say(), result]), done("{}"));
        let gone = event(TOOL_RESULT, json!({"ok": false, "text": "not_found: no such action"}));
        assert_eq!(
            outcome(Awaited::Result, &[gone]),
            Some(Outcome::Failed { reason: "not_found: no such action".into() })
        );
    }

    #[test]
    fn what_was_stopped_is_told_in_words() {
        let id = "1f0c2ab4-0000-0000-0000-000000000001";
        let told = |value: Value| in_words(&value.to_string());
        let process = json!({
            "process_id": id, "program": "/bin/sh", "status": "ended", "outcome": "canceled", "reason": "on request",
            "ran_ms": 65_000, "stdout": "x",
        });
        assert_eq!(told(process), "sh (1f0c2ab4) after 1m 5s: canceled: on request");
        let over = json!({"process_id": id, "program": "sh", "outcome": "exited", "code": 3});
        assert_eq!(told(over), "sh (1f0c2ab4): exited with code 3");
        let error = json!({"kind": "canceled", "message": "on request"});
        let action = json!({"action_id": id, "tool": "http.get", "status": "canceled", "ok": false, "error": error});
        assert_eq!(told(action), "http.get (1f0c2ab4) canceled: on request");
        let over = json!({"action_id": id, "tool": "http.get", "status": "ended already", "ok": true});
        assert_eq!(told(over), "http.get (1f0c2ab4) ended already");
        assert_eq!((in_words("{\"n\":1}"), in_words("noted")), ("{\"n\":1}".to_owned(), "noted".to_owned()));
    }

    #[test]
    fn a_refusal_ends_it_at_once_and_other_failures_with_the_turn() {
        let refused = Some(Outcome::Failed { reason: "not_in_doubt: no".into() });
        assert_eq!(outcome(Awaited::Words, &[failed("not_in_doubt")]), refused);
        assert_eq!(outcome(Awaited::Words, &[failed("model_timeout")]), None);
        let failure = Some(Outcome::Failed { reason: "model_timeout: no".into() });
        assert_eq!(outcome(Awaited::Words, &[failed("model_timeout"), say()]), failure);
    }

    #[test]
    fn other_orders_are_passed_over() {
        assert_eq!(Order::new(Uuid::from_u128(2), Awaited::Words).observe(&say()), None);
    }
}
