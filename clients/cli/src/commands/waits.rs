//! The part of `kairo status` that shows what work waits for, and the command that ends or resumes it.

use jiff::Timestamp;
use kairo_proto::{time, v1::WaitRow, words::WaitReason};

use super::id_prefix::short_id;
use crate::{durations, event_lines::printable, table::table};

const HEADS: [&str; 6] = ["waits for", "count", "oldest", "agent", "what", "command"];

/// Returns a table of all waits, the oldest of each reason shown; empty if nothing waits.
pub(super) fn format_waits(waits: &[WaitRow], now: Timestamp) -> Vec<String> {
    if waits.is_empty() {
        return Vec::new();
    }
    let mut lines = table(HEADS, waits.iter().map(|wait| wait_cells(wait, now)));
    lines.push(String::new());
    lines
}

fn wait_cells(wait: &WaitRow, now: Timestamp) -> [String; 6] {
    let since = wait.since.as_ref().and_then(time::read);
    let oldest = since.map_or_else(|| "-".to_owned(), |since| durations::format_between(since, now));
    let user = wait.user.as_deref().map(|user| format!(" asks {user}")).unwrap_or_default();
    [
        describe_reason(wait),
        wait.count.to_string(),
        oldest,
        printable(&format!("{}{user}", wait.agent)),
        printable(wait.tool.as_deref().unwrap_or_default()),
        suggested_command(wait),
    ]
}

fn describe_reason(wait: &WaitRow) -> String {
    match wait.waits_for_word() {
        WaitReason::Consent => "consent to a call".to_owned(),
        WaitReason::Choice => "choice of a thread".to_owned(),
        WaitReason::Runner => "a replica that begins a call".to_owned(),
        WaitReason::Tool => "end of a call".to_owned(),
        WaitReason::Decision => "decision".to_owned(),
        WaitReason::Unknown(word) => printable(&word),
    }
}

/// Returns the command that ends or resumes the oldest wait, or shows it; empty for callers who may not see it.
fn suggested_command(wait: &WaitRow) -> String {
    let action = wait.action_id.as_deref().map(short_id).unwrap_or_default();
    let user = wait.user.as_deref().map(printable).unwrap_or_default();
    match wait.waits_for_word() {
        _ if wait.agent.is_empty() => String::new(),
        WaitReason::Consent => format!("kairo approve {action}, or kairo reject {action}"),
        WaitReason::Choice => format!("kairo inbox --user {user}"),
        WaitReason::Runner | WaitReason::Tool => format!("kairo actions cancel {action}"),
        WaitReason::Decision | WaitReason::Unknown(_) => format!("kairo turn show {}", printable(&wait.turn_id)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn render(wait: Value) -> String {
        let wait: WaitRow = serde_json::from_value(wait).unwrap();
        format_waits(&[wait], "2026-01-01T01:05:00Z".parse().unwrap()).join("\n")
    }

    #[test]
    fn each_wait_has_the_command_that_ends_it() {
        let since = "2026-01-01T00:00:00Z";
        let id = "1f0c2ab4-0000-0000-0000-000000000001";
        let of = |reason: &str| {
            json!({"waits_for": reason, "count": 3, "since": since, "agent": "aide", "turn_id": id,
            "user": "ann", "action_id": id, "tool": "email.send"})
        };
        for (reason, parts) in [
            (
                "consent",
                "consent to a call  3      1h 5m   aide asks ann  email.send  kairo approve 1f0c2ab4, or kairo reject 1f0c2ab4",
            ),
            ("choice", "kairo inbox --user ann"),
            ("runner", "kairo actions cancel 1f0c2ab4"),
            ("tool", "kairo actions cancel 1f0c2ab4"),
            ("decision", "kairo turn show 1f0c2ab4-0000-0000-0000-000000000001"),
        ] {
            let text = render(of(reason));
            assert!(text.contains(parts), "{parts:?} is not in\n{text}");
        }
        let hidden = render(json!({"waits_for": "tool", "count": 2, "since": since}));
        assert!(hidden.contains("end of a call  2      1h 5m") && !hidden.contains("kairo"), "{hidden}");
        assert_eq!(format_waits(&[], Timestamp::UNIX_EPOCH), Vec::<String>::new());
    }
}
