//! The rules of a `VTIMEZONE` (RFC 5545, section 3.6.5), each change of the clock one by one: by rule, by lists of dates, or
//! once.

use jiff::civil::{DateTime, date};
use jiff::tz::TimeZone;

use super::super::recurrence::follow_rule;
use super::components::{ComponentList, IcsComponent};
use super::{rules, values};

/// Changes of the clock in one zone.
const MAX_CHANGES: usize = 4_000;
/// Parts of one zone that are looked at.
const MAX_PARTS: usize = 200;
/// Year until which rules without an end are followed.
const LAST_YEAR: i16 = 2150;

/// From when on which distance holds.
struct ClockChange {
    /// Seconds since 1970.
    at: i64,
    /// Seconds east of Greenwich, before and after.
    from: i32,
    to: i32,
    daylight: bool,
}

/// The name by which times refer to a zone.
pub fn zone_name_of(zone: &IcsComponent) -> Option<String> {
    zone.text("TZID")
}

/// The zone at this place of the list; none when it says nothing that can be followed.
pub fn build_zone(lines: &ComponentList, place: usize) -> Option<TimeZone> {
    let parts = lines.components.iter().filter(|part| part.parent == Some(place)).take(MAX_PARTS);
    let mut changes: Vec<ClockChange> = parts.filter_map(clock_changes).flatten().take(MAX_CHANGES).collect();
    changes.sort_by_key(|change| change.at);
    changes.dedup_by_key(|change| change.at);
    let before = changes.first()?.from;
    TimeZone::tzif(&zone_name_of(lines.components.get(place)?)?, &encode_tzif(before, &changes)).ok()
}

fn clock_changes(part: &IcsComponent) -> Option<Vec<ClockChange>> {
    let daylight = match part.kind.as_str() {
        "STANDARD" => false,
        "DAYLIGHT" => true,
        _ => return None,
    };
    let offset = |name| values::parse_offset(&part.first_property(name)?.value);
    let to = offset("TZOFFSETTO")?;
    let from = offset("TZOFFSETFROM").unwrap_or(to);
    let start = values::parse_written_time(&part.first_property("DTSTART")?.value)?.civil;
    let mut walls = vec![start];
    for list in part.properties_named("RDATE") {
        walls.extend(list.value.split(',').filter_map(|one| Some(values::parse_written_time(one)?.civil)));
    }
    for rule in part.properties_named("RRULE") {
        walls.extend(expand_change_rule(&rule.value, start, from).unwrap_or_default());
    }
    let change = |wall: DateTime| Some(ClockChange { at: wall_seconds(wall)? - i64::from(from), from, to, daylight });
    Some(walls.into_iter().take(MAX_CHANGES).filter_map(change).collect())
}

fn expand_change_rule(rule: &str, start: DateTime, from: i32) -> Option<Vec<DateTime>> {
    let reading = rules::read(rule).ok()?;
    let last = date(LAST_YEAR, 1, 1).at(0, 0, 0, 0);
    let until = match reading.until {
        // In Greenwich's time.
        Some(until) if until.clock != values::WrittenClock::Wall => {
            until.civil.checked_add(jiff::SignedDuration::from_secs(i64::from(from))).ok()?
        }
        Some(until) if until.is_date => until.civil.date().at(23, 59, 59, 0),
        Some(until) => until.civil,
        None => last,
    };
    follow_rule(&reading.rule, start, Some(until.min(last)), MAX_CHANGES).ok()
}

fn wall_seconds(wall: DateTime) -> Option<i64> {
    Some(wall.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second())
}

/// The changes in the format of time zone files (RFC 9636), which is how a zone of any rules can be had.
fn encode_tzif(before: i32, changes: &[ClockChange]) -> Vec<u8> {
    let mut types: Vec<(i32, bool)> = vec![(before, false)];
    let mut indexes = Vec::new();
    for change in changes {
        let kind = (change.to, change.daylight);
        let index = types.iter().position(|known| *known == kind).unwrap_or_else(|| {
            types.push(kind);
            types.len() - 1
        });
        indexes.push(u8::try_from(index).unwrap_or(0));
    }
    types.truncate(usize::from(u8::MAX));
    let mut bytes = tzif_header([0, 0, 1]);
    // The first block is there for old programs.
    bytes.extend([0, 0, 0, 0, 0, 0]);
    bytes.extend(b"x\0");
    bytes.extend(tzif_header([changes.len(), types.len(), 0]));
    changes.iter().for_each(|change| bytes.extend(change.at.to_be_bytes()));
    bytes.extend(indexes);
    for (offset, daylight) in types {
        bytes.extend(offset.to_be_bytes());
        bytes.extend([u8::from(daylight), 0]);
    }
    bytes.extend(b"x\0");
    bytes.extend(b"\n\n");
    bytes
}

/// The header of a block with so many changes and kinds of time.
fn tzif_header([changes, types, first]: [usize; 3]) -> Vec<u8> {
    let mut bytes = b"TZif2".to_vec();
    bytes.extend([0; 15]);
    let types = if first == 1 { 1 } else { types };
    for count in [0, 0, 0, changes, types, 2] {
        bytes.extend(u32::try_from(count).unwrap_or(0).to_be_bytes());
    }
    bytes
}
