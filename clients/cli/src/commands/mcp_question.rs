//! `kairo answer`: what an MCP server asks while a call waits.

use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;
use kairo_core::{event_json::EventJson, ids::Name};
use kairo_proto::{
    v1::{GetInboxResponse, Json, QuestionRow},
    words::QuestionAnswered,
};
use serde_json::{Map, Value, json};

use super::{GatewaySession, name};
use crate::{Error, durations, event_lines::printable, rows, steps::one_line, terminal};

const EXAMPLES: &str = "\
Examples:
  kairo answer 0c4d2fd1-9b9c-5b3a-8d5e-3b1c9a4d7e21 seat=window meals=2
  kairo answer 0c4d2fd1-9b9c-5b3a-8d5e-3b1c9a4d7e21              with the defaults, or after a visit
  kairo answer 0c4d2fd1-9b9c-5b3a-8d5e-3b1c9a4d7e21 --decline

kairo inbox shows the questions that are open, and their fields. Several values of one field stand with commas between.";

/// Answer what an MCP server asks while a call waits
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct AnswerArgs {
    /// The question, as `kairo inbox` shows it
    #[arg(value_name = "QUESTION")]
    question: String,
    /// Value of a field that it asks for
    #[arg(value_name = "FIELD=VALUE", value_parser = field)]
    fields: Vec<(String, String)>,
    /// Have the call go on without
    #[arg(long, conflicts_with_all = ["fields", "cancel"])]
    decline: bool,
    /// Have the call end
    #[arg(long, conflicts_with = "fields")]
    cancel: bool,
    /// User who answers
    #[arg(long, default_value = "you", value_parser = name, value_name = "NAME")]
    user: Name,
}

fn field(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected FIELD=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(super) async fn run(arguments: AnswerArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    let AnswerArgs { question, fields, decline, cancel, user } = arguments;
    let action = match (decline, cancel) {
        (true, _) => QuestionAnswered::Decline,
        (_, true) => QuestionAnswered::Cancel,
        _ => QuestionAnswered::Accept,
    };
    let mut content_said = None;
    if action == QuestionAnswered::Accept {
        let answer: Value = session.client.get("v1/inbox", &[("user", user.to_string())]).await?;
        let inbox: GetInboxResponse = session.parse_answer(answer)?;
        let open = inbox.questions.iter().find(|open| open.question_id == question);
        let open =
            open.ok_or_else(|| Error::Advice(format!("no question {question} is open; kairo inbox shows them")))?;
        if open.url.is_none() {
            content_said = Some(build_content(&parse_schema(open), fields)?);
        }
    }
    let path =
        format!("v1/questions/{}", url::form_urlencoded::byte_serialize(question.as_bytes()).collect::<String>());
    let mut body = json!({ "user": user.as_str(), "action": action.as_str() });
    if let (Some(content), Some(body)) = (content_said, body.as_object_mut()) {
        body.insert("content".to_owned(), content);
    }
    let answer: Value = session.client.post(&path, &body).await?;
    match session.json {
        true => terminal::json(&answer)?,
        false => terminal::line("answered; the call goes on")?,
    }
    Ok(ExitCode::SUCCESS)
}

fn parse_schema(question: &QuestionRow) -> Value {
    serde_json::from_str(rows::text(question.schema.as_ref())).unwrap_or_default()
}

/// The fields as the schema has them: what stands on a command line is text.
fn build_content(schema: &Value, fields: Vec<(String, String)>) -> Result<Value, Error> {
    let mut content = Map::new();
    for (name, text) in fields {
        let property = schema.get("properties").and_then(|properties| properties.get(&name));
        let value = match property.and_then(|property| property.get("type")).and_then(Value::as_str) {
            Some(kind @ ("integer" | "number" | "boolean")) => {
                serde_json::from_str(&text).map_err(|_| Error::Usage(format!("{name}: expected {kind}")))?
            }
            Some("array") => text.split(',').map(str::trim).filter(|one| !one.is_empty()).map(Value::from).collect(),
            _ => Value::String(text),
        };
        content.insert(name, value);
    }
    Ok(Value::Object(content))
}

/// Reads the question of an MCP server during a call from an event; `None` if the event has none.
pub(super) fn from_event(event: &EventJson) -> Option<QuestionRow> {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let asked = event.payload.get("question").filter(|asked| asked.is_object())?;
    let schema = Some(text(asked, "schema")).filter(|schema| !schema.is_empty());
    Some(QuestionRow {
        question_id: text(asked, "question_id"),
        agent: event.subject.split('.').nth(2).unwrap_or_default().to_owned(),
        user: text(asked, "user"),
        server: text(asked, "server"),
        message: text(asked, "message"),
        schema: schema.map(|text| Json { text }),
        url: Some(text(asked, "url")).filter(|url| !url.is_empty()),
        ..QuestionRow::default()
    })
}

/// A question, for people.
pub(super) fn format_question(question: &QuestionRow, now: Timestamp) -> Vec<String> {
    let ago = rows::time(question.asked_at)
        .map(|at| format!(", {} ago", durations::format_between(at, now)))
        .unwrap_or_default();
    let mut lines = vec![
        format!("{}{ago}", question.agent),
        format!("  {} asks in a call: {}", question.server, one_line(&question.message)),
    ];
    if let Some(url) = &question.url {
        lines.push(format!("  visit: {}", printable(url)));
    }
    let schema = parse_schema(question);
    let required = schema.get("required").and_then(Value::as_array);
    let required: Vec<_> = required.into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        lines.push(format!("  {}", one_line(&describe_field(name, property, required.contains(&name.as_str())))));
    }
    let id = &question.question_id;
    let fields = if question.url.is_some() { "" } else { " FIELD=VALUE …" };
    lines.extend([format!("  yes: kairo answer {id}{fields}"), format!("  no:  kairo answer {id} --decline")]);
    lines
}

