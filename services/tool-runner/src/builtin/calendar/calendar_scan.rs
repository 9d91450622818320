//! All that takes place within a stretch of time, from all files of the agent's calendar.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::entry::CalendarEntry;
use super::ics;
use super::recurrence::{Occurrence, expand_occurrences};
use crate::builtin::workspace::{Desk, FolderScan, TimeSpan, set_field, truncate_text};
use crate::tool::ToolError;

/// The agent's calendar.
pub const FOLDER: &str = "calendar";
/// Occurrences that one call holds in memory.
const MAX_HELD: usize = 20_000;
/// Names of unknown time zones that are told, and the longest of them, in bytes.
const MAX_ZONES: usize = 10;
const MAX_ZONE_BYTES: usize = 100;
/// Notes on what was not understood that are told.
const MAX_NOTES: usize = 20;

/// The occurrences found, and the parts of the files that could not be read.
pub struct CalendarScan {
    /// In order.
    pub occurrences: Vec<Occurrence>,
    read: FolderScan,
    unknown_zones: BTreeSet<String>,
    /// "file: title: PROPERTY: what was not understood".
    notes: Vec<String>,
}

/// Goes through the files and keeps what `wanted` says.
pub fn scan_calendar(
    desk: &Desk<'_>,
    within: &TimeSpan,
    wanted: impl Fn(&Occurrence) -> bool,
) -> Result<CalendarScan, ToolError> {
    let mut found = Vec::new();
    let mut cut = false;
    let mut unknown_zones = BTreeSet::new();
    let mut notes = Vec::new();
    let mut read = desk.each_file(FOLDER, ".ics", |name, file| {
        let name = name.strip_suffix(".ics").unwrap_or(name);
        let go_on = || desk.check_not_canceled().is_ok();
        let calendar = ics::read(&file.text(), name, desk.zone(), &go_on);
        for entry in calendar.entries.iter().take_while(|_| go_on()) {
            cut |= keep_occurrences(entry, within, desk.limits.max_occurrences, &wanted, &mut found);
        }
        let unknown = calendar.unknown_zones.iter().map(|zone| truncate_text(zone, MAX_ZONE_BYTES).0.to_owned());
        unknown_zones.extend(unknown.take(MAX_ZONES - unknown_zones.len()));
        let room = MAX_NOTES.saturating_sub(notes.len());
        notes.extend(calendar.notes.iter().take(room).map(|note| format!("{name}: {note}")));
        !calendar.broken
    })?;
    read.incomplete |= cut;
    found.sort_by(|a, b| (&a.start, &a.details.title).cmp(&(&b.start, &b.details.title)));
    Ok(CalendarScan { occurrences: found, read, unknown_zones, notes })
}

/// Returns whether a limit kept something out.
fn keep_occurrences(
    entry: &CalendarEntry,
    within: &TimeSpan,
    max: usize,
    wanted: impl Fn(&Occurrence) -> bool,
    found: &mut Vec<Occurrence>,
) -> bool {
    let (occurrences, more) = expand_occurrences(entry, within, max);
    let room = MAX_HELD.saturating_sub(found.len());
    let mut wanted = occurrences.into_iter().filter(wanted);
    found.extend(wanted.by_ref().take(room));
    more || wanted.next().is_some()
}

impl CalendarScan {
    /// Adds to a result what could not be taken into account.
    pub fn report_omissions(&self, result: &mut Value) {
        self.read.report_omissions(result);
        if !self.unknown_zones.is_empty() {
            set_field(result, "unknown_zones", json!(self.unknown_zones));
        }
        if !self.notes.is_empty() {
            set_field(result, "notes", json!(self.notes));
        }
    }
}
