//! A turn as the log tells it: from a user's message to what is answered. Pure.

use kairo_core::event_json::EventJson;
use kairo_proto::v1;
use kairo_proto::words::OfferAction;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::tail::Said;

/// Characters of a call's arguments that are shown to who is to allow it.
const ARGUMENTS_CHARS: usize = 2_000;
/// Questions that are put in one answer; more are counted.
const MAX_QUESTIONS: usize = 10;

#[derive(Debug)]
pub struct Turn {
    /// Of the turn and of the message that are answered: those of another message when both are answered together.
    correlation: Uuid,
    message_id: String,
    /// What the agent said so far, in order.
    said: Vec<String>,
    replied: bool,
    undelivered: Option<String>,
    open: Vec<Question>,
    tokens: Tokens,
}

/// What a turn took of models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
}

/// How it came out.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Replied,
    /// The agent waits for the user to answer something, which says what and how.
    Asked(String),
    /// No agent can receive the message.
    Undelivered(String),
}

/// Something the agent goes on with when the user has answered.
#[derive(Debug)]
struct Question {
    id: Uuid,
    text: String,
}

impl Turn {
    pub fn new(correlation: Uuid, message_id: String) -> Self {
        let (said, open) = (Vec::new(), Vec::new());
        Self { correlation, message_id, said, replied: false, undelivered: None, open, tokens: Tokens::default() }
    }

    /// Takes a message of the log in. Returns the input that was decided on, if it is a decision of this turn.
    pub fn take(&mut self, message: &Said) -> Option<Uuid> {
        let mut decided = None;
        for event in &message.events {
            self.settle(event);
            if event.correlation_id == self.correlation && !self.replied {
                self.happen(event);
                decided = decided.or(event.causation_id.filter(|_| message.subject.ends_with(".decision")));
            }
        }
        if decided.is_some() {
            self.tokens.input += message.tokens.input;
            self.tokens.output += message.tokens.output;
        }
        decided
    }

    /// How it came out, if it did.
    pub fn outcome(&self) -> Option<Outcome> {
        match &self.undelivered {
            _ if self.replied => Some(Outcome::Replied),
            Some(reason) => Some(Outcome::Undelivered(reason.clone())),
            None if self.open.is_empty() => None,
            None => Some(Outcome::Asked(self.questions())),
        }
    }

    /// What the turn's events carry.
    pub fn correlation(&self) -> Uuid {
        self.correlation
    }

    pub fn said(&self) -> &[String] {
        &self.said
    }

    pub fn tokens(&self) -> Tokens {
        self.tokens
    }

    fn happen(&mut self, event: &EventJson) {
        let text = |name: &str| event.payload.get(name).and_then(Value::as_str).unwrap_or_default();
        match event.type_name.as_str() {
            // What is said besides, such as by a reminder, answers nothing.
            v1::AgentAction::TYPE if text("type") == "say" && text("message_id") == self.message_id => {
                self.said.push(event.text().to_owned());
                self.replied = event.is_final_reply();
            }
            v1::AgentJoined::TYPE if text("message_id") == self.message_id => {
                if let Ok(into) = Uuid::parse_str(text("into_correlation_id")) {
                    self.correlation = into;
                    self.message_id = text("into_message_id").to_owned();
                }
            }
            v1::ThreadSuggested::TYPE => self.open.push(suggested(event)),
            v1::ApprovalRequested::TYPE => self.open.push(requested(event)),
            v1::UserMessageUndelivered::TYPE => self.undelivered = Some(event.text().to_owned()),
            _ => {}
        }
    }

    /// An answer of the user to what is open. It begins a chain of its own.
    fn settle(&mut self, event: &EventJson) {
        let field = match event.type_name.as_str() {
            v1::AgentChoice::TYPE => "offer_id",
            v1::AgentApproval::TYPE => "action_id",
            _ => return,
        };
        let named = event.payload.get(field).and_then(Value::as_str).and_then(|id| Uuid::parse_str(id).ok());
        self.open.retain(|question| Some(question.id) != named);
    }

    fn questions(&self) -> String {
        let mut texts: Vec<&str> =
            self.open.iter().take(MAX_QUESTIONS).map(|question| question.text.as_str()).collect();
        let more = self.open.len().saturating_sub(MAX_QUESTIONS);
        let more = format!("{more} more questions wait; `kairo inbox` lists them.");
        if self.open.len() > MAX_QUESTIONS {
            texts.push(&more);
        }
        texts.push("This goes on when it is answered. The same message again gets what came of it.");
        texts.join("\n\n")
    }
}

fn suggested(event: &EventJson) -> Question {
    let text = |name: &str| event.payload.get(name).and_then(Value::as_str).unwrap_or_default();
    let reason = match text("reason").trim().trim_end_matches('.') {
        "" => String::new(),
        reason => format!(" ({reason})"),
    };
    let what = match text("summary") {
        _ if text("action") == OfferAction::SuggestNew.as_str() => {
            format!("This seems to be a new subject{reason}. Begin a new thread for it?")
        }
        summary => format!("This seems to belong to another thread, {summary}{reason}. Go on there?"),
    };
    let (id, agent, user) = (event.event_id, agent(event), text("user"));
    let ways = ["accept", "decline"].map(|option| format!("kairo choose {id} {option} --agent {agent} --user {user}"));
    let body = json!({ "user": user, "agent": agent, "offer_id": id, "option": "accept" });
    question(id, &what, &ways, &format!("POST /v1/choices {body} (or decline)"))
}

