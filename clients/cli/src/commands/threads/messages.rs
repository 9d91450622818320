//! The messages of a thread, for people.

use std::collections::HashMap;

use jiff::tz::TimeZone;
use kairo_core::media;
use kairo_proto::{
    v1::{ListThreadMessagesResponse, Part, ThreadMessageRow},
    words::ThreadMessageRole,
};

use super::format_heading;
use crate::{rows, steps::one_line, table::table};

/// Returns the page of a thread: its heading and messages; `None` if the answer has no thread.
pub fn format_messages(shown: &ListThreadMessagesResponse, zone: &TimeZone) -> Option<Vec<String>> {
    let ListThreadMessagesResponse { thread, messages, .. } = shown;
    let mut lines = format_heading(thread.as_ref()?, zone);
    lines.push(String::new());
    if messages.first().is_some_and(|message| message.sequence > 1) {
        lines.push("… older messages: see --limit".to_owned());
    }
    // What came of a call is said of its tool.
    let calls = messages.iter().flat_map(|message| &message.tool_calls);
    let tools: HashMap<&str, &str> = calls.map(|call| (call.id.as_str(), call.tool.as_str())).collect();
    let rows = messages.iter().map(|message| {
        let number = message.sequence.to_string();
        [number, rows::format_time(message.timestamp, zone), one_line(&message.role), format_message(message, &tools)]
    });
    lines.extend(table(["no", "time", "role", "says"], rows));
    Some(lines)
}

fn format_message(message: &ThreadMessageRow, tools: &HashMap<&str, &str>) -> String {
    let parts: Vec<Part> = message.parts.iter().map(to_part).collect();
    let said = match message.role_word() {
        ThreadMessageRole::Tool => {
            let call = message.tool_call_id.as_deref().unwrap_or_default();
            let tool = tools.get(call).copied().unwrap_or("a call");
            let how = if message.ok == Some(false) { " failed" } else { "" };
            format!("{tool}{how} -> {}", message.content)
        }
        ThreadMessageRole::User | ThreadMessageRole::Assistant => media::text_with_parts(&message.content, &parts),
        ThreadMessageRole::System | ThreadMessageRole::Unknown(_) => message.content.clone(),
    };
    let calls = message.tool_calls.iter().map(|call| {
        let arguments = call.arguments.as_ref().map_or("{}", |arguments| arguments.text.as_str());
        format!("[{} {arguments}]", call.tool)
    });
    let all: Vec<String> = std::iter::once(said).chain(calls).filter(|part| !part.is_empty()).collect();
    one_line(&all.join(" "))
}

fn to_part(part: &kairo_proto::v1::PartRow) -> Part {
    let kairo_proto::v1::PartRow { media_type, digest, size, name } = part.clone();
    Part { media_type, digest, size, name }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_are_shown_by_their_numbers_and_results_by_their_tools() {
        let message = |number: u64, role: &str, content: &str, more: serde_json::Value| {
            let mut value = json!({
                "sequence": number, "role": role, "content": content, "timestamp": "2026-01-01T00:00:01Z",
            });
            value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            value
        };
        let call = |id: &str, tool: &str| json!({ "id": id, "tool": tool, "arguments": { "zone": "UTC" } });
        let shown: ListThreadMessagesResponse = serde_json::from_value(json!({
            "thread": {
                "agent": "bob", "thread_id": "t", "user": "ann", "kind": "topic", "status": "compacted", "title": "Budget",
                "summary": "", "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:05:00Z",
            },
            "messages": [
                message(7, "system", "It was about\nthe budget.", json!({})),
                message(8, "user", "", json!({ "parts": [{ "media_type": "image/png", "size": 9, "digest": "", "name": "" }] })),
                message(9, "assistant", "Let me see.", json!({ "tool_calls": [call("c1", "tools.now"), call("c2", "http.get")] })),
                message(10, "tool", "{\"n\":1}", json!({ "tool_call_id": "c1", "ok": true })),
                message(11, "tool", "timed_out: too slow", json!({ "tool_call_id": "c2", "ok": false })),
                message(12, "tool", "late", json!({ "tool_call_id": "c0", "ok": true })),
            ],
        }))
        .unwrap();
        let text = format_messages(&shown, &TimeZone::UTC).unwrap().join("\n");
        for part in [
            "Budget\ntopic of ann with bob, compacted\nid t\n",
            "\n\n… older messages: see --limit\n",
            "7   2026-01-01 00:00:01  system     It was about the budget.",
            "8   2026-01-01 00:00:01  user       [image image/png, 9 bytes]",
            "assistant  Let me see. [tools.now {\"zone\":\"UTC\"}] [http.get {\"zone\":\"UTC\"}]",
            "tool       tools.now -> {\"n\":1}",
            "tool       http.get failed -> timed_out: too slow",
            "tool       a call -> late",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }
}
