//! Reads the body of an error, whatever its form.

use serde_json::{Map, Value};

use super::words::readable_text;
use crate::wire::{lenient_json, surrogate_halves};

/// Deepest nesting that is looked into.
const DEEPEST: usize = 12;
/// Bytes of text that are looked at.
const MOST_BYTES: usize = 16 * 1024;
/// Fields that hold a code, or the kind of an error.
const CODES: [&str; 11] = [
    "code",
    "type",
    "status",
    "error_code",
    "reason",
    "errorCode",
    "error_type",
    "__type",
    "exception",
    "finish_reason",
    "error",
];
/// Fields that hold a reason in words, the one that says most first.
const MESSAGES: [&str; 12] = [
    "message",
    "error",
    "detail",
    "msg",
    "errorMessage",
    "error_description",
    "Message",
    "error_message",
    "description",
    "title",
    "errors",
    "reason",
];

/// The contents of an error's body.
#[derive(Debug, Default, PartialEq)]
pub struct ErrorBody {
    /// For people, without markup.
    pub message: String,
    /// Every code and kind, in lower case and with underscores.
    pub codes: Vec<String>,
    /// A number among the codes that is an HTTP status of an error; 0 where there is none.
    pub status: u16,
    /// All of its text in lower case, to look for words in.
    pub text: String,
    /// Numbers by their fields.
    pub numbers: Vec<(String, f64)>,
    /// Texts by their fields.
    pub fields: Vec<(String, String)>,
}

impl ErrorBody {
    /// Of the body of an error.
    pub fn from_bytes(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let text = text.trim().trim_start_matches('\u{feff}');
        // The error of a stream may be an event of it.
        let data =
            text.lines().find_map(|line| line.strip_prefix("data:")).filter(|_| !text.starts_with(['{', '[', '<']));
        match lenient_json::parse(data.unwrap_or(text)) {
            Some(value @ (Value::Object(_) | Value::Array(_))) => Self::from_json(&value),
            Some(Value::String(text)) => Self::from_text(&text),
            Some(Value::Null) => Self::default(),
            _ => Self::from_text(text),
        }
    }

    /// Of a piece of an answer that is an error; none where it is not one.
    pub fn find_in_band(value: &Value, event: &str) -> Option<Self> {
        let is_filled = |value: &Value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::String(text) => !text.is_empty(),
            Value::Object(fields) => !fields.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Bool(true) => true,
            Value::Number(number) => number.as_f64() != Some(0.0),
        };
        if event == "error" {
            return Some(match value {
                Value::String(text) => Self::from_text(text),
                value => Self::from_json(value),
            });
        }
        if let Value::Array(items) = value {
            return items.iter().find_map(|item| Self::find_in_band(item, ""));
        }
        let field = |name: &str| value.get(name).filter(|value| is_filled(value));
        let choices = value.get("choices").and_then(Value::as_array);
        let in_choice =
            choices.into_iter().flatten().filter_map(|choice| choice.get("error")).find(|error| is_filled(error));
        let is_answer = choices.is_some() || field("message").is_some_and(Value::is_object);
        let is_error = ["object", "type"].iter().any(|name| field(name).is_some_and(|kind| kind == "error"));
        let named = ["error", "errors", "error_message"].iter().any(|name| field(name).is_some());
        let bare = !is_answer
            && ["detail", "message", "error_code", "errorMessage", "error_msg"]
                .iter()
                .any(|name| field(name).is_some());
        let refused = !is_answer && value.get("success").is_some_and(|success| success == false);
        match in_choice {
            Some(_) => Some(Self::from_json(value)),
            None if named || is_error || bare || refused => Some(Self::from_json(value)),
            None => None,
        }
    }

    fn from_text(text: &str) -> Self {
        let mut said = Self { message: readable_text(text), ..Self::default() };
        said.add_text(text);
        said
    }

    fn from_json(value: &Value) -> Self {
        let mut said = Self::default();
        said.gather(value, "", 0);
        let message = message(value, 0).unwrap_or_default();
        said.message = readable_text(&surrogate_halves::whole(&message));
        said
    }

    /// Gathers codes, numbers and words, also of JSON that stands within texts.
    fn gather(&mut self, value: &Value, field: &str, depth: usize) {
        if depth > DEEPEST {
            return;
        }
        match value {
            Value::Object(fields) => fields.iter().for_each(|(name, value)| self.gather(value, name, depth + 1)),
            Value::Array(items) => items.iter().for_each(|item| self.gather(item, field, depth + 1)),
            Value::Number(number) => {
                let number = number.as_f64().unwrap_or_default();
                self.add_number(field, number);
            }
            Value::String(text) => self.add_field(field, text, depth),
            Value::Bool(_) | Value::Null => {}
        }
    }

    fn add_number(&mut self, field: &str, number: f64) {
        if matches!(field, "code" | "status" | "status_code" | "statusCode" | "error_code" | "http_code") {
            self.set_status(number);
        }
        if self.numbers.len() < 64 {
            self.numbers.push((field.to_owned(), number));
        }
    }

    fn set_status(&mut self, number: f64) {
        if self.status == 0 && (400.0..600.0).contains(&number) {
            self.status = number as u16;
        }
    }

    fn add_field(&mut self, field: &str, text: &str, depth: usize) {
        if CODES.contains(&field) && text.len() <= 100 && self.codes.len() < 32 {
            self.codes.push(text.trim().to_lowercase().replace(['-', ' ', '.'], "_"));
            if let Ok(number) = text.trim().parse() {
                self.set_status(number);
            }
        }
        if self.fields.len() < 64 && text.len() <= 1_000 {
            self.fields.push((field.to_owned(), text.to_owned()));
        }
        self.add_text(text);
        if let Some(inner) = embedded_json(text) {
            self.gather(&inner, field, depth + 1);
        }
    }

    fn add_text(&mut self, text: &str) {
        let room = MOST_BYTES.saturating_sub(self.text.len());
        self.text.push_str(&text.get(..text.floor_char_boundary(room)).unwrap_or_default().to_lowercase());
        self.text.push('\n');
    }

    /// Returns true if one of its codes is one of these.
    pub fn has_code(&self, codes: &[&str]) -> bool {
        self.codes.iter().any(|code| codes.contains(&code.as_str()))
    }

    /// Returns true if its text holds one of these.
    pub fn has_words(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.text.contains(word))
    }

    pub fn number(&self, field: &str) -> Option<f64> {
        self.numbers.iter().find(|(name, _)| name == field).map(|(_, number)| *number)
    }
}