fn requested(event: &EventJson) -> Question {
    let text = |name: &str| event.payload.get(name).and_then(Value::as_str).unwrap_or_default();
    let (tool, arguments) = (text("tool"), text("arguments"));
    let shown: String = arguments.chars().take(ARGUMENTS_CHARS).collect();
    let cut = if shown.len() < arguments.len() { "…" } else { "" };
    let (id, agent, user) = (event.event_id, agent(event), text("user"));
    let what = format!("I need your consent to call {tool} with {shown}{cut}");
    let ways = ["approve", "reject"].map(|verdict| format!("kairo {verdict} {id} --agent {agent} --user {user}"));
    let body = json!({ "user": user, "agent": agent, "action_id": id, "verdict": "approved" });
    question(id, &what, &ways, &format!("POST /v1/approvals {body} (or rejected)"))
}

fn question(id: Uuid, what: &str, [yes, no]: &[String; 2], request: &str) -> Question {
    let text = format!("{what}\n\n- yes: `{yes}`\n- no: `{no}`\n- over HTTP: `{request}`");
    Question { id, text }
}

/// `kairo.agent.<agent>.decision`
fn agent(event: &EventJson) -> &str {
    event.subject.split('.').nth(2).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: u128 = 1;
    const INPUT: Uuid = Uuid::from_u128(50);

    fn event(id: u128, correlation: u128, type_name: &str, payload: Value) -> EventJson {
        serde_json::from_value(json!({
            "event_id": Uuid::from_u128(id), "ts": "2026-11-21T10:00:00Z", "source": "internal", "modality": "text",
            "payload": payload, "meta": { "tags": [] }, "type": type_name, "sequence": 1, "position": 0,
            "subject": "kairo.agent.coach.decision", "correlation_id": Uuid::from_u128(correlation),
            "causation_id": INPUT, "thread_id": null,
        }))
        .unwrap()
    }

    fn say(correlation: u128, message_id: &str, text: &str, last: bool) -> EventJson {
        let payload = json!({ "type": "say", "text": text, "message_id": message_id, "final": last });
        event(9, correlation, v1::AgentAction::TYPE, payload)
    }

    fn decision(events: Vec<EventJson>) -> Said {
        let tokens = Tokens { input: 10, output: 3 };
        Said { sequence: 1, subject: "kairo.agent.coach.decision".to_owned(), events, tokens }
    }

    fn turn() -> Turn {
        Turn::new(Uuid::from_u128(TURN), "m".to_owned())
    }

    #[test]
    fn what_is_said_to_the_message_is_the_answer() {
        let mut turn = turn();
        assert_eq!(turn.take(&decision(vec![say(2, "m", "to another turn", true)])), None);
        assert_eq!(turn.take(&decision(vec![say(TURN, "", "a reminder", false)])), Some(INPUT));
        turn.take(&decision(vec![say(TURN, "m", "Let me see.", false)]));
        assert_eq!(turn.outcome(), None);
        turn.take(&decision(vec![say(TURN, "m", "It is 7.", true), say(TURN, "m", "and more", false)]));
        assert_eq!(turn.outcome(), Some(Outcome::Replied));
        assert_eq!(turn.said(), ["Let me see.", "It is 7."]);
        assert_eq!(turn.tokens(), Tokens { input: 30, output: 9 });
    }

    #[test]
    fn a_message_that_is_answered_with_another_is_answered() {
        let mut turn = turn();
        let into = json!({ "message_id": "m", "into_correlation_id": Uuid::from_u128(7), "into_message_id": "n" });
        let joined = event(3, TURN, v1::AgentJoined::TYPE, into);
        turn.take(&decision(vec![joined, say(7, "n", "both", true)]));
        assert_eq!((turn.outcome(), turn.said().len()), (Some(Outcome::Replied), 1));
    }

    #[test]
    fn a_question_is_put_until_it_is_answered() {
        let mut turn = turn();
        let asked = json!({ "user": "ann", "tool": "email.send", "arguments": "{\"to\":\"x\"}" });
        turn.take(&decision(vec![event(4, TURN, v1::ApprovalRequested::TYPE, asked)]));
        let Some(Outcome::Asked(text)) = turn.outcome() else { panic!("{turn:?}") };
        let id = Uuid::from_u128(4);
        assert!(text.contains("consent to call email.send with {\"to\":\"x\"}"), "{text}");
        assert!(text.contains(&format!("kairo approve {id} --agent coach --user ann")), "{text}");
        turn.take(&decision(vec![event(5, 99, v1::AgentApproval::TYPE, json!({ "action_id": id }))]));
        assert_eq!(turn.outcome(), None);
        turn.take(&decision(vec![say(TURN, "m", "Sent.", true)]));
        assert_eq!(turn.outcome(), Some(Outcome::Replied));
    }

    #[test]
    fn many_questions_make_a_bounded_answer() {
        let mut turn = turn();
        let asked =
            json!({ "user": "ann", "action": "suggest_switch", "summary": "shoes", "reason": "the shoe shop." });
        turn.take(&decision((0..500).map(|id| event(id, TURN, v1::ThreadSuggested::TYPE, asked.clone())).collect()));
        let Some(Outcome::Asked(text)) = turn.outcome() else { panic!("{turn:?}") };
        assert!(text.contains("another thread, shoes (the shoe shop). Go on there?"), "{text}");
        assert!(text.contains("490 more questions wait") && text.len() < 10_000, "{text}");
    }

    #[test]
    fn what_nobody_receives_is_told() {
        let mut turn = turn();
        let mut said = decision(vec![event(3, TURN, v1::UserMessageUndelivered::TYPE, json!({ "text": "no agent" }))]);
        said.subject = "kairo.user.ann.undelivered".to_owned();
        assert_eq!(turn.take(&said), None);
        assert_eq!(turn.outcome(), Some(Outcome::Undelivered("no agent".to_owned())));
    }
}
