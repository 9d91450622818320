//! The arguments of a call as they were meant, where that is certain; else as they were written, so that the model can be
//! shown its mistake.

use serde_json::Value;

use crate::wire::{lenient_json, surrogate_halves};

/// Longest text that is mended, in bytes.
const LONGEST: usize = 1 << 20;
/// Most levels of JSON within a JSON text.
const DEEPEST: usize = 3;
const NOTHING: &str = "{}";

/// Reads what a model has written.
pub fn normalize(written: &str) -> String {
    parse_meant(written, DEEPEST).unwrap_or_else(|| surrogate_halves::whole(written))
}

fn parse_meant(written: &str, depth: usize) -> Option<String> {
    let text = written.trim();
    if matches!(text, "" | "null" | "None" | "undefined" | "\"\"") {
        return Some(NOTHING.to_owned());
    }
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        // An object stays as the model wrote it.
        return if value.is_object() { Some(text.to_owned()) } else { unwrap_encoded(&value, depth) };
    }
    if text.len() > LONGEST {
        return None;
    }
    let text = strip_opening(text);
    let (value, end) = lenient_json::parse_first(text)?;
    let value = match value {
        Value::Object(_) => to_text(&value),
        other => unwrap_encoded(&other, depth)?,
    };
    resolve_trailing(value, text.get(end..)?.trim(), depth)
}

/// The object within a JSON text.
fn unwrap_encoded(value: &Value, depth: usize) -> Option<String> {
    match value {
        Value::String(text) if depth > 0 => parse_meant(text, depth - 1),
        _ => None,
    }
}

/// Returns the arguments that an object means if something follows it. Some proxies write an empty one first, or the
/// same one twice.
fn resolve_trailing(object: String, rest: &str, depth: usize) -> Option<String> {
    if !rest.contains('{') {
        // What closes something, or words: they change nothing of what is complete.
        return Some(object);
    }
    let next = parse_meant(rest, depth.checked_sub(1)?)?;
    let same = |one: &str, other: &str| {
        serde_json::from_str::<Value>(one)
            .ok()
            .zip(serde_json::from_str::<Value>(other).ok())
            .is_some_and(|(one, other)| one == other)
    };
    (same(&object, NOTHING) || same(&object, &next)).then_some(next)
}

/// Without the fence or tag that a text begins with.
fn strip_opening(text: &str) -> &str {
    let text = match text.strip_prefix("```") {
        Some(fenced) => fenced.split_once('\n').map_or(fenced, |(_, behind)| behind),
        None => text,
    };
    let text = text.strip_prefix("<tool_call>").or_else(|| text.strip_prefix("<|message|>")).unwrap_or(text);
    text.trim_start()
}

fn to_text(value: &Value) -> String {
    surrogate_halves::whole(&value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_as_they_were_meant() {
        let tokyo = r#"{"time_zone":"Asia/Tokyo"}"#;
        let twice = serde_json::to_string(tokyo).unwrap();
        let thrice = serde_json::to_string(&twice).unwrap();
        for (written, meant) in [
            ("", "{}"),
            (" ", "{}"),
            ("null", "{}"),
            ("\"null\"", "{}"),
            ("\"\"", "{}"),
            ("\"{}\"", "{}"),
            ("{ \"a\" : 1 }", "{ \"a\" : 1 }"),
            (twice.as_str(), tokyo),
            (thrice.as_str(), tokyo),
            ("{\"time_zone\":\"Asia/Tokyo\"}\n</tool_call>", tokyo),
            ("```json\n{\"time_zone\":\"Asia/Tokyo\"}\n```", tokyo),
            ("{\"time_zone\":\"Asia/Tokyo\"}<|im_end|>", tokyo),
            ("{\"time_zone\":\"Asia/Tokyo\"}}", tokyo),
            ("{}{\"time_zone\":\"Asia/Tokyo\"}", tokyo),
            ("{\"time_zone\":\"Asia/Tokyo\"}{\"time_zone\":\"Asia/Tokyo\"}", tokyo),
            ("{'time_zone':'Asia/Tokyo',}", tokyo),
            ("{\"on\": True, \"of\": None}", "{\"of\":null,\"on\":true}"),
            ("{\"text\":\"line one\nline two\ttab\"}", r#"{"text":"line one\nline two\ttab"}"#),
            (r#"{"text":"\ud83d"}"#, "{\"text\":\"\u{fffd}\"}"),
        ] {
            assert_eq!(normalize(written), meant, "{written}");
        }
    }

    #[test]
    fn what_is_uncertain_stays_to_the_letter() {
        for written in [
            r#"{"time_zone": Asia}"#,
            r#"{"time_zone":"Europe/Ber"#,
            "[1]",
            "7",
            "\"words\"",
            "Tokyo, please",
            r#"{"a":1}{"a":2}"#,
            "{'text':'it's'}",
            &"{\"a\":".repeat(1000),
        ] {
            assert_eq!(normalize(written), written);
        }
    }
}
