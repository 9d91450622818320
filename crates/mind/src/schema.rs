//! Checking parameters against a tool's JSON Schema.
//!
//! Schemas come from whoever offers a tool. One that is unreasonably large, refers to itself or to other places, or
//! unfolds to too much is not read: its tool checks what it is called with.

mod wire;

pub use self::wire::to_wire_schema;

use jsonschema::PatternOptions;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{ValidationError, Validator};
use kairo_events::schema::measure;
use serde_json::{Map, Value};

/// Mistakes that are told at once.
const MISTAKES: usize = 10;
/// Mistakes that are looked at to tell some of them in a fixed order.
const LOOKED_AT: usize = 200;
/// Longest text of a mistake, in characters: it may quote the schema.
const MISTAKE_CHARS: usize = 300;
/// Largest schema that is read, in bytes.
const SCHEMA_BYTES: usize = 64 * 1024;
/// Largest regular expression when compiled, in bytes, and largest cache for matching it.
const PATTERN_BYTES: usize = 1024 * 1024;

/// Returns the mistakes in the parameters, each naming the field and the expected value; at most ten. A schema that
/// cannot be read allows everything: its tool will say what is wrong.
pub fn mistakes(schema: &str, params: &Map<String, Value>) -> Vec<String> {
    let Some(validator) = compile_schema(schema) else { return Vec::new() };
    let params = Value::Object(params.clone());
    let mut mistakes: Vec<String> =
        validator.iter_errors(&params).take(LOOKED_AT).map(|error| describe_error(&error)).collect();
    mistakes.sort();
    mistakes.dedup();
    mistakes.truncate(MISTAKES);
    mistakes
}

fn compile_schema(schema: &str) -> Option<Validator> {
    if schema.len() > SCHEMA_BYTES {
        return None;
    }
    let schema: Value = serde_json::from_str(schema).ok()?;
    measure(&schema).ok().filter(|extent| extent.returns == 0)?;
    // Not `fancy-regex`, which takes exponential time for some expressions.
    let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
    jsonschema::options().offline().with_pattern_options(patterns).build(&schema).ok()
}

/// A mistake in words, with the field it is about.
fn describe_error(error: &ValidationError<'_>) -> String {
    use ValidationErrorKind as Kind;
    let said = match error.kind() {
        Kind::Required { property } => format!("missing {property}"),
        Kind::Type { kind: TypeKind::Single(kind) } => format!("expected {}", with_article(kind.as_str())),
        Kind::Type { kind: TypeKind::Multiple(kinds) } => {
            let kinds: Vec<_> = kinds.iter().map(|kind| with_article(kind.as_str())).collect();
            format!("expected {}", kinds.join(" or "))
        }
        Kind::Enum { options } => {
            let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
            format!("expected one of {}", options.iter().map(Value::to_string).collect::<Vec<_>>().join(", "))
        }
        Kind::Constant { expected_value } => format!("expected {expected_value}"),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let unexpected: Vec<String> = unexpected.iter().map(|name| format!("{name:?}")).collect();
            format!("unknown {}", unexpected.join(", "))
        }
        Kind::Pattern { pattern } => format!("expected a text that matches {pattern}"),
        Kind::Format { format } => format!("expected a text of the format {format}"),
        Kind::MinLength { limit } => format!("expected at least {limit} characters"),
        Kind::MaxLength { limit } => format!("expected at most {limit} characters"),
        Kind::MinItems { limit } => format!("expected at least {limit} items"),
        Kind::MaxItems { limit } => format!("expected at most {limit} items"),
        Kind::Minimum { limit } => format!("expected at least {limit}"),
        Kind::Maximum { limit } => format!("expected at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("expected more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("expected less than {limit}"),
        // The value itself may be long, and whoever wrote it knows it.
        _ => error.masked().to_string(),
    };
    let place = error_path(error);
    let said = if place.is_empty() { said } else { format!("{place}: {said}") };
    match said.char_indices().nth(MISTAKE_CHARS) {
        Some((end, _)) => format!("{}…", said.split_at(end).0),
        None => said,
    }
}

/// Returns the place of an error in the parameters, such as `events[0].title`.
fn error_path(error: &ValidationError<'_>) -> String {
    let pointer = error.instance_path().to_string();
    let mut place = String::new();
    for segment in pointer.split('/').skip(1) {
        let name = segment.replace("~1", "/").replace("~0", "~");
        match name.parse::<usize>() {
            Ok(index) => place.push_str(&format!("[{index}]")),
            Err(_) if place.is_empty() => place.push_str(&name),
            Err(_) => place.push_str(&format!(".{name}")),
        }
    }
    place
}

