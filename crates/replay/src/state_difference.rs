//! In what two states differ, place by place.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

/// A place at which two states differ. Where it is missing in one of them, that side is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StateDifference {
    /// Field names and positions in lists, joined by dots.
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// Every place at which they differ, in the order of their paths. What is in one of them alone is one difference, whatever it
/// holds.
pub fn find_differences(before: &Value, after: &Value) -> Vec<StateDifference> {
    let mut found = Vec::new();
    collect_differences("", Some(before), Some(after), &mut found);
    found
}

fn collect_differences(path: &str, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<StateDifference>) {
    let within = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match (before, after) {
        (Some(before), Some(after)) if before == after => {}
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            for name in before.keys().chain(after.keys()).collect::<BTreeSet<_>>() {
                collect_differences(&within(name), before.get(name), after.get(name), found);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            for at in 0..before.len().max(after.len()) {
                collect_differences(&within(&at.to_string()), before.get(at), after.get(at), found);
            }
        }
        (before, after) => {
            found.push(StateDifference { path: path.to_owned(), before: before.cloned(), after: after.cloned() });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn difference_lines(before: &Value, after: &Value) -> Vec<String> {
        let text = |value: Option<Value>| value.map_or("-".to_owned(), |value| value.to_string());
        let line = |it: StateDifference| format!("{}: {} {}", it.path, text(it.before), text(it.after));
        find_differences(before, after).into_iter().map(line).collect()
    }

    #[test]
    fn each_place_that_differs_is_named_and_nothing_else() {
        let before = json!({ "cursor": 4, "threads": { "a": { "said": ["x", "y"] } }, "same": [1, { "b": 2 }] });
        let after = json!({ "cursor": 9, "threads": { "b": {} , "a": { "said": ["x"] } }, "same": [1, { "b": 2 }] });
        assert_eq!(difference_lines(&before, &after), ["cursor: 4 9", r#"threads.a.said.1: "y" -"#, "threads.b: - {}"]);
        assert_eq!(difference_lines(&before, &before), [""; 0]);
        assert_eq!(difference_lines(&json!(1), &json!("1")), [r#": 1 "1""#]);
    }
}
