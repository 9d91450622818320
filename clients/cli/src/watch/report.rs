//! A picture as text, for people who look once. Pure.

use std::collections::VecDeque;

use jiff::{Timestamp, tz::TimeZone};

use super::{
    happening::{Happening, short_id},
    in_flight::{InFlightItem, in_flight_items},
    output::format_output_line,
    picture::Picture,
    process::{AgentProcess, describe_end, program_name},
};
use crate::{durations, event_lines::printable};

/// Lines shown of each kind of happening, and of each process's output.
const SHOWN: usize = 10;
/// Columns of a line that holds no words.
const COLUMNS: usize = 160;

/// The lines of a report.
pub fn report(picture: &Picture, now: Timestamp, zone: &TimeZone) -> Vec<String> {
    let mut lines = vec![format!("{} at {} of the log", picture.agent, picture.place)];
    let happened = |all: &VecDeque<Happening>| -> Vec<String> {
        all.iter()
            .skip(all.len().saturating_sub(SHOWN))
            .map(|happening| happening.format_lines(zone, COLUMNS))
            .collect()
    };
    section(&mut lines, "Conversation", happened(&picture.conversation));
    section(&mut lines, "Decisions", happened(&picture.decisions));
    section(&mut lines, "Outcomes", happened(&picture.outcomes));
    let flying = in_flight_items(picture, SHOWN);
    section(&mut lines, "In flight", flying.iter().flat_map(|doing| format_in_flight(doing, now)).collect());
    let doubts = picture.actions.iter().filter_map(|action| {
        let why = action.in_doubt.as_ref()?;
        let id = short_id(&action.action_id.to_string());
        Some(printable(&format!("{} {id}: {why}; see kairo actions", action.tool)))
    });
    section(&mut lines, "In doubt", doubts.collect());
    section(&mut lines, "Ended lately", picture.ended.iter().flat_map(format_ended).collect());
    lines
}

fn section(lines: &mut Vec<String>, head: &str, content: Vec<String>) {
    if !content.is_empty() {
        lines.push(String::new());
        lines.push(head.to_owned());
        lines.extend(content.iter().map(|line| format!("  {}", line.replace('\n', "\n  "))));
    }
}

fn format_in_flight(doing: &InFlightItem, now: Timestamp) -> Vec<String> {
    let since = durations::format_between(doing.since, now);
    let progress = durations::format_progress(doing.fraction, &doing.note);
    let first = format!("{}  {since}  {progress}", doing.title).trim_end().to_owned();
    std::iter::once(first).chain(doing.lines.iter().map(|line| format!("  {line}"))).collect()
}

fn format_ended(process: &AgentProcess) -> Vec<String> {
    let Some(ended) = &process.ended else { return Vec::new() };
    let how = describe_end(&ended.outcome, ended.code, ended.signal, &ended.reason);
    let id = short_id(&process.process_id.to_string());
    let took = durations::format_between(process.started_at, ended.at);
    let first = printable(&format!("{} ({id})  {took}  {how}", program_name(&process.program)));
    let lines = process.output.lines();
    let newest = lines.iter().skip(lines.len().saturating_sub(SHOWN));
    std::iter::once(first).chain(newest.map(|line| format!("  {}", format_output_line(line)))).collect()
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1;
    use serde_json::json;
    use uuid::Uuid;

    use super::{super::picture::tests::event, *};

    #[test]
    fn a_report_holds_what_there_is_and_no_empty_sections() {
        let id = Uuid::from_u128(1 << 120);
        let mut picture = Picture::new("bob");
        let spawned = json!({"process_id": id, "program": "sh", "arguments": ["-c"]});
        picture.apply_event(&event(1, 0, v1::AgentMessage::TYPE, json!({"user": "ann", "text": "one\ntwo"})));
        picture.apply_event(&event(2, 0, v1::ProcessSpawned::TYPE, spawned));
        let progress = json!({"process_id": id, "fraction": 0.25, "message": "a quarter", "tail": "hello\n"});
        picture.apply_event(&event(3, 0, v1::ProcessProgress::TYPE, progress));
        let text = report(&picture, Timestamp::from_second(65).unwrap(), &TimeZone::UTC).join("\n");
        for part in [
            "bob at 3.0 of the log",
            "Conversation\n  00:00:01  ann               one\n                              two",
            "In flight\n  sh (01000000) -c  1m 3s  25% a quarter\n    | hello",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert!(!text.contains("Decisions") && !text.contains("In doubt"), "{text}");
        picture.apply_event(&event(
            4,
            0,
            v1::ProcessExited::TYPE,
            json!({"process_id": id, "outcome": "exited", "code": 3}),
        ));
        let text = report(&picture, Timestamp::from_second(65).unwrap(), &TimeZone::UTC).join("\n");
        assert!(text.contains("Ended lately\n  sh (01000000)  2s  exited with code 3"), "{text}");
    }
}
