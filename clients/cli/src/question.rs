//! A question that an agent asks its user; the agent goes on only when it is answered. Pure.

use kairo_core::event_json::EventJson;
use kairo_proto::v1;
use kairo_proto::words::OfferAction;
use serde::Serialize;
use serde_json::Value;

/// Characters of a call's arguments that are shown to who is to allow it.
const ARGUMENTS_CHARS: usize = 2_000;

/// A question, to be answered with yes or no.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AgentQuestion {
    /// The id of the event that asks, which an answer names.
    pub id: String,
    /// The agent that asks.
    pub agent: String,
    #[serde(flatten)]
    pub about: QuestionSubject,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum QuestionSubject {
    /// The move of a message to another thread than the current one; `new` is true if the message begins a thread.
    Thread { new: bool, thread_id: String, current_thread_id: String, reason: String, summary: String },
    /// Consent to a tool call; `outside` lists the sources of content by others that the agent has seen.
    Consent { tool: String, arguments: String, outside: Vec<String> },
}

impl AgentQuestion {
    /// The question that an event asks, if it asks one.
    pub fn from_event(event: &EventJson) -> Option<Self> {
        let text = |name: &str| event.payload.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let about = match event.type_name.as_str() {
            v1::ThreadSuggested::TYPE => QuestionSubject::Thread {
                new: text("action") == OfferAction::SuggestNew.as_str(),
                thread_id: text("thread_id"),
                current_thread_id: text("current_thread_id"),
                reason: text("reason"),
                summary: text("summary"),
            },
            v1::ApprovalRequested::TYPE => {
                let marks = event.payload.get("outside").and_then(Value::as_array).into_iter().flatten();
                let outside = marks.filter_map(|mark| mark.as_str().map(str::to_owned)).collect();
                QuestionSubject::Consent { tool: text("tool"), arguments: text("arguments"), outside }
            }
            _ => return None,
        };
        // kairo.agent.<agent>.decision
        let agent = event.subject.split('.').nth(2).unwrap_or_default().to_owned();
        Some(Self { id: event.event_id.to_string(), agent, about })
    }

    /// Returns the question in words, for people.
    pub fn words(&self) -> String {
        match &self.about {
            QuestionSubject::Thread { new: true, reason, .. } => {
                format!("This seems to be a new subject{}. Begin a new thread for it?", because(reason))
            }
            QuestionSubject::Thread { thread_id, reason, summary, .. } => {
                let thread = if summary.is_empty() { thread_id } else { summary };
                format!("This seems to belong to another thread, {thread}{}. Go on there?", because(reason))
            }
            QuestionSubject::Consent { tool, arguments, outside } => {
                let shown: String = arguments.chars().take(ARGUMENTS_CHARS).collect();
                let cut = if shown.len() < arguments.len() { "…" } else { "" };
                let seen = match outside.is_empty() {
                    true => String::new(),
                    false => format!(" It has seen what others wrote: {}.", outside.join(", ")),
                };
                format!("The agent {} asks for consent to call {tool} {shown}{cut}.{seen} May it?", self.agent)
            }
        }
    }

    /// The commands that say yes and no.
    pub fn commands(&self) -> [String; 2] {
        let Self { id, agent, .. } = self;
        match self.about {
            QuestionSubject::Thread { .. } => {
                ["accept", "decline"].map(|option| format!("kairo choose {id} {option} --agent {agent}"))
            }
            QuestionSubject::Consent { .. } => {
                ["approve", "reject"].map(|verdict| format!("kairo {verdict} {id} --agent {agent}"))
            }
        }
    }

    /// Returns true if `event` answers this question.
    pub fn is_answered_by(&self, event: &EventJson) -> bool {
        let (type_name, field) = match self.about {
            QuestionSubject::Thread { .. } => (v1::AgentChoice::TYPE, "offer_id"),
            QuestionSubject::Consent { .. } => (v1::AgentApproval::TYPE, "action_id"),
        };
        let names = |field: &str| event.payload.get(field).and_then(Value::as_str) == Some(&self.id);
        // A request for consent is also over when it expires.
        let is_expired = event.type_name == v1::TaskDue::TYPE && names("task_id");
        is_expired || (event.type_name == type_name && names(field))
    }
}

