//! Reading the fields of a request, so that every wrong one is named at once. Pure.

use std::{collections::BTreeMap, fmt::Display, ops::RangeInclusive, str::FromStr};

use kairo_core::ids::Name;
use serde_json::Value;
use url::form_urlencoded;

use crate::problem::{FieldError, Problem};

/// The description of a [`Name`] in error responses.
pub const NAME: &str = "1 to 64 of the characters a-z 0-9 _ -";

/// Characters of a wrong value that are shown again.
const FOUND_CHARS: usize = 80;

/// The fields of a request that are yet to be read: `Value` from a JSON body, `String` from a query.
#[derive(Debug)]
pub struct RequestFields<V> {
    given: BTreeMap<String, V>,
    known: Vec<&'static str>,
    errors: Vec<FieldError>,
}

impl RequestFields<Value> {
    /// Reads a JSON object. A field that is `null` counts as absent.
    pub fn from_json(body: &[u8]) -> Result<Self, Problem> {
        match serde_json::from_slice(body) {
            Ok(Value::Object(fields)) => {
                Ok(Self::from_given(fields.into_iter().filter(|(_, value)| !value.is_null()).collect(), Vec::new()))
            }
            Ok(_) => Err(Problem::malformed_request("a JSON object is expected")),
            Err(error) => Err(Problem::malformed_request(format!("this is not JSON: {error}"))),
        }
    }
}

impl RequestFields<Value> {
    /// Reads the fields of a nested object.
    pub fn from_nested(value: &Value) -> Result<Self, Problem> {
        match value {
            Value::Object(fields) => {
                let given = fields.iter().filter(|(_, value)| !value.is_null());
                Ok(Self::from_given(given.map(|(field, value)| (field.clone(), value.clone())).collect(), Vec::new()))
            }
            other => Err(Problem::invalid_fields(vec![field_error("", "a JSON object", Some(other.to_string()))])),
        }
    }

    /// Adds the errors of the nested object at `place`; an empty place stands for this object itself.
    pub fn add_nested_errors(&mut self, place: &str, problem: Problem) {
        let at = |field: String| match (place.is_empty(), field.is_empty()) {
            (true, _) => field,
            (_, true) => place.to_owned(),
            _ => format!("{place}.{field}"),
        };
        self.errors.extend(problem.errors.into_iter().map(|error| FieldError { field: at(error.field), ..error }));
    }
}

impl RequestFields<String> {
    /// Reads a URL's query. An empty field counts as absent; a repeated field is an error.
    pub fn from_query(query: Option<&str>) -> Self {
        let mut given = BTreeMap::new();
        let mut errors = Vec::new();
        for (field, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            if value.is_empty() {
                continue;
            }
            if let Some(first) = given.insert(field.to_string(), value.to_string()) {
                errors.push(field_error(&field, "one value", Some(format!("{first} and {value}"))));
            }
        }
        Self::from_given(given, errors)
    }
}

impl<V: Display> RequestFields<V> {
    fn from_given(given: BTreeMap<String, V>, errors: Vec<FieldError>) -> Self {
        Self { given, known: Vec::new(), errors }
    }

    /// Reads the field if it is given; a value that `read` rejects is recorded as an error.
    pub fn optional<T>(
        &mut self,
        field: &'static str,
        expected: impl Into<String>,
        read: impl FnOnce(&V) -> Option<T>,
    ) -> Option<T> {
        self.known.push(field);
        let given = self.given.remove(field)?;
        let value = read(&given);
        if value.is_none() {
            self.errors.push(field_error(field, expected, Some(given.to_string())));
        }
        value
    }

    /// Returns true if the field is given and was not read yet.
    pub fn has(&self, field: &str) -> bool {
        self.given.contains_key(field)
    }

    /// Like [`RequestFields::optional`], but an absent field is an error too.
    pub fn required<T>(
        &mut self,
        field: &'static str,
        expected: impl Into<String>,
        read: impl FnOnce(&V) -> Option<T>,
    ) -> Option<T> {
        let expected = expected.into();
        if !self.has(field) {
            self.errors.push(field_error(field, expected.clone(), None));
        }
        self.optional(field, expected, read)
    }

    /// Adds an error for each of these names that no field read so far has.
    pub fn require_known<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        self.errors.extend(self.unknown_names(names).map(|problem| problem.errors).unwrap_or_default());
    }

    /// The problem with each of these names that no field read so far has; none if all are known.
    pub fn unknown_names<'a>(&self, names: impl Iterator<Item = &'a str>) -> Option<Problem> {
        let expected = self.known_fields();
        let unknown = names.filter(|name| !self.known.contains(name)).map(|name| unknown_field(name, &expected));
        let errors: Vec<FieldError> = unknown.collect();
        (!errors.is_empty()).then(|| Problem::invalid_fields(errors))
    }

    fn known_fields(&self) -> String {
        format!("one of the fields {}", self.known.join(", "))
    }

    /// Returns true if an error was recorded so far.
    pub fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Adds an error that is about more than one field.
    pub fn reject(&mut self, field: &str, expected: impl Into<String>) {
        self.errors.push(field_error(field, expected, None));
    }

    /// Returns the problem with the errors recorded so far, without checking for unknown fields.
    pub fn into_problem(self) -> Problem {
        Problem::invalid_fields(self.errors)
    }

    /// Returns the result of `build`, or a problem with every error. Fields that were never read are errors too.
    pub fn complete<T>(mut self, build: impl FnOnce() -> Option<T>) -> Result<T, Problem> {
        let expected = self.known_fields();
        self.errors.extend(self.given.keys().map(|field| unknown_field(field, &expected)));
        match build() {
            Some(built) if self.errors.is_empty() => Ok(built),
            _ => Err(Problem::invalid_fields(self.errors)),
        }
    }
}

