//! Reads the error of an answer, whatever types its fields have.

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::Value;

use super::wording::{shorten_text, text_of};

/// Longest message of an error, in characters.
const MAX_MESSAGE_CHARS: usize = 2_000;

/// The error that an answer reports.
#[derive(Debug, PartialEq)]
pub enum ErrorAnswer {
    /// An error of the protocol.
    Error(ErrorData),
    /// Text without a code, from the tool or a layer in front of it: nobody knows which.
    Words(String),
}

/// Returns true if the field holds no error: some servers write it where there is none.
pub fn is_absent(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

/// Reads it.
pub fn read(error: Value) -> ErrorAnswer {
    let Value::Object(mut fields) = error else { return ErrorAnswer::Words(text_of(&error)) };
    let whole = Value::Object(fields.clone());
    let data = fields.remove("data").filter(|data| !data.is_null());
    let message = ["message", "error", "detail"].iter().find_map(|key| fields.get(*key)).map(text_of);
    let message = message.filter(|message| !message.is_empty()).or_else(|| data.as_ref().map(text_of));
    let message = shorten_text(&message.unwrap_or_else(|| text_of(&whole)), MAX_MESSAGE_CHARS);
    let Some(code) = fields.get("code").filter(|code| code.is_number() || code.is_string()) else {
        return ErrorAnswer::Words(message);
    };
    let error = match parse_code(code).and_then(|code| i32::try_from(code).ok()) {
        Some(code) => ErrorData::new(ErrorCode(code), message, data),
        None => ErrorData::new(ErrorCode::INTERNAL_ERROR, format!("{}: {message}", text_of(code)), data),
    };
    ErrorAnswer::Error(error)
}

fn parse_code(code: &Value) -> Option<i64> {
    let float = || code.as_f64().filter(|code| code.fract() == 0.0 && code.abs() < 1e15).map(|code| code as i64);
    code.as_i64().or_else(float).or_else(|| code.as_str()?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_are_read_whatever_types_they_have() {
        for (error, code, message) in [
            (json!({"code": -32602, "message": "no"}), -32602, "no"),
            (json!({"code": "-32602", "message": "no", "data": null}), -32602, "no"),
            (json!({"code": -32602.0, "message": {"reason": "no"}}), -32602, r#"{"reason":"no"}"#),
            (json!({"code": "E_CARD", "message": "declined"}), -32603, "E_CARD: declined"),
            (json!({"code": 99999999999_i64, "message": "no"}), -32603, "99999999999: no"),
            (json!({"code": 1, "data": "said here"}), 1, "said here"),
            (json!({"code": 1, "message": null}), 1, r#"{"code":1,"message":null}"#),
        ] {
            let ErrorAnswer::Error(read) = read(error.clone()) else { panic!("{error}") };
            assert_eq!((read.code.0, read.message.as_ref()), (code, message), "{error}");
        }
    }

    #[test]
    fn what_has_no_code_is_words() {
        for (error, words) in [
            (json!("boom"), "boom"),
            (json!(["a"]), r#"["a"]"#),
            (json!({"message": "boom"}), "boom"),
            (json!({"code": null, "message": "boom"}), "boom"),
            (json!({"code": {}, "detail": "boom"}), "boom"),
        ] {
            assert_eq!(read(error.clone()), ErrorAnswer::Words(words.to_owned()), "{error}");
        }
    }

    #[test]
    fn an_empty_field_is_no_error() {
        for error in [json!(null), json!(false), json!(""), json!({}), json!([])] {
            assert!(is_absent(&error), "{error}");
        }
        assert!(!is_absent(&json!({"code": 1})) && !is_absent(&json!("boom")) && !is_absent(&json!(0)));
    }
}