fn with_article(kind: &str) -> String {
    match kind {
        "null" => kind.to_owned(),
        "array" | "integer" | "object" => format!("an {kind}"),
        kind => format!("a {kind}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn check(schema: Value, params: Value) -> Vec<String> {
        check_text(&schema.to_string(), params)
    }

    fn check_text(schema: &str, params: Value) -> Vec<String> {
        let Value::Object(params) = params else { panic!("{params}") };
        mistakes(schema, &params)
    }

    #[test]
    fn mistakes_name_the_field_and_what_was_expected() {
        let schema = json!({
            "type": "object",
            "required": ["date", "title"],
            "properties": {
                "date": {"type": "string"},
                "range": {"type": ["string", "object"]},
                "limit": {"type": "integer", "minimum": 1},
                "format": {"enum": ["date", "week"]},
                "people": {"type": "array", "items": {"type": "object", "required": ["name"]}, "maxItems": 1},
                "hours": {"type": "string", "pattern": "^[0-9]+$"},
                "name": {"type": "string", "minLength": 2},
                "any": {"anyOf": [{"type": "null"}, {"const": 1}]},
            },
            "additionalProperties": false,
        });
        assert!(
            check(schema.clone(), json!({"date": "today", "title": "x", "limit": 1}))
                .contains(&"unknown \"title\"".into())
        );
        let params = json!({
            "date": 1, "range": 2, "limit": 0, "format": "month", "people": [{"name": 1}, {}], "hours": "a", "name": "",
            "any": 5, "more": 1,
        });
        assert_eq!(
            check(schema, params),
            [
                "any: value is not valid under any of the schemas listed in the 'anyOf' keyword",
                "date: expected a string",
                "format: expected one of \"date\", \"week\"",
                "hours: expected a text that matches ^[0-9]+$",
                "limit: expected at least 1",
                "missing \"title\"",
                "name: expected at least 2 characters",
                "people: expected at most 1 items",
                "people[1]: missing \"name\"",
                "range: expected a string or an object",
            ]
        );
        let long = json!({"properties": {"a": {"enum": ["x".repeat(1000)]}}});
        assert_eq!(check(long, json!({"a": 1}))[0].chars().count(), MISTAKE_CHARS + 1);
    }

    #[test]
    fn references_within_the_schema_are_followed() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$id": "https://example.org/tool",
            "definitions": {"day": {"type": "string", "format": "date"}},
            "properties": {"from": {"$ref": "#/definitions/day"}, "until": {"$ref": "#/definitions/day"}},
        });
        assert_eq!(
            check(schema, json!({"from": 1, "until": "today"})),
            ["from: expected a string", "until: expected a text of the format date"]
        );
    }

    #[test]
    fn what_cannot_be_read_allows_everything() {
        let elsewhere = json!({"properties": {"a": {"$ref": "https://example.org/schema.json"}}, "required": ["b"]});
        let depth =
            |levels: usize| format!("{}{{\"required\":[\"b\"]}}{}", "{\"not\":".repeat(levels), "}".repeat(levels));
        for schema in [
            String::new(),
            "no JSON".into(),
            "[]".into(),
            "1".into(),
            json!({"type": "nonsense"}).to_string(),
            json!({"required": ["b"], "properties": {"a": {"pattern": "(?=a)"}}}).to_string(),
            json!({"required": ["b"], "properties": {"a": {"pattern": "((a{1000}){1000}){1000}"}}}).to_string(),
            elsewhere.to_string(),
            json!({"$ref": "#"}).to_string(),
            json!({"required": ["b"], "properties": {"a": {"$ref": "#"}}}).to_string(),
            json!({"required": ["b"], "allOf": [{"$ref": "#/$defs/none"}]}).to_string(),
            json!({"required": ["b"], "$dynamicRef": "#meta"}).to_string(),
            json!({"required": ["b"], "$defs": {"x": {"$id": "x", "not": {"$ref": "#/y"}}}}).to_string(),
            format!("{{\"required\": [\"b\"], \"description\": \"{}\"}}", "x".repeat(SCHEMA_BYTES)),
            depth(100_000),
            depth(100),
        ] {
            assert_eq!(check_text(&schema, json!({"a": "c"})), [""; 0], "{schema:.200}");
        }
        // Only what is too much is not read.
        assert_eq!(check_text(&depth(60), json!({"a": "c"})).len(), 1);
        assert_eq!(check_text(&depth(62), json!({"a": "c"})).len(), 0);
    }

    #[test]
    fn what_unfolds_without_end_is_not_read() {
        let doubling = |count: usize| {
            let mut defs: Map<String, Value> = (0..count)
                .map(|at| {
                    let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
                    (format!("d{at}"), json!({"allOf": [next, next]}))
                })
                .collect();
            defs.insert(format!("d{count}"), json!({"required": ["b"]}));
            json!({"$defs": defs, "$ref": "#/$defs/d0"})
        };
        assert_eq!(check(doubling(3), json!({})), ["missing \"b\""]);
        assert_eq!(check(doubling(20), json!({})), [""; 0]);
        assert_eq!(check(doubling(500), json!({})), [""; 0]);
    }

    #[test]
    fn a_long_text_for_a_slow_pattern_takes_no_long_time() {
        let schema = json!({"properties": {"a": {"pattern": "^(a+)+$"}}});
        assert_eq!(check(schema, json!({"a": format!("{}b", "a".repeat(100_000))})).len(), 1);
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            prop_oneof![Just("string"), Just("object"), Just("#/a"), Just("#"), Just("a+")].prop_map(Value::from),
        ];
        let key = prop::sample::select(vec![
            "a",
            "b",
            "type",
            "properties",
            "required",
            "$ref",
            "anyOf",
            "not",
            "items",
            "enum",
            "pattern",
            "$id",
        ]);
        leaf.prop_recursive(5, 40, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(key.clone().prop_map(str::to_owned), inner, 0..4)
                    .prop_map(Value::from_iter),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_schema_brings_it_down(schema in json_value(), params in json_value()) {
            let mistakes = check_text(&schema.to_string(), json!({"a": params}));
            prop_assert!(mistakes.len() <= MISTAKES);
        }
    }
}
