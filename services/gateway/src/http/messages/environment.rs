//! The environment of a message: a client's description of where its user is, such as the page they look at.

use serde_json::Value;

use crate::fields::RequestFields;

/// Longest environment, in bytes of JSON, and how many levels of lists and objects it has at most.
const MAX_BYTES: usize = 32 * 1024;
const MAX_DEPTH: usize = 16;

/// The field `environment`, as text; empty where it is not given.
pub fn parse(fields: &mut RequestFields<Value>) -> String {
    let expected = format!("a JSON object of at most {MAX_BYTES} bytes, at most {MAX_DEPTH} levels deep");
    fields.optional("environment", expected, to_bounded_json).unwrap_or_default()
}

fn to_bounded_json(value: &Value) -> Option<String> {
    let text = Some(value).filter(|value| value.is_object() && is_within_depth(value, MAX_DEPTH))?.to_string();
    (text.len() <= MAX_BYTES).then_some(text)
}

fn is_within_depth(value: &Value, depth: usize) -> bool {
    match (value, depth.checked_sub(1)) {
        (Value::Object(fields), Some(left)) => fields.values().all(|value| is_within_depth(value, left)),
        (Value::Array(items), Some(left)) => items.iter().all(|value| is_within_depth(value, left)),
        (Value::Object(_) | Value::Array(_), None) => false,
        (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_environment_is_an_object_and_bounded() {
        assert_eq!(
            to_bounded_json(&json!({ "url": "https://example.org" })).as_deref(),
            Some(r#"{"url":"https://example.org"}"#)
        );
        let nested = |depth: usize| (1..depth).fold(json!({}), |inner, _| json!({ "in": inner }));
        assert!(to_bounded_json(&nested(16)).is_some());
        let long = json!({ "text": "x".repeat(MAX_BYTES) });
        for bad in [json!([]), json!("a page"), json!(7), nested(17), long] {
            assert_eq!(to_bounded_json(&bad), None);
        }
    }
}
