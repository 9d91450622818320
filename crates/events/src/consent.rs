//! The calls of a tool that need a human's consent, and the ids by which used consents are known.

use kairo_proto::v1::ToolArgument;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::ids;

/// Returns true if `arguments` has one of the values that need consent.
pub fn is_needed(with: &[ToolArgument], arguments: &Map<String, Value>) -> bool {
    with.iter().any(|needing| arguments.get(&needing.name).and_then(Value::as_str) == Some(&needing.value))
}

/// Returns true if arguments given as text have one of these values. Text that is not an object has none: no tool takes
/// it.
pub fn is_needed_for_text(with: &[ToolArgument], arguments: &str) -> bool {
    !with.is_empty() && serde_json::from_str(arguments).is_ok_and(|arguments| is_needed(with, &arguments))
}

/// Returns the id of a used consent, beside the actions that ledgers are about; none for a call that names no approval.
pub fn used_consent_id(approval_id: &str) -> Option<Uuid> {
    (!approval_id.is_empty()).then(|| ids::from_parts("consent", &[approval_id]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_needed_consent_for_by_its_name_and_value() {
        let python = ToolArgument { name: "program".to_owned(), value: "python3".to_owned() };
        for (arguments, needed) in [
            (r#"{"program": "python3", "args": ["-c", "1"]}"#, true),
            (r#"{"program": "echo", "args": ["python3"]}"#, false),
            (r#"{"Program": "python3"}"#, false),
            (r#"{"program": ["python3"]}"#, false),
            (r#"{"pro\u0067ram": "pyth\u006fn3"}"#, true),
            ("python3", false),
            ("", false),
        ] {
            assert_eq!(is_needed_for_text(std::slice::from_ref(&python), arguments), needed, "{arguments}");
        }
        assert!(!is_needed_for_text(&[], r#"{"program": "python3"}"#));
    }
}
