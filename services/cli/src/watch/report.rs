//! A picture as text, for people who look once. Pure.

use std::collections::VecDeque;

use jiff::{Timestamp, tz::TimeZone};

use super::{
    doing::{Doing, doing},
    happening::{Happening, short},
    output::marked,
    picture::Picture,
    process::{Process, how, program_name},
};
use crate::{event_lines::printable, lapse};

/// Lines shown of each kind of happening, and of each process's output.
const SHOWN: usize = 10;
/// Columns of a line that holds no words.
const COLUMNS: usize = 160;

/// The lines of a report.
pub fn report(picture: &Picture, now: Timestamp, zone: &TimeZone) -> Vec<String> {
    let mut lines = vec![format!("{} at {} of the log", picture.agent, picture.place)];
    let happened = |all: &VecDeque<Happening>| -> Vec<String> {
        all.iter().skip(all.len().saturating_sub(SHOWN)).map(|happening| happening.lines(zone, COLUMNS)).collect()
    };
    section(&mut lines, "Conversation", happened(&picture.conversation));
    section(&mut lines, "Decisions", happened(&picture.decisions));
    section(&mut lines, "Outcomes", happened(&picture.outcomes));
    let flying = doing(picture, SHOWN);
    section(&mut lines, "In flight", flying.iter().flat_map(|doing| in_flight(doing, now)).collect());
    let doubts = picture.actions.iter().filter_map(|action| {
        let why = action.in_doubt.as_ref()?;
        let id = short(&action.action_id.to_string());
        Some(printable(&format!("{} {id}: {why}; see kairo actions", action.tool)))
    });
    section(&mut lines, "In doubt", doubts.collect());
    section(&mut lines, "Ended lately", picture.ended.iter().flat_map(ended).collect());
    lines
}

fn section(lines: &mut Vec<String>, head: &str, content: Vec<String>) {
    if !content.is_empty() {
        lines.push(String::new());
        lines.push(head.to_owned());
        lines.extend(content.iter().map(|line| format!("  {}", line.replace('\n', "\n  "))));
    }
}

fn in_flight(doing: &Doing, now: Timestamp) -> Vec<String> {
    let since = lapse::between(doing.since, now);
    let progress = lapse::progress(doing.fraction, &doing.note);
    let first = format!("{}  {since}  {progress}", doing.title).trim_end().to_owned();
    std::iter::once(first).chain(doing.lines.iter().map(|line| format!("  {line}"))).collect()
}

fn ended(process: &Process) -> Vec<String> {
    let Some(ended) = &process.ended else { return Vec::new() };
    let how = how(&ended.outcome, ended.code, ended.signal, &ended.reason);
    let id = short(&process.process_id.to_string());
    let took = lapse::between(process.started_at, ended.at);
    let first = printable(&format!("{} ({id})  {took}  {how}", program_name(&process.program)));
    let lines = process.output.lines();
    let newest = lines.iter().skip(lines.len().saturating_sub(SHOWN));
    std::iter::once(first).chain(newest.map(|line| format!("  {}", marked(line)))).collect()
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
        picture.take(&event(1, 0, v1::AgentMessage::TYPE, json!({"user": "ann", "text": "one\ntwo"})));
        picture.take(&event(2, 0, v1::ProcessSpawned::TYPE, spawned));
        let progress = json!({"process_id": id, "fraction": 0.25, "message": "a quarter", "tail": "hello\n"});
        picture.take(&event(3, 0, v1::ProcessProgress::TYPE, progress));
        let text = report(&picture, Timestamp::from_second(65).unwrap(), &TimeZone::UTC).join("\n");
        for part in [
            "bob at 3.0 of the log",
            "Conversation\n  00:00:01  ann               one\n                              two",
            "In flight\n  sh (01000000) -c  1m 3s  25% a quarter\n    | hello",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert!(!text.contains("Decisions") && !text.contains("In doubt"), "{text}");
        picture.take(&event(4, 0, v1::ProcessExited::TYPE, json!({"process_id": id, "outcome": "exited", "code": 3})));
        let text = report(&picture, Timestamp::from_second(65).unwrap(), &TimeZone::UTC).join("\n");
        assert!(text.contains("Ended lately\n  sh (01000000)  2s  exited with code 3"), "{text}");
    }
}
