//! Processes and calls in flight, each with the fields that its bar shows. Pure.

use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use super::{
    action::Action,
    happening::short_id,
    output::format_output_line,
    picture::Picture,
    process::{AgentProcess, program_name},
};
use crate::event_lines::printable;

/// Something that goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct InFlightItem {
    pub id: Uuid,
    /// The tool with its arguments, or the program with its id and arguments.
    pub title: String,
    pub since: Timestamp,
    pub fraction: Option<f64>,
    /// Its latest message and its state, such as `not begun` or `stopping`.
    pub note: String,
    /// The last lines it wrote.
    pub lines: Vec<String>,
}

/// All that is in flight: processes, and the calls that did not become one.
pub fn in_flight_items(picture: &Picture, lines: usize) -> Vec<InFlightItem> {
    let runs = |id: Option<Uuid>| picture.processes.iter().any(|process| Some(process.process_id) == id);
    let calls = picture.actions.iter().filter(|action| action.in_doubt.is_none() && !runs(action.process_id));
    calls.map(call_item).chain(picture.processes.iter().map(|process| process_item(process, lines))).collect()
}

fn call_item(action: &Action) -> InFlightItem {
    let state = if action.begun { "" } else { "not begun" };
    InFlightItem {
        id: action.action_id,
        title: printable(&format!("{} {}", action.tool, brief(&action.arguments))),
        since: action.asked_at,
        fraction: action.fraction,
        note: note([&printable(&action.message), state, stopping(action.cancel_requested)]),
        lines: Vec::new(),
    }
}

fn process_item(process: &AgentProcess, lines: usize) -> InFlightItem {
    let all = process.output.lines();
    let newest = all.iter().skip(all.len().saturating_sub(lines));
    let id = short_id(&process.process_id.to_string());
    let program = program_name(&process.program);
    InFlightItem {
        id: process.process_id,
        title: printable(&format!("{program} ({id}) {}", process.arguments.join(" "))).replace('\n', " "),
        since: process.started_at,
        fraction: process.fraction,
        note: note([&printable(&process.message), "", stopping(process.cancel_requested)]),
        lines: newest.map(format_output_line).collect(),
    }
}

fn stopping(requested: bool) -> &'static str {
    if requested { "stopping" } else { "" }
}

fn note(parts: [&str; 3]) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Arguments without what everybody knows: an empty object.
fn brief(arguments: &Value) -> String {
    match arguments {
        Value::Object(fields) if fields.is_empty() => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1;
    use serde_json::json;

    use super::{super::picture::tests::event, *};

    #[test]
    fn a_call_that_became_a_process_is_shown_as_the_process() {
        let tool_call = |sequence, tool: &str, args: Value| {
            let payload = json!({"type": "tool_call", "tool": tool, "args": args});
            event(sequence, 0, v1::AgentAction::TYPE, payload)
        };
        let mut picture = Picture::new("bob");
        let run = tool_call(1, "process.run", json!({"program": "sh"}));
        picture.apply_event(&run);
        picture.apply_event(&tool_call(2, "http.get", json!({"url": "x\u{1b}"})));
        let titles =
            |picture: &Picture| in_flight_items(picture, 2).into_iter().map(|doing| doing.title).collect::<Vec<_>>();
        assert_eq!(titles(&picture), ["process.run {\"program\":\"sh\"}", "http.get {\"url\":\"x\\u001b\"}"]);

        let id = Uuid::from_u128(1 << 120);
        let spawned =
            json!({"process_id": id, "action_id": run.event_id, "program": "sh", "arguments": ["-c", "a\nb"]});
        picture.apply_event(&event(3, 0, v1::ProcessSpawned::TYPE, spawned));
        for (sequence, stream) in [(0, "stdout"), (1, "stderr"), (2, "stdout")] {
            let piece =
                json!({"process_id": id, "stream": stream, "sequence": sequence, "text": format!("{sequence}\n")});
            picture.apply_live("output", &piece);
        }
        picture.apply_event(&event(4, 0, v1::ProcessCanceled::TYPE, json!({"process_id": id})));
        let all = in_flight_items(&picture, 2);
        assert_eq!((all.len(), all[1].title.as_str()), (2, "sh (01000000) -c a b"));
        assert_eq!(
            (all[1].note.as_str(), all[1].lines.as_slice()),
            ("stopping", ["! 1".to_owned(), "| 2".to_owned()].as_slice())
        );
        assert_eq!(all[0].note, "not begun");
    }
}
