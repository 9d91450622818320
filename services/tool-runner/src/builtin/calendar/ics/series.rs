//! Groups the events of a file that belong together: versions of one entry, and changes to its occurrences.

use std::collections::HashMap;

use jiff::civil::DateTime;

use super::Notes;
use crate::builtin::calendar::entry::{Change, Entry, Moment};
use crate::builtin::calendar::expand::replaced;

/// An event as it stands in the file.
pub struct Version {
    /// Number of the revision; the highest counts.
    pub sequence: i64,
    /// Time of writing, in UTC; within one revision the latest counts.
    pub stamp: Option<DateTime>,
    /// For a changed occurrence: its original start, and whether later ones are changed too.
    pub of: Option<(Moment, bool)>,
    pub entry: Entry,
}

impl Version {
    fn age(&self) -> (i64, Option<DateTime>) {
        (self.sequence, self.stamp)
    }

    fn is_other(&self, version: &Self) -> bool {
        let differs =
            self.entry.details.title != version.entry.details.title && self.entry.start != version.entry.start;
        differs && self.age() == version.age()
    }
}

/// The entries of a file. Events without a UID stand for themselves.
pub fn gather(versions: Vec<Version>, notes: &mut Notes) -> Vec<Entry> {
    let (mut groups, mut places): (Vec<Vec<Version>>, HashMap<String, usize>) = (Vec::new(), HashMap::new());
    for version in versions {
        let uid = version.entry.details.uid.clone();
        let place = if uid.is_empty() { groups.len() } else { *places.entry(uid).or_insert(groups.len()) };
        match groups.get_mut(place) {
            Some(group) => group.push(version),
            None => groups.push(vec![version]),
        }
    }
    groups.into_iter().flat_map(|group| series(group, notes)).collect()
}

fn series(group: Vec<Version>, notes: &mut Notes) -> Vec<Entry> {
    let (changes, masters): (Vec<Version>, Vec<Version>) = group.into_iter().partition(|version| version.of.is_some());
    let sequence = masters.iter().map(|version| version.sequence).max();
    let mut entries = newest(masters, notes);
    let changes = changed(changes, entries.first(), sequence);
    let Some(master) = entries.first_mut() else {
        // An invitation to one occurrence comes without the entry that it belongs to.
        return changes.into_iter().filter(|change| !change.details.canceled).map(alone).collect();
    };
    master.changes = changes;
    entries
}

/// The version that counts, the first one where several are alike. Events that are alike in nothing but their UID and age are
/// no versions: some programs give one UID to all.
fn newest(masters: Vec<Version>, notes: &mut Notes) -> Vec<Entry> {
    let Some(age) = masters.iter().map(Version::age).max() else { return Vec::new() };
    let mut kept: Vec<Version> = Vec::new();
    for version in masters {
        if version.age() != age {
            continue;
        }
        if kept.is_empty() || kept.iter().all(|known| known.is_other(&version)) {
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
fn changed(changes: Vec<Version>, master: Option<&Entry>, sequence: Option<i64>) -> Vec<Change> {
    let (mut kept, mut places): (Vec<Version>, HashMap<(bool, i64), usize>) = (Vec::new(), HashMap::new());
    for version in changes {
        let Some((of, _)) = &version.of else { continue };
        let of = master.map_or_else(|| of.clone(), |master| replaced(of, &master.start));
        let Some(second) = of.zoned().map(|at| at.timestamp().as_second()) else { continue };
        let place = *places.entry((of.all_day, second)).or_insert(kept.len());
        match kept.get_mut(place) {
            Some(known) if version.age() > known.age() => *known = version,
            Some(_) => {}
            None => kept.push(version),
        }
    }
    let change = |version: Version| {
        let (of, onward) = version.of?;
        let entry = version.entry;
        let has_rules = !(entry.rules.is_empty() && entry.also.is_empty() && entry.except.is_empty());
        let stale = has_rules && sequence.is_some_and(|sequence| version.sequence < sequence);
        Some(Change { of, onward, stale, start: entry.start, length: entry.length, details: entry.details })
    };
    kept.into_iter().filter_map(change).collect()
}

fn alone(change: Change) -> Entry {
    Entry {
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
