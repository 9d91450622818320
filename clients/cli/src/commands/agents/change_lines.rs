//! The difference of two profiles as lines. Pure.

use kairo_proto::v1::{Json, ProfileChange};
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::event_lines::printable;

/// The longest value that stands on the line of its field, in characters.
const SHORT: usize = 60;
/// Unchanged lines around a change of a long text.
const CONTEXT: usize = 2;

/// A line for each field, `+` for one that is new, `-` for one that is removed and `~` for one that changed. Long texts
/// are compared line by line.
pub(super) fn format_changes(changes: &[ProfileChange]) -> Vec<String> {
    changes.iter().flat_map(format_change).collect()
}

fn format_change(change: &ProfileChange) -> Vec<String> {
    let field = printable(&change.field);
    let text = |value: &Option<Json>| value.as_ref().map(|value| value_text(&value.value()));
    match (text(&change.before), text(&change.after)) {
        (None, Some(after)) => format_value('+', &field, &after),
        (Some(before), None) => format_value('-', &field, &before),
        (Some(before), Some(after)) if is_short(&before) && is_short(&after) => {
            vec![format!("  ~ {field}: {before} → {after}")]
        }
        (before, after) => {
            let mut lines = vec![format!("  ~ {field}:")];
            lines.extend(compare_lines(&before.unwrap_or_default(), &after.unwrap_or_default()));
            lines
        }
    }
}

fn format_value(sign: char, field: &str, value: &str) -> Vec<String> {
    if is_short(value) {
        return vec![format!("  {sign} {field}: {value}")];
    }
    let lines = value.lines().map(|line| format!("      {line}"));
    [format!("  {sign} {field}:")].into_iter().chain(lines).collect()
}

fn is_short(text: &str) -> bool {
    text.chars().count() <= SHORT && !text.contains('\n')
}

fn compare_lines(before: &str, after: &str) -> Vec<String> {
    let diff = TextDiff::from_lines(before, after);
    let groups = diff.grouped_ops(CONTEXT);
    let mut lines = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        if number > 0 {
            lines.push("      …".to_owned());
        }
        for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            lines.push(format!("    {sign} {}", change.value().trim_end_matches('\n')));
        }
    }
    lines
}

/// A value as people read it: a text as it is, a list of texts with spaces, anything else as JSON.
pub(super) fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => printable(text),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            let items: Vec<String> = items.iter().filter_map(Value::as_str).map(printable).collect();
            items.join(" ")
        }
        Value::Array(items) => items.iter().map(|item| printable(&item.to_string())).collect::<Vec<_>>().join("\n"),
        other => printable(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(before: Option<Value>, after: Option<Value>) -> String {
        let json = |value: Option<Value>| value.as_ref().map(Json::from);
        let change = ProfileChange { field: "prompt".to_owned(), before: json(before), after: json(after) };
        format_changes(&[change]).join("\n")
    }

    #[test]
    fn short_values_stand_on_one_line() {
        assert_eq!(lines(None, Some(json!("Cook."))), "  + prompt: Cook.");
        assert_eq!(lines(Some(json!(["a", "b"])), None), "  - prompt: a b");
        assert_eq!(lines(Some(json!(3)), Some(json!({ "a": 1 }))), r#"  ~ prompt: 3 → {"a":1}"#);
    }

    #[test]
    fn long_texts_are_compared_line_by_line() {
        let before: Vec<String> = (0..9).map(|number| format!("line {number}")).collect();
        let mut after = before.clone();
        after[4] = "another".to_owned();
        let shown = lines(Some(json!(before.join("\n"))), Some(json!(after.join("\n"))));
        let expected =
            "  ~ prompt:\n      line 2\n      line 3\n    - line 4\n    + another\n      line 5\n      line 6";
        assert_eq!(shown, expected);
        let long = "x".repeat(61);
        assert_eq!(lines(None, Some(json!(long))), format!("  + prompt:\n      {long}"));
    }

    #[test]
    fn nothing_steers_the_terminal() {
        assert!(!lines(None, Some(json!("\u{1b}[2Jx"))).contains('\u{1b}'));
    }
}
