//! Which calls of a tool a human must consent to, and by what a consent is known that was used.

use kairo_proto::v1::ToolArgument;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::ids;

/// Whether `arguments` has one of those that need consent.
pub fn is_needed(with: &[ToolArgument], arguments: &Map<String, Value>) -> bool {
    with.iter().any(|needing| arguments.get(&needing.name).and_then(Value::as_str) == Some(&needing.value))
}

/// The same for arguments as text. What is no object equals nothing: no tool takes it.
pub fn is_needed_for(with: &[ToolArgument], arguments: &str) -> bool {
    !with.is_empty() && serde_json::from_str(arguments).is_ok_and(|arguments| is_needed(with, &arguments))
}

/// What stands for a consent beside the actions that ledgers are about, by what was asked; none for a call that names none.
pub fn used(approval_id: &str) -> Option<Uuid> {
    (!approval_id.is_empty()).then(|| ids::named("consent", &[approval_id]))
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
            assert_eq!(is_needed_for(std::slice::from_ref(&python), arguments), needed, "{arguments}");
        }
        assert!(!is_needed_for(&[], r#"{"program": "python3"}"#));
    }
}