/// The error of a field that does not exist. Its name stands in both places: where programs look for it, and as the value.
fn unknown_field(field: &str, expected: &str) -> FieldError {
    let error = field_error("", expected, Some(field.to_owned()));
    FieldError { field: error.found.clone().unwrap_or_default(), ..error }
}

fn field_error(field: &str, expected: impl Into<String>, found: Option<String>) -> FieldError {
    let found = found.map(|found| found.chars().take(FOUND_CHARS).collect());
    FieldError { field: field.chars().take(FOUND_CHARS).collect(), expected: expected.into(), found }
}

/// Accepts a JSON string that `read` accepts.
pub fn json_text<T>(read: impl FnOnce(&str) -> Option<T>) -> impl FnOnce(&Value) -> Option<T> {
    |value| value.as_str().and_then(read)
}

/// `true` or `false` in JSON.
pub fn json_bool(value: &Value) -> Option<bool> {
    value.as_bool()
}

/// A JSON number within bounds.
pub fn json_count(allowed: RangeInclusive<u32>) -> impl FnOnce(&Value) -> Option<u32> {
    move |value| value.as_u64().and_then(|number| u32::try_from(number).ok()).filter(|number| allowed.contains(number))
}

pub fn parse_name(text: &str) -> Option<Name> {
    Name::parse(text).ok()
}

/// Text of 1 to `max` bytes, whatever its characters.
pub fn bounded_text(max: usize) -> impl FnOnce(&str) -> Option<String> {
    move |text| (1..=max).contains(&text.len()).then(|| text.to_owned())
}

/// An id that a client chose.
pub fn parse_client_id(text: &str) -> Option<String> {
    let fits = (1..=MAX_CLIENT_ID).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    fits.then(|| text.to_owned())
}

/// The description of a [`parse_client_id`] in error responses.
pub const CLIENT_ID: &str = "1 to 128 printable ASCII characters without spaces";
const MAX_CLIENT_ID: usize = 128;

/// A value of a query that `read` accepts.
pub fn query_value<T>(read: impl FnOnce(&str) -> Option<T>) -> impl FnOnce(&String) -> Option<T> {
    |value| read(value)
}

/// Parses a value from its text form: a number, `true` or `false`, a UUID.
pub fn parse_text<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

/// One of a few words.
pub fn one_of(words: &'static [&'static str]) -> impl FnOnce(&str) -> Option<&'static str> {
    move |text| words.iter().copied().find(|word| *word == text)
}

/// The description of an event id in error responses.
pub const UUID: &str = "a UUID";

/// The description of a time in error responses.
pub const TIME: &str = "an RFC 3339 time such as 2026-11-21T10:00:00Z";

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong_fields(problem: &Problem) -> Vec<&str> {
        problem.errors.iter().map(|error| error.field.as_str()).collect()
    }

    #[test]
    fn every_wrong_field_is_named_at_once() {
        let mut fields = RequestFields::from_json(br#"{"user": 7, "colour": "red", "agent": null}"#).unwrap();
        let user = fields.required("user", NAME, json_text(parse_name));
        let agent = fields.optional("agent", NAME, json_text(parse_name));
        let words = fields.required("text", "words", json_text(bounded_text(5)));
        assert_eq!(agent, None);
        let problem = fields.complete(|| Some((user?, words?))).unwrap_err();
        assert_eq!(wrong_fields(&problem), ["user", "text", "colour"]);
        let found: Vec<_> = problem.errors.iter().map(|error| error.found.as_deref()).collect();
        assert_eq!(found, [Some("7"), None, Some("colour")]);
    }

    #[test]
    fn a_query_is_read_field_by_field() {
        let mut fields = RequestFields::from_query(Some("agent=a%2Db&limit=&after=x&after=7&p=1"));
        assert_eq!(fields.optional("agent", NAME, query_value(parse_name)).unwrap().as_str(), "a-b");
        assert_eq!(fields.optional("limit", "a number", query_value(parse_text::<u32>)), None);
        assert_eq!(fields.optional("after", "a number", query_value(parse_text::<u64>)), Some(7));
        assert_eq!(wrong_fields(&fields.complete(|| Some(())).unwrap_err()), ["after", "p"]);
    }

    #[test]
    fn what_is_not_an_object_is_malformed() {
        for body in ["", "[]", "{", "\"a\"", "{\"a\": 1,}"] {
            let problem = RequestFields::from_json(body.as_bytes()).unwrap_err();
            assert_eq!((problem.status.as_u16(), problem.errors.len()), (400, 0), "{body}");
        }
    }

    #[test]
    fn long_values_are_not_sent_back_whole() {
        let body = format!(r#"{{"user": "{}"}}"#, "ü".repeat(5_000));
        let mut fields = RequestFields::from_json(body.as_bytes()).unwrap();
        let user = fields.required("user", NAME, json_text(parse_name));
        let problem = fields.complete(|| user).unwrap_err();
        let found = problem.errors.first().and_then(|error| error.found.as_deref()).unwrap_or_default();
        assert_eq!(found.chars().count(), FOUND_CHARS);
    }

    #[test]
    fn ids_of_clients_are_printable_and_bounded() {
        for good in ["m-1", "<a@b>", &"x".repeat(128)] {
            assert_eq!(parse_client_id(good).as_deref(), Some(good));
        }
        for bad in ["", "a b", "ü", "a\n", &"x".repeat(129)] {
            assert_eq!(parse_client_id(bad), None, "{bad:?}");
        }
    }
}
