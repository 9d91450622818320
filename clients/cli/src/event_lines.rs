//! Events as lines for people: what happened when, and what made it happen.

use std::collections::HashMap;

use console::{measure_text_width, pad_str, truncate_str};
use jiff::tz::TimeZone;
use kairo_core::event_json::EventJson;
use serde_json::Value;
use uuid::Uuid;

/// Events that can still be named as a cause; older ones are named by their id.
const REMEMBERED: usize = 10_000;

/// The least room for what an event says, in columns; on a narrower terminal lines wrap.
const TEXT_MIN: usize = 24;

/// Writes events one line each. The cause of an event is the line it points back to.
pub struct EventLines {
    /// Width of the screen; lines are never cut if `None`.
    width: Option<usize>,
    zone: TimeZone,
    columns: Columns,
    seen: HashMap<Uuid, Label>,
}

/// Widths.
#[derive(Default)]
struct Columns {
    place: usize,
    subject: usize,
    type_name: usize,
    cause: usize,
}

#[derive(Clone)]
struct Label {
    place: String,
    type_name: String,
}

impl EventLines {
    /// For events that are not known yet: columns widen as they come.
    pub fn new(width: Option<usize>, zone: TimeZone) -> Self {
        let columns = Columns { place: 4, subject: 30, type_name: 13, cause: 20 };
        Self { width, zone, columns, seen: HashMap::new() }
    }

    /// All lines of events that are known, in columns that fit them.
    pub fn format_all(events: &[EventJson], width: Option<usize>, zone: TimeZone) -> Vec<String> {
        let mut lines = Self { columns: Columns::default(), ..Self::new(None, zone.clone()) };
        for event in events {
            lines.format_line(event);
        }
        lines.width = width;
        lines.seen.clear();
        events.iter().map(|event| lines.format_line(event)).collect()
    }

    /// The line of one event; events are to be given in the order of the log.
    pub fn format_line(&mut self, event: &EventJson) -> String {
        let label = Label { place: event_position(event), type_name: short_type(&event.type_name).to_owned() };
        let cause = event.causation_id.map(|id| self.cause(id)).unwrap_or_default();
        self.columns.widen(&label, &event.subject, &cause);
        let time = event.ts.to_zoned(self.zone.clone()).strftime("%H:%M:%S%.3f").to_string();
        let columns = &self.columns;
        let head = format!(
            "{:>place$}  {time}  {}  {}  {}  ",
            label.place,
            align_left(&event.subject, columns.subject),
            align_left(&label.type_name, columns.type_name),
            align_left(&cause, columns.cause),
            place = columns.place,
        );
        let says = event_text(event);
        let line = match self.width {
            None => head + &says,
            Some(width) => {
                let room = width.saturating_sub(measure_text_width(&head)).max(TEXT_MIN);
                head + &truncate_str(&says, room, "…")
            }
        };
        self.remember(event.event_id, label);
        line.trim_end().to_owned()
    }

    fn cause(&self, id: Uuid) -> String {
        match self.seen.get(&id) {
            Some(label) => format!("<- {} {}", label.place, label.type_name),
            // The last digits: the first of a UUIDv7 are the time, alike in all events of a minute.
            None => format!("<- …{}", id.simple().to_string().split_off(24)),
        }
    }

    fn remember(&mut self, id: Uuid, label: Label) {
        if self.seen.len() >= REMEMBERED {
            self.seen.clear();
        }
        self.seen.insert(id, label);
    }
}

impl Columns {
    fn widen(&mut self, label: &Label, subject: &str, cause: &str) {
        self.place = self.place.max(label.place.len());
        self.subject = self.subject.max(subject.len());
        self.type_name = self.type_name.max(label.type_name.len());
        self.cause = self.cause.max(measure_text_width(cause));
    }
}

/// Returns the place of the event in the log: its message's sequence, and its position if it is not the first there.
fn event_position(event: &EventJson) -> String {
    match event.position {
        0 => event.sequence.to_string(),
        position => format!("{}.{position}", event.sequence),
    }
}

/// `tool.result` of `kairo.tool.result.v1`.
fn short_type(name: &str) -> &str {
    let name = name.strip_prefix("kairo.").unwrap_or(name);
    match name.rsplit_once(".v") {
        Some((name, version)) if version.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => name,
    }
}

/// Returns what the event says, on one line, and who entered it.
fn event_text(event: &EventJson) -> String {
    let kind = event.payload.get("type").and_then(Value::as_str).unwrap_or_default();
    // Only where it entered: what the router delivers was entered by the same.
    let entered = event.entered_by.as_ref().filter(|_| event.causation_id.is_none());
    let by = entered.map(|who| format!("[{who}]")).unwrap_or_default();
    let words = [by.as_str(), kind, event.text()].join(" ");
    words.split_whitespace().map(printable).collect::<Vec<_>>().join(" ")
}

fn align_left(text: &str, width: usize) -> String {
    pad_str(text, width, console::Alignment::Left, None).into_owned()
}