fn describe_field(name: &str, property: &Value, is_required: bool) -> String {
    let text = |key: &str| property[key].as_str();
    let choices = property.get("enum").or_else(|| property["items"].get("enum")).and_then(Value::as_array);
    let titled = property.get("oneOf").or_else(|| property["items"].get("anyOf")).and_then(Value::as_array);
    let titled = titled.into_iter().flatten().filter_map(|choice| choice.get("const"));
    let choices: Vec<_> = choices.into_iter().flatten().chain(titled).filter_map(Value::as_str).collect();
    let mut kind = match choices.as_slice() {
        [] => text("type").unwrap_or("string").to_owned(),
        choices => choices.join("|"),
    };
    if let Some(default) = property.get("default") {
        kind.push_str(&format!(", {} by default", default.as_str().map_or_else(|| default.to_string(), str::to_owned)));
    }
    if is_required {
        kind.push_str(", required");
    }
    let told = text("description").or_else(|| text("title")).map(|told| format!(": {told}")).unwrap_or_default();
    format!("{name} ({kind}){told}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seats() -> Value {
        json!({
            "type": "object",
            "properties": {
                "seat": {"type": "string", "enum": ["window", "aisle"], "description": "Where to sit"},
                "meals": {"type": "integer", "default": 1}, "sms": {"type": "boolean"},
                "days": {"type": "array", "items": {"type": "string", "enum": ["mo", "tu"]}},
            },
            "required": ["seat"],
        })
    }

    #[test]
    fn what_stands_on_the_command_line_becomes_what_the_schema_wants() {
        let pairs = ["seat=window", "meals=2", "sms=true", "days=mo, tu"].map(|text| field(text).unwrap());
        let wanted = json!({"seat": "window", "meals": 2, "sms": true, "days": ["mo", "tu"]});
        assert_eq!(build_content(&seats(), pairs.to_vec()).unwrap(), wanted);
        assert!(build_content(&seats(), vec![("meals".into(), "two".into())]).is_err());
        assert!(field("seat").is_err());
    }

    #[test]
    fn a_question_is_shown_with_its_fields_and_how_to_answer() {
        let question: QuestionRow = serde_json::from_value(json!({
            "question_id": "7", "user": "ann", "agent": "eve", "action_id": "8", "server": "air", "message": "Which\nseat?",
            "schema": seats(), "url": null, "thread_id": null, "asked_at": null, "until": null,
        }))
        .unwrap();
        let text = format_question(&question, Timestamp::now()).join("\n");
        for part in [
            "air asks in a call: Which seat?",
            "seat (window|aisle, required): Where to sit",
            "meals (integer, 1 by default)",
            "days (mo|tu)",
            "yes: kairo answer 7 FIELD=VALUE",
            "no:  kairo answer 7 --decline",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }
}
