//! Calendars made at random against `icalendar` and `recurring-ical-events` of PyPI, which know what RFC 5545 means.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde_json::{Value, json};

use super::ics;
use super::recurrence::{Occurrence, expand_occurrences};
use crate::builtin::reference::Cases;
use crate::builtin::workspace::TimeSpan;

/// Occurrences of one entry that are compared.
const MOST: usize = 50_000;

fn moment(case: &Value, key: &str, zone: &TimeZone) -> Zoned {
    Timestamp::from_second(case[key].as_i64().unwrap()).unwrap().to_zoned(zone.clone())
}

fn render(one: &Occurrence) -> Value {
    if one.all_day {
        return json!([one.start.date().to_string(), one.end.date().to_string(), one.details.title]);
    }
    json!([one.start.timestamp().as_second(), one.end.timestamp().as_second(), one.details.title])
}

fn judge(case: &Value) -> Option<String> {
    let zone = TimeZone::get("Europe/Berlin").unwrap();
    let within = TimeSpan::new(moment(case, "from", &zone), moment(case, "until", &zone));
    let calendar = ics::read(case["text"].as_str().unwrap(), "file", &zone, &|| true);
    let all = calendar.entries.iter().flat_map(|entry| expand_occurrences(entry, &within, MOST).0);
    let begins_within = |one: &Occurrence| one.start >= within.start && one.start < within.end;
    let mut found: Vec<String> = all.filter(begins_within).map(|one| render(&one).to_string()).collect();
    let mut expected: Vec<String> = case["expected"].as_array().unwrap().iter().map(Value::to_string).collect();
    for list in [&mut found, &mut expected] {
        list.sort();
        list.dedup();
    }
    let notes: Vec<&str> = calendar.notes.iter().collect();
    let unsaid = case["notes"].as_array().unwrap().iter().find(|property| {
        let named = format!(": {}: ", property.as_str().unwrap());
        !notes.iter().any(|note| note.contains(&named))
    });
    if found == expected && unsaid.is_none() && calendar.unknown_zones.is_empty() {
        return None;
    }
    let only = |these: &[String], those: &[String]| -> Vec<String> {
        these.iter().filter(|one| !those.contains(one)).cloned().collect()
    };
    Some(format!(
        "{}\nseed {}; only here {:?}; only there {:?}; no note of {unsaid:?}; unknown zones {:?}; notes {notes:?}",
        case["text"].as_str().unwrap(),
        case["seed"],
        only(&found, &expected),
        only(&expected, &found),
        calendar.unknown_zones,
    ))
}

#[test]
fn calendars_are_read_as_established_libraries_read_them() {
    let Some(cases) = Cases::of("calendars") else { return };
    cases.compare(judge);
}
