//! A turn: from a user's message to the reply that ends it.

use kairo_core::event_json::EventJson;
use kairo_proto::v1;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::question::AgentQuestion;

/// The end of a turn, or the question that holds it up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Ending {
    /// The agent answered.
    Replied { reply: String },
    /// The agent gave up; the reply says so to the user.
    Failed { reply: String, reason: String },
    /// There was no agent to give the message to.
    Undelivered { reason: String },
    /// The turn has not ended: the agent goes on when this is answered.
    Asked { question: AgentQuestion },
}

/// The change that an event makes to a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnChange {
    /// It ended.
    Ended(Ending),
    /// It became part of the turn with this correlation id, which answers for both and is watched from here on.
    Joined(Uuid),
    /// It goes on when this is answered.
    Asked(AgentQuestion),
}

/// Watches the events of one turn for its end.
#[derive(Clone, Debug)]
pub struct TurnTracker {
    correlation_id: Uuid,
    failure: Option<String>,
}

impl TurnTracker {
    /// The turn that the message with this correlation id began.
    pub fn new(correlation_id: Uuid) -> Self {
        Self { correlation_id, failure: None }
    }

    /// Returns the correlation id that the turn's events carry; it changes when the turn joins another.
    pub fn correlation_id(&self) -> Uuid {
        self.correlation_id
    }

    /// Looks at the next event; `Some` when it changed what becomes of the turn. Events of other turns are passed over,
    /// also of one that the agent took up by itself, later, on what this one began.
    pub fn observe(&mut self, event: &EventJson) -> Option<TurnChange> {
        if event.correlation_id != self.correlation_id {
            return None;
        }
        let text = event.text().to_owned();
        match event.type_name.as_str() {
            v1::UserMessageUndelivered::TYPE => Some(TurnChange::Ended(Ending::Undelivered { reason: text })),
            v1::AgentJoined::TYPE => {
                let into = event.payload.get("into_correlation_id").and_then(Value::as_str);
                self.correlation_id = into.and_then(|id| Uuid::parse_str(id).ok())?;
                Some(TurnChange::Joined(self.correlation_id))
            }
            v1::AgentFailed::TYPE => {
                let retried = event.payload.get("retried").and_then(Value::as_bool).unwrap_or_default();
                self.failure = (!retried).then_some(text);
                None
            }
            v1::ThreadSuggested::TYPE | v1::ApprovalRequested::TYPE => {
                AgentQuestion::from_event(event).map(TurnChange::Asked)
            }
            _ if event.is_final_reply() && !is_unsolicited(event) => {
                let failure = self.failure.take();
                Some(TurnChange::Ended(match event.tells_of_failure(failure.is_some()) {
                    true => Ending::Failed { reply: text, reason: failure.unwrap_or(event.failure().to_owned()) },
                    false => Ending::Replied { reply: text },
                }))
            }
            _ => None,
        }
    }
}

/// Returns true if the agent speaks unprompted, for example to report that a process has ended or to say what a task
/// calls for: it answers no message.
pub fn is_unsolicited(event: &EventJson) -> bool {
    is_say(event) && event.payload.get("message_id").and_then(Value::as_str).unwrap_or_default().is_empty()
}

/// Returns true if the agent says something, either during the turn or to end it.
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
        event(v1::AgentAction::TYPE, json!({"type": "say", "text": text, "final": last, "message_id": "m"}))
    }

    fn failed(retried: bool) -> EventJson {
        event(v1::AgentFailed::TYPE, json!({"text": "model_timeout: too slow", "retried": retried}))
    }

    fn ending(events: &[EventJson]) -> Option<Ending> {
        let mut turn = TurnTracker::new(Uuid::from_u128(1));
        events.iter().find_map(|event| match turn.observe(event)? {
            TurnChange::Ended(ending) => Some(ending),
            TurnChange::Joined(_) | TurnChange::Asked(_) => None,
        })
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
        let sorry = "I could not finish this: too slow";
        let failure = Ending::Failed { reply: sorry.into(), reason: "model_timeout: too slow".into() };
        assert_eq!(ending(&[failed(true), failed(false), say(sorry, true)]), Some(failure.clone()));
        let mut told = say("it takes too long", true);
        told.payload["failure"] = json!("model_timeout");
        let marked = Ending::Failed { reply: "it takes too long".into(), reason: "model_timeout: too slow".into() };
        assert_eq!(ending(&[failed(false), told]), Some(marked));
        let replied = Ending::Replied { reply: "noon".into() };
        assert_eq!(ending(&[failed(false), say("noon", true)]), Some(replied), "what failed was not needed for it");
    }

    #[test]
    fn a_message_for_nobody_ends_at_once() {
        let nobody = event(v1::UserMessageUndelivered::TYPE, json!({"text": "no agent x"}));
        assert_eq!(ending(&[nobody]), Some(Ending::Undelivered { reason: "no agent x".into() }));
    }

    #[test]
    fn other_turns_are_passed_over() {
        let mut turn = TurnTracker::new(Uuid::from_u128(2));
        assert_eq!(turn.observe(&say("noon", true)), None);
    }

    #[test]
    fn what_an_agent_says_by_itself_ends_no_turn() {
        let mut unasked = say("the process has ended", true);
        unasked.payload["message_id"] = json!("");
        assert!(is_unsolicited(&unasked) && !is_unsolicited(&say("noon", true)));
        assert_eq!(ending(&[unasked, say("noon", true)]), Some(Ending::Replied { reply: "noon".into() }));
    }

    #[test]
    fn a_question_ends_no_turn() {
        let suggested = event(v1::ThreadSuggested::TYPE, json!({"action": "suggest_new", "reason": "another matter"}));
        let mut turn = TurnTracker::new(Uuid::from_u128(1));
        assert!(matches!(turn.observe(&suggested), Some(TurnChange::Asked(question)) if question.agent == "a"));
        assert_eq!(ending(&[suggested, say("noon", true)]), Some(Ending::Replied { reply: "noon".into() }));
    }

    #[test]
    fn a_turn_that_joined_another_ends_with_it() {
        let into = Uuid::from_u128(7);
        let joined = event(v1::AgentJoined::TYPE, json!({"text": "", "into_correlation_id": into}));
        let reply = EventJson { correlation_id: into, ..say("both", true) };
        let mut turn = TurnTracker::new(Uuid::from_u128(1));
        assert_eq!(turn.observe(&joined), Some(TurnChange::Joined(into)));
        assert_eq!(turn.observe(&say("noon", true)), None);
        assert_eq!(turn.observe(&reply), Some(TurnChange::Ended(Ending::Replied { reply: "both".into() })));
    }
}
