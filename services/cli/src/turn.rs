//! A turn: from a user's message to the reply that ends it.

use kairo_core::event_json::EventJson;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

const AGENT_FAILED: &str = "kairo.agent.failed.v1";
const UNDELIVERED: &str = "kairo.user.undelivered.v1";

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Ending {
    /// The agent answered.
    Replied { reply: String },
    /// The agent gave up; the reply says so to the user.
    Failed { reply: String, reason: String },
    /// There was no agent to give the message to.
    Undelivered { reason: String },
}

/// Watches the events of one turn for its end.
#[derive(Clone, Debug)]
pub struct Turn {
    correlation_id: Uuid,
    failure: Option<String>,
}

impl Turn {
    /// The turn that the message with this correlation id began.
    pub fn new(correlation_id: Uuid) -> Self {
        Self { correlation_id, failure: None }
    }

    /// Looks at the next event; `Some` when it ended the turn. Events of other turns are passed over.
    pub fn observe(&mut self, event: &EventJson) -> Option<Ending> {
        if event.correlation_id != self.correlation_id {
            return None;
        }
        let text = event.text().to_owned();
        match event.type_name.as_str() {
            UNDELIVERED => Some(Ending::Undelivered { reason: text }),
            AGENT_FAILED => {
                let retried = event.payload.get("retried").and_then(Value::as_bool).unwrap_or_default();
                self.failure = (!retried).then_some(text);
                None
            }
            _ if event.is_final_reply() => Some(match self.failure.take() {
                Some(reason) => Ending::Failed { reply: text, reason },
                None => Ending::Replied { reply: text },
            }),
            _ => None,
        }
    }
}

/// Whether the agent says something, be it on the way or to end the turn.
pub fn is_say(event: &EventJson) -> bool {
    event.payload.get("type").and_then(Value::as_str) == Some("say")
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

    fn say(text: &str, last: bool) -> EventJson {
        event("kairo.agent.action.v1", json!({"type": "say", "text": text, "final": last}))
    }

    fn failed(retried: bool) -> EventJson {
        event(AGENT_FAILED, json!({"text": "model_timeout: too slow", "retried": retried}))
    }

    fn ending(events: &[EventJson]) -> Option<Ending> {
        let mut turn = Turn::new(Uuid::from_u128(1));
        events.iter().find_map(|event| turn.observe(event))
    }

    #[test]
    fn only_the_last_words_end_a_turn() {
        assert_eq!(ending(&[say("one moment", false)]), None);
        let replied = Ending::Replied { reply: "noon".into() };
        assert_eq!(ending(&[say("one moment", false), say("noon", true)]), Some(replied));
    }

    #[test]
    fn a_failure_that_was_retried_is_none() {
        let replied = Ending::Replied { reply: "noon".into() };
        assert_eq!(ending(&[failed(true), say("noon", true)]), Some(replied));
        let failure = Ending::Failed { reply: "sorry".into(), reason: "model_timeout: too slow".into() };
        assert_eq!(ending(&[failed(true), failed(false), say("sorry", true)]), Some(failure));
    }

    #[test]
    fn a_message_for_nobody_ends_at_once() {
        let nobody = event(UNDELIVERED, json!({"text": "no agent x"}));
        assert_eq!(ending(&[nobody]), Some(Ending::Undelivered { reason: "no agent x".into() }));
    }

    #[test]
    fn other_turns_are_passed_over() {
        let mut turn = Turn::new(Uuid::from_u128(2));
        assert_eq!(turn.observe(&say("noon", true)), None);
    }
}
