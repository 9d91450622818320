//! An agent's questions that wait for the user's answer, in the words for a chat client. Pure.

use kairo_core::event_json::EventJson;
use kairo_proto::words::OfferAction;
use serde_json::{Value, json};
use uuid::Uuid;

/// Characters of a call's arguments that are shown to the user who is to allow it.
const ARGUMENTS_CHARS: usize = 2_000;
/// Questions that are put in one answer; more are counted.
const MAX_QUESTIONS: usize = 10;

/// Something the agent goes on with when the user has answered.
#[derive(Debug)]
pub struct OpenQuestion {
    pub id: Uuid,
    /// The call that waits for the answer, and with which the question ends; none of what waits for no call.
    pub call: Option<Uuid>,
    text: String,
}

/// Describes the open questions to the user, and how to answer them.
pub fn describe_questions(open: &[OpenQuestion]) -> String {
    let mut texts: Vec<&str> = open.iter().take(MAX_QUESTIONS).map(|question| question.text.as_str()).collect();
    let more = open.len().saturating_sub(MAX_QUESTIONS);
    let more = format!("{more} more questions wait; `kairo inbox` lists them.");
    if open.len() > MAX_QUESTIONS {
        texts.push(&more);
    }
    texts.push("This goes on when it is answered. The same message again gets what came of it.");
    texts.join("\n\n")
}

pub fn thread_question(event: &EventJson) -> OpenQuestion {
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
    let id = event.event_id;
    let agent = subject_agent(event);
    let user = text("user");
    let ways = ["accept", "decline"].map(|option| format!("kairo choose {id} {option} --agent {agent} --user {user}"));
    let body = json!({ "user": user, "agent": agent, "offer_id": id, "option": "accept" });
    build_question(id, &what, &ways, &format!("POST /v1/choices {body} (or decline)"))
}

pub fn approval_question(event: &EventJson) -> OpenQuestion {
    let text = |name: &str| event.payload.get(name).and_then(Value::as_str).unwrap_or_default();
    let tool = text("tool");
    let arguments = text("arguments");
    let shown: String = arguments.chars().take(ARGUMENTS_CHARS).collect();
    let cut = if shown.len() < arguments.len() { "…" } else { "" };
    let id = event.event_id;
    let agent = subject_agent(event);
    let user = text("user");
    let what = format!("I need your consent to call {tool} with {shown}{cut}");
    let ways = ["approve", "reject"].map(|verdict| format!("kairo {verdict} {id} --agent {agent} --user {user}"));
    let body = json!({ "user": user, "agent": agent, "action_id": id, "verdict": "approved" });
    build_question(id, &what, &ways, &format!("POST /v1/approvals {body} (or rejected)"))
}

/// Reads a question that an MCP server asks while a call waits.
pub fn tool_question(event: &EventJson) -> Option<OpenQuestion> {
    let of = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let asked = event.payload.get("question").filter(|asked| asked.is_object())?;
    let id = Uuid::parse_str(&of(asked, "question_id")).ok()?;
    let call = Uuid::parse_str(&of(&event.payload, "action_id")).ok();
    let url = of(asked, "url");
    let fields = serde_json::from_str::<Value>(&of(asked, "schema")).unwrap_or_default();
    let properties = fields.get("properties").and_then(Value::as_object);
    let fields: Vec<_> = properties.into_iter().flatten().map(|(name, _)| format!("{name}=…")).collect();
    let fields = fields.join(" ");
    let visit = if url.is_empty() { String::new() } else { format!(" Visit {url}") };
    let what = format!(
        "{} asks in a call of {}: {}{visit}",
        of(asked, "server"),
        of(&event.payload, "tool"),
        of(asked, "message")
    );
    let user = of(asked, "user");
    let yes = format!("kairo answer {id} {fields} --user {user}").replace("  ", " ");
    let no = format!("kairo answer {id} --decline --user {user}");
    let body = json!({ "user": user, "action": "accept", "content": {} });
    let asked = build_question(id, &what, &[yes, no], &format!("POST /v1/questions/{id} {body} (or decline)"));
    Some(OpenQuestion { call, ..asked })
}

fn build_question(id: Uuid, what: &str, [yes, no]: &[String; 2], request: &str) -> OpenQuestion {
    let text = format!("{what}\n\n- yes: `{yes}`\n- no: `{no}`\n- over HTTP: `{request}`");
    OpenQuestion { id, call: None, text }
}

/// `kairo.agent.<agent>.decision`
fn subject_agent(event: &EventJson) -> &str {
    event.subject.split('.').nth(2).unwrap_or_default()
}