/// The JSON within a text, as proxies quote the errors of others: alone, or behind some words.
fn embedded_json(text: &str) -> Option<Value> {
    let begin = text.find(['{', '['])?;
    let text = text.get(begin..)?;
    let (value, _) = lenient_json::parse_first(text)?;
    let is_filled = value.as_object().is_some_and(|fields| !fields.is_empty())
        || value.as_array().is_some_and(|items| items.iter().any(Value::is_object));
    is_filled.then_some(value)
}

/// The reason in words, of an object, a list or a text.
fn message(value: &Value, depth: usize) -> Option<String> {
    if depth > DEEPEST {
        return None;
    }
    match value {
        Value::String(text) => {
            let within = embedded_json(text)
                .filter(|_| text.trim_start().starts_with(['{', '[']))
                .and_then(|inner| message(&inner, depth + 1));
            let text = within.unwrap_or_else(|| text.clone());
            (!text.trim().is_empty()).then_some(text)
        }
        Value::Array(items) => {
            let messages: Vec<String> = items.iter().take(5).filter_map(|item| message(item, depth + 1)).collect();
            (!messages.is_empty()).then(|| messages.join("; "))
        }
        Value::Object(fields) => message_of_object(fields, depth),
        Value::Bool(_) | Value::Null | Value::Number(_) => None,
    }
}

fn message_of_object(fields: &Map<String, Value>, depth: usize) -> Option<String> {
    // The error itself stands above what goes with it.
    let error = fields.get("error").filter(|error| error.is_object() || error.is_array());
    let outer = error.and_then(|error| message(error, depth + 1));
    let own = || MESSAGES.iter().find_map(|name| message(fields.get(*name)?, depth + 1));
    let of_choice = || message(fields.get("choices")?.get(0)?.get("error")?, depth + 1);
    let text = outer.or_else(own).or_else(of_choice)?;
    // Where a validator found it.
    let place = fields.get("loc").and_then(Value::as_array);
    let place: Vec<String> = place.into_iter().flatten().map(|part| part.to_string().replace('"', "")).collect();
    let text = if place.is_empty() { text } else { format!("{}: {text}", place.join(".")) };
    match fields.get("metadata").and_then(|metadata| message(metadata.get("raw")?, depth + 1)) {
        // What the provider said behind a proxy.
        Some(raw) if !text.contains(&raw) => Some(format!("{text}: {raw}")),
        _ => Some(text),
    }
}