/// The text without what could steer a terminal; line ends and tabs stay. Models and tools write what they like.
pub fn printable(text: &str) -> String {
    text.chars().filter(|&c| matches!(c, '\n' | '\t') || !can_steer_terminal(c)).collect()
}

/// The text in one line, as a cell of a table holds it.
pub fn in_one_line(text: &str) -> String {
    printable(text).replace(['\n', '\t'], " ")
}

/// Returns true if the character could steer a terminal: the control characters of ASCII, those behind it (C1, of which
/// U+009B begins a sequence as Escape and a bracket do), and those that change the order.
pub fn can_steer_terminal(c: char) -> bool {
    c.is_control() || can_reorder_text(c)
}

/// Returns true if the character makes a terminal show the text behind it in another order than it was written.
fn can_reorder_text(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kairo_proto::v1;
    use serde_json::json;

    use super::*;

    fn event(sequence: u64, position: u32, type_name: &str, cause: Option<u128>, payload: Value) -> EventJson {
        EventJson {
            event_id: Uuid::from_u128(u128::from(sequence) * 10 + u128::from(position)),
            ts: Timestamp::from_millisecond(1_500 + i64::try_from(sequence).unwrap()).unwrap(),
            source: "internal".into(),
            modality: "text".into(),
            payload,
            meta: Default::default(),
            type_name: type_name.into(),
            sequence,
            position,
            subject: "kairo.a.b.c".into(),
            correlation_id: Uuid::nil(),
            causation_id: cause.map(Uuid::from_u128),
            thread_id: None,
            entered_by: None,
        }
    }

    fn turn() -> Vec<EventJson> {
        vec![
            event(9, 0, v1::UserMessage::TYPE, None, json!({"text": "What time is it?"})),
            event(10, 0, v1::AgentMessage::TYPE, Some(90), json!({"text": "What time is it?"})),
            event(11, 0, v1::ThreadCreated::TYPE, Some(100), json!({"text": ""})),
            event(11, 1, v1::AgentAction::TYPE, Some(100), json!({"type": "tool_call", "text": "tools.now {}"})),
            event(12, 0, v1::ToolInvoke::TYPE, Some(111), json!({"text": "tools.now {}"})),
        ]
    }

    #[test]
    fn a_line_points_back_to_the_line_that_caused_it() {
        assert_eq!(
            EventLines::format_all(&turn(), None, TimeZone::UTC),
            [
                "   9  00:00:01.509  kairo.a.b.c  user.message                          What time is it?",
                "  10  00:00:01.510  kairo.a.b.c  agent.message   <- 9 user.message     What time is it?",
                "  11  00:00:01.511  kairo.a.b.c  thread.created  <- 10 agent.message",
                "11.1  00:00:01.511  kairo.a.b.c  agent.action    <- 10 agent.message   tool_call tools.now {}",
                "  12  00:00:01.512  kairo.a.b.c  tool.invoke     <- 11.1 agent.action  tools.now {}",
            ]
        );
    }

    #[test]
    fn what_entered_says_who_entered_it_and_what_follows_does_not() {
        let by = |event: EventJson| EventJson { entered_by: Some("api_key:k7\u{1b}".into()), ..event };
        let events: Vec<_> = turn().into_iter().take(2).map(by).collect();
        let lines = EventLines::format_all(&events, None, TimeZone::UTC);
        assert!(lines[0].ends_with("  [api_key:k7] What time is it?"), "{}", lines[0]);
        assert!(lines[1].ends_with("<- 9 user.message  What time is it?"), "{}", lines[1]);
    }

    #[test]
    fn a_cause_outside_the_lines_is_named_by_the_end_of_its_id() {
        let lines = EventLines::format_all(&turn()[1..2], None, TimeZone::UTC);
        assert!(lines[0].contains("<- …0000005a"), "{}", lines[0]);
    }

    #[test]
    fn only_what_an_event_says_is_cut_to_the_screen() {
        let long = event(1, 0, v1::UserMessage::TYPE, None, json!({"text": "ä".repeat(300)}));
        let whole = EventLines::format_all(std::slice::from_ref(&long), None, TimeZone::UTC);
        let cut = EventLines::format_all(std::slice::from_ref(&long), Some(100), TimeZone::UTC);
        let narrow = EventLines::format_all(&[long], Some(10), TimeZone::UTC);
        assert!(measure_text_width(&whole[0]) > 300);
        assert_eq!(measure_text_width(&cut[0]), 100);
        assert!(narrow[0].contains("user.message"), "{}", narrow[0]);
    }

    #[test]
    fn no_text_steers_the_terminal() {
        let event = event(1, 0, "x", None, json!({"text": "a\u{1b}[2J\u{202e}b\nc\u{7}"}));
        assert!(EventLines::format_all(&[event], None, TimeZone::UTC)[0].ends_with("a[2Jb c"));
    }

    #[test]
    fn a_type_is_shown_without_its_version() {
        assert_eq!(short_type("kairo.tool.result.v12"), "tool.result");
        assert_eq!(short_type("acme.thing.very"), "acme.thing.very");
    }
}
