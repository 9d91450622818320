//! The texts of a message, field by field, and of JSON within texts, value by value.

use kairo_events::envelope::Envelope;
use kairo_proto::Body;
use serde_json::{Map, Value};

use super::{ValueKind, values::Replacer};

/// Texts within texts are read as JSON so deep; what is deeper is replaced as it is written.
const DEEPEST: usize = 8;

/// Fields that say how something is done and not what was said: words of a vocabulary, names of tools, models, agents and
/// submodules, times and time zones, and what is sealed.
#[rustfmt::skip]
const OF_FORM: &[&str] = &[
    "agent", "at", "basis", "by", "catalogue_version", "command", "commit", "conduct", "cost", "cost_per_day", "cron",
    "day", "day_ends_at", "digest", "due_at", "event", "executor", "finish_reason", "from", "hears", "interjection",
    "interval", "kind", "lead", "media_type", "model", "module", "modules", "next_at", "option", "origin", "outcome",
    "outside_content", "path", "planning", "role", "rrule", "runner", "sealed", "source", "status", "supervisor",
    "tier", "time", "time_zone", "tool", "tools", "trigger", "type", "updated_at", "verdict",
];
/// Fields of 64 bits, which are texts in the JSON of messages.
#[rustfmt::skip]
const NUMBERS: &[&str] = &[
    "answered_at_ms", "asked_at", "cached", "cached_tokens", "context_tokens", "cost", "cursor", "decided", "decision_sequence", "facts",
    "given_up_cost", "given_up_unpriced_tokens", "grace_ms", "history", "input", "input_tokens", "letter", "max_parts_bytes", "max_rss_bytes", "occurrence", "output", "output_tokens", "overtaking",
    "previous", "profile_sequence", "received_bytes", "retry_after_ms", "sent", "sequence", "size", "stderr_bytes", "stdout_bytes", "system",
    "system_ms", "target_after", "through", "timeout_ms", "tokens", "tokens_in_total", "tokens_per_day", "tools",
    "unpriced_tokens", "user_ms", "wall_ms", "work_input",
];
/// Fields of a catalogue that describe tools to models.
const OF_TOOLS: [&str; 3] = ["description", "schema", "value"];
/// Fields that name a person.
const OF_PEOPLE: [&str; 2] = ["user", "owner"];

/// The kind of a text, which decides how it is redacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// It names a person.
    Person,
    /// A text that somebody said, wrote or was told.
    Said,
    /// A text on how something is done: names in it are those of other things.
    Form,
    /// A service's description of its tools for every agent: names in it are those of other things.
    Announced,
}

impl Field {
    /// Returns true if a user's name in the text means that user.
    pub(super) fn has_names(self) -> bool {
        matches!(self, Self::Person | Self::Said)
    }
}

/// Calls `look` with each text of a body, its place and what it is; it is replaced by what that returns.
pub(super) fn walk(
    body: &Value,
    is_announced: bool,
    look: &mut impl FnMut(&str, Field, &str) -> Option<String>,
) -> Value {
    walk_value(body, "", if is_announced { of_announced } else { field }, look)
}