fn because(reason: &str) -> String {
    let reason = reason.trim().trim_end_matches('.');
    if reason.is_empty() { String::new() } else { format!(" ({reason})") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    const ID: Uuid = Uuid::from_u128(7);

    fn event(type_name: &str, payload: Value) -> EventJson {
        serde_json::from_value(json!({
            "event_id": ID, "ts": "2026-01-01T00:00:00Z", "source": "internal", "modality": "text",
            "payload": payload, "meta": {"tags": []}, "type": type_name, "sequence": 1, "position": 0,
            "subject": "kairo.agent.cook.decision", "correlation_id": Uuid::from_u128(1), "causation_id": null,
            "thread_id": null,
        }))
        .unwrap()
    }

    #[test]
    fn a_suggested_thread_is_accepted_or_declined() {
        let suggested = json!({
            "message_id": "m", "user": "ann", "action": "suggest_switch", "thread_id": "dinner",
            "current_thread_id": "work", "reason": "It is about food.", "summary": "what to cook",
        });
        let question = AgentQuestion::from_event(&event(v1::ThreadSuggested::TYPE, suggested)).unwrap();
        let words = "This seems to belong to another thread, what to cook (It is about food). Go on there?";
        assert_eq!(question.words(), words);
        let [yes, no] = question.commands();
        assert_eq!(yes, format!("kairo choose {ID} accept --agent cook"));
        assert_eq!(no, format!("kairo choose {ID} decline --agent cook"));
        let new =
            AgentQuestion::from_event(&event(v1::ThreadSuggested::TYPE, json!({"action": "suggest_new"}))).unwrap();
        assert_eq!(new.words(), "This seems to be a new subject. Begin a new thread for it?");
        let shown = serde_json::to_value(new).unwrap();
        assert_eq!((&shown["about"], &shown["new"], &shown["id"]), (&json!("thread"), &json!(true), &json!(ID)));
    }

    #[test]
    fn a_call_is_approved_or_rejected() {
        let requested = json!({"tool": "email.send", "arguments": "{\"to\":\"bob\"}", "user": "ann"});
        let question = AgentQuestion::from_event(&event(v1::ApprovalRequested::TYPE, requested)).unwrap();
        assert_eq!(question.words(), "The agent cook asks for consent to call email.send {\"to\":\"bob\"}. May it?");
        let outside =
            json!({"tool": "process.run", "arguments": "{}", "user": "ann", "outside": ["mail:bob@example.org"]});
        let words = AgentQuestion::from_event(&event(v1::ApprovalRequested::TYPE, outside)).unwrap().words();
        assert!(words.ends_with("{}. It has seen what others wrote: mail:bob@example.org. May it?"), "{words}");
        assert_eq!(question.commands()[1], format!("kairo reject {ID} --agent cook"));
        let long = json!({"tool": "t", "arguments": "ü".repeat(10_000)});
        let words = AgentQuestion::from_event(&event(v1::ApprovalRequested::TYPE, long)).unwrap().words();
        assert!(words.chars().count() < 2_100 && words.contains('…'));
    }

    #[test]
    fn an_answer_names_what_it_answers() {
        let question = AgentQuestion::from_event(&event(v1::ThreadSuggested::TYPE, json!({}))).unwrap();
        assert!(question.is_answered_by(&event(v1::AgentChoice::TYPE, json!({"offer_id": ID}))));
        assert!(!question.is_answered_by(&event(v1::AgentChoice::TYPE, json!({"offer_id": Uuid::nil()}))));
        assert!(!question.is_answered_by(&event(v1::AgentApproval::TYPE, json!({"action_id": ID}))));
        assert_eq!(AgentQuestion::from_event(&event(v1::AgentThought::TYPE, json!({}))), None);
    }
}
