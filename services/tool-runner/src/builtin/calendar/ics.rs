//! Reading iCalendar files (RFC 5545), as Outlook, Google and others really write them.

mod components;
mod event;
mod observances;
mod rules;
mod series;
mod values;
mod zones;

use std::collections::BTreeSet;

use jiff::tz::TimeZone;

use self::components::ComponentList;
use self::event::EventReader;
pub use self::rules::read as read_rule;
pub use self::values::WrittenClock;
use super::entry::CalendarEntry;
use crate::builtin::workspace::truncate_text;

/// Notes of one file that are kept, and the longest of them, in bytes.
const MAX_NOTES: usize = 20;
const MAX_NOTE_BYTES: usize = 300;
/// Kinds of components that hold time which is not shown.
const NOT_SHOWN: [&str; 4] = ["VTODO", "VJOURNAL", "VFREEBUSY", "VAVAILABILITY"];

/// The content of an iCalendar file.
#[derive(Debug, Default)]
pub struct IcsCalendar {
    pub entries: Vec<CalendarEntry>,
    /// True if part of the file made no sense and was left out.
    pub broken: bool,
    /// Names of unknown time zones, replaced by the default.
    pub unknown_zones: BTreeSet<String>,
    /// Values not understood, or read otherwise than written: "title: PROPERTY: what".
    pub notes: IcsNotes,
}

/// Notes on a file, each sentence once.
#[derive(Debug, Default)]
pub struct IcsNotes(Vec<String>);

impl IcsNotes {
    pub fn add(&mut self, about: &str, property: &str, what: &str) {
        let note = format!("{}: {property}: {what}", about.trim());
        let note = truncate_text(&note, MAX_NOTE_BYTES).0.replace(char::is_control, " ");
        if self.0.len() < MAX_NOTES && !self.0.contains(&note) {
            self.0.push(note);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    pub fn first(&self) -> Option<&str> {
        self.iter().next()
    }
}

/// Reads a file, as long as `go_on` says so. `name` is that of the calendar when the file gives none, `zone` where dates
/// without one are.
pub fn read(text: &str, name: &str, zone: &TimeZone, go_on: &dyn Fn() -> bool) -> IcsCalendar {
    let lines = ComponentList::parse(text);
    let mut calendar = IcsCalendar { broken: lines.components.is_empty() || lines.too_deep, ..IcsCalendar::default() };
    note_oddities(&lines, &mut calendar);
    let mut reader = EventReader::new(&lines, name, zone, &mut calendar);
    let mut versions = Vec::new();
    let events = lines.components.iter().filter(|component| component.kind == "VEVENT");
    // A file made to be slow has many entries whose rules never come to anything.
    for event in events.take_while(|_| go_on()) {
        match reader.read_version(event) {
            Some(version) => versions.push(version),
            None => reader.calendar.broken = true,
        }
    }
    calendar.entries = series::group_into_entries(versions, &mut calendar.notes);
    calendar
}

fn note_oddities(lines: &ComponentList, calendar: &mut IcsCalendar) {
    if lines.stray > 0 {
        let what = format!("{} lines are no property and are passed over", lines.stray);
        calendar.notes.add("file", "lines", &what);
    }
    for kind in NOT_SHOWN {
        let count = lines.components.iter().filter(|component| component.kind == kind).count();
        if count > 0 {
            calendar.notes.add("file", kind, &format!("{count} of them are not shown, nor do they count as busy"));
        }
    }
    let open = lines.components.iter().filter(|component| !component.closed && !component.kind.is_empty());
    for component in open.take(MAX_NOTES) {
        let title = component.text("SUMMARY").unwrap_or_else(|| "file".to_owned());
        calendar.notes.add(&title, &format!("END:{}", component.kind), "it is missing; the file may be cut off");
    }
}