fn walk_value(
    value: &Value,
    at: &str,
    field: fn(&str) -> Field,
    look: &mut impl FnMut(&str, Field, &str) -> Option<String>,
) -> Value {
    match value {
        Value::String(text) => {
            let name = at.rsplit('.').find(|part| part.parse::<usize>().is_err()).unwrap_or_default();
            if NUMBERS.contains(&name) && text.bytes().all(|byte| byte.is_ascii_digit()) {
                return value.clone();
            }
            look(text, field(name), at).map_or_else(|| value.clone(), Value::String)
        }
        Value::Array(values) => {
            let below = values
                .iter()
                .enumerate()
                .map(|(position, value)| walk_value(value, &format!("{at}.{position}"), field, look));
            Value::Array(below.collect())
        }
        Value::Object(fields) => {
            let below = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
            Value::Object(
                fields
                    .iter()
                    .map(|(name, value)| (name.clone(), walk_value(value, &below(name), field, look)))
                    .collect(),
            )
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn field(name: &str) -> Field {
    match name {
        name if OF_PEOPLE.contains(&name) => Field::Person,
        name if OF_FORM.contains(&name) => Field::Form,
        _ => Field::Said,
    }
}

fn of_announced(name: &str) -> Field {
    if OF_TOOLS.contains(&name) { Field::Announced } else { Field::Form }
}

/// Returns true if a service announces the body, so that no agent owns it.
pub(super) fn is_announced(body: &Body) -> bool {
    matches!(body, Body::ToolCatalogue(_) | Body::DecisionBasis(_))
}

/// Calls `note` with each text that stands in a text: itself or, where it is JSON, the texts and numbers of that.
pub(super) fn visit_texts(text: &str, depth: usize, note: &mut impl FnMut(&str)) {
    match parse_json(text, depth) {
        Some(value) => visit_value(&value, depth + 1, note),
        None => note(text),
    }
}

fn visit_value(value: &Value, depth: usize, note: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => visit_texts(text, depth, note),
        Value::Number(number) => note(&number.to_string()),
        Value::Array(values) => values.iter().for_each(|value| visit_value(value, depth, note)),
        Value::Object(fields) => {
            for (name, value) in fields {
                note(name);
                // What a field is called may be what gives its value away.
                if let Value::String(text) = value {
                    note(&format!("{name}: {text}"));
                }
                visit_value(value, depth, note);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// A text with tokens in the place of values; JSON stays JSON.
pub(super) fn replace_in_text(text: &str, depth: usize, replacing: &Replacer) -> String {
    let Some(value) = parse_json(text, depth) else { return replacing.replace(text).into_owned() };
    let other = replace_in_value(&value, depth + 1, replacing);
    // What stays is written as it was.
    let json = if other == value { text.to_owned() } else { other.to_string() };
    // What only its spelling hid, such as an escape that nobody needs, is not hidden from whoever reads the text.
    if replacing.has_value_left(&json, true) { replacing.replace(&json).into_owned() } else { json }
}

fn replace_in_value(value: &Value, depth: usize, replacing: &Replacer) -> Value {
    match value {
        Value::String(text) => Value::String(replace_in_text(text, depth, replacing)),
        Value::Number(number) => {
            let text = number.to_string();
            match replacing.values().token(&text) {
                Some(token) => Value::String(token.to_owned()),
                None => value.clone(),
            }
        }
        Value::Array(values) => values.iter().map(|value| replace_in_value(value, depth, replacing)).collect(),
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(name, value)| (replacing.replace(name).into_owned(), replace_in_value(value, depth, replacing)))
                .collect::<Map<String, Value>>(),
        ),
        Value::Null | Value::Bool(_) => value.clone(),
    }
}

/// A text that is an object or a list as JSON.
fn parse_json(text: &str, depth: usize) -> Option<Value> {
    let begins = text.trim_start().starts_with(['{', '[']);
    if depth >= DEEPEST || !begins { None } else { serde_json::from_str(text).ok() }
}

/// The envelope with tokens in the place of values. What came with it that this build does not know is left out.
pub(super) fn redact_envelope(envelope: &Envelope, replacing: &Replacer) -> Envelope {
    let mut redacted = envelope.clone();
    if let Some(principal) = &mut redacted.entered_by
        && let Some(token) = replacing.values().token(&principal.id)
    {
        token.clone_into(&mut principal.id);
    }
    for text in redacted.thread_id.iter_mut().chain(&mut redacted.tags) {
        *text = replacing.replace(text).into_owned();
    }
    redacted
}

/// Returns the login that entered the event, if it identifies a person or a key.
pub(super) fn entering_login(envelope: &Envelope) -> Option<(ValueKind, &str)> {
    let principal = envelope.entered_by.as_ref()?;
    let is_somebody = matches!(principal.kind.as_str(), "app_user" | "api_key") && !principal.id.is_empty();
    is_somebody.then_some((ValueKind::Login, principal.id.as_str()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn every_number_that_is_written_as_a_text_is_known() {
        let protos = [
            include_str!("../../../../../proto/kairo/v1/agent.proto"),
            include_str!("../../../../../proto/kairo/v1/process.proto"),
            include_str!("../../../../../proto/kairo/v1/submodules.proto"),
            include_str!("../../../../../proto/kairo/v1/system.proto"),
            include_str!("../../../../../proto/kairo/v1/task.proto"),
            include_str!("../../../../../proto/kairo/v1/tool.proto"),
            include_str!("../../../../../proto/kairo/v1/user.proto"),
        ];
        let fields = protos.iter().flat_map(|proto| proto.lines()).filter_map(|line| {
            let mut words = line.split_whitespace().skip_while(|word| ["optional", "repeated"].contains(word));
            let is_long = ["uint64", "int64", "sint64", "fixed64", "sfixed64"].contains(&words.next()?);
            if is_long { words.next() } else { None }
        });
        let unknown: BTreeSet<&str> = fields.filter(|it| !NUMBERS.contains(it) && !OF_FORM.contains(it)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn texts_are_told_from_names_of_people_and_from_form() {
        let body =
            json!({ "user": "ann", "tool": "user.notify", "events": [{ "say": { "text": "hi" } }], "cursor": "7" });
        let mut seen = Vec::new();
        let walked = walk(&body, false, &mut |text, field, at| {
            seen.push((at.to_owned(), field));
            (field == Field::Said).then(|| text.to_uppercase())
        });
        let seen: Vec<(&str, Field)> = seen.iter().map(|(at, field)| (at.as_str(), *field)).collect();
        assert_eq!(seen, [("events.0.say.text", Field::Said), ("tool", Field::Form), ("user", Field::Person)]);
        assert_eq!(walked["events"][0]["say"]["text"], "HI");
        assert_eq!((&walked["user"], &walked["cursor"]), (&json!("ann"), &json!("7")));
    }
}
