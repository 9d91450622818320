//! Groups the events of a file that belong together: versions of one entry, and changes to its occurrences.

use std::collections::HashMap;

use jiff::civil::DateTime;

use super::IcsNotes;
use crate::builtin::calendar::entry::{CalendarEntry, CalendarTime, OccurrenceChange};
use crate::builtin::calendar::recurrence::original_start;

/// An event as it stands in the file.
pub struct EventVersion {
    /// Number of the revision; the highest counts.
    pub sequence: i64,
    /// Time of writing, in UTC; within one revision the latest counts.
    pub stamp: Option<DateTime>,
    /// For a changed occurrence: its original start, and whether later ones are changed too.
    pub of: Option<(CalendarTime, bool)>,
    pub entry: CalendarEntry,
}

impl EventVersion {
    fn revision_order(&self) -> (i64, Option<DateTime>) {
        (self.sequence, self.stamp)
    }

    fn is_other_event(&self, version: &Self) -> bool {
        let differs =
            self.entry.details.title != version.entry.details.title && self.entry.start != version.entry.start;
        differs && self.revision_order() == version.revision_order()
    }
}

/// The entries of a file. Events without a UID stand for themselves.
pub fn group_into_entries(versions: Vec<EventVersion>, notes: &mut IcsNotes) -> Vec<CalendarEntry> {
    let (mut groups, mut places): (Vec<Vec<EventVersion>>, HashMap<String, usize>) = (Vec::new(), HashMap::new());
    for version in versions {
        let uid = version.entry.details.uid.clone();
        let place = if uid.is_empty() { groups.len() } else { *places.entry(uid).or_insert(groups.len()) };
        match groups.get_mut(place) {
            Some(group) => group.push(version),
            None => groups.push(vec![version]),
        }
    }
    groups.into_iter().flat_map(|group| build_series(group, notes)).collect()
}

fn build_series(group: Vec<EventVersion>, notes: &mut IcsNotes) -> Vec<CalendarEntry> {
    let (changes, masters): (Vec<EventVersion>, Vec<EventVersion>) =
        group.into_iter().partition(|version| version.of.is_some());
    let sequence = masters.iter().map(|version| version.sequence).max();
    let mut entries = pick_newest(masters, notes);
    let changes = pick_changes(changes, entries.first(), sequence);
    let Some(master) = entries.first_mut() else {
        // An invitation to one occurrence comes without the entry that it belongs to.
        return changes.into_iter().filter(|change| !change.details.canceled).map(standalone_entry).collect();
    };
    master.changes = changes;
    entries
}

/// The version that counts, the first one where several are alike. Events that are alike in nothing but their UID and age are
/// no versions: some programs give one UID to all.
fn pick_newest(masters: Vec<EventVersion>, notes: &mut IcsNotes) -> Vec<CalendarEntry> {
    let Some(age) = masters.iter().map(EventVersion::revision_order).max() else { return Vec::new() };
    let mut kept: Vec<EventVersion> = Vec::new();
    for version in masters {
        if version.revision_order() != age {
            continue;
        }
        if kept.is_empty() || kept.iter().all(|known| known.is_other_event(&version)) {
            kept.push(version);
        } else if kept.iter().all(|known| known.entry.start != version.entry.start) {
            let what = "another version with the same SEQUENCE and DTSTAMP is left out";
            notes.add(&version.entry.details.title, "UID", what);
        }
    }
    if let Some(other) = kept.get(1) {
        notes.add(&other.entry.details.title, "UID", "other entries have the same; each is shown for itself");
    }
    kept.into_iter().map(|version| version.entry).collect()
}

/// The changes, for each occurrence that which counts.
fn pick_changes(
    changes: Vec<EventVersion>,
    master: Option<&CalendarEntry>,
    sequence: Option<i64>,
) -> Vec<OccurrenceChange> {
    let (mut kept, mut places): (Vec<EventVersion>, HashMap<(bool, i64), usize>) = (Vec::new(), HashMap::new());
    for version in changes {
        let Some((of, _)) = &version.of else { continue };
        let of = master.map_or_else(|| of.clone(), |master| original_start(of, &master.start));
        let Some(second) = of.to_zoned().map(|at| at.timestamp().as_second()) else { continue };
        let place = *places.entry((of.all_day, second)).or_insert(kept.len());
        match kept.get_mut(place) {
            Some(known) if version.revision_order() > known.revision_order() => *known = version,
            Some(_) => {}
            None => kept.push(version),
        }
    }
    let change = |version: EventVersion| {
        let (of, onward) = version.of?;
        let entry = version.entry;
        let has_rules = !(entry.rules.is_empty() && entry.also.is_empty() && entry.except.is_empty());
        let stale = has_rules && sequence.is_some_and(|sequence| version.sequence < sequence);
        Some(OccurrenceChange { of, onward, stale, start: entry.start, length: entry.length, details: entry.details })
    };
    kept.into_iter().filter_map(change).collect()
}

fn standalone_entry(change: OccurrenceChange) -> CalendarEntry {
    CalendarEntry {
        start: change.start,
        length: change.length,
        details: change.details,
        rules: Vec::new(),
        except_rules: Vec::new(),
        also: Vec::new(),
        except: Vec::new(),
        changes: Vec::new(),
    }
}
