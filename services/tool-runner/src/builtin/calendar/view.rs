//! Renders an occurrence for a model.

use jiff::Zoned;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::entry::Guest;
use super::expand::Occurrence;
use crate::builtin::now::rfc3339;
use crate::builtin::workspace::{add, beginning};

/// Longest title, place or name shown, in bytes.
const MAX_LINE_BYTES: usize = 300;
/// Longest description shown, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 500;
/// Attendees shown.
const MAX_GUESTS: usize = 30;

/// An occurrence, its times in `zone`. Days stay the days they are; `end` is the last of them.
pub fn json_of(one: &Occurrence, zone: &TimeZone) -> Value {
    let details = &one.details;
    let mut json = json!({
        "uid": line(&details.uid),
        "title": line(&details.title),
        "start": time(&one.start, one.all_day, zone),
        "end": end(one, zone),
        "all_day": one.all_day,
        "busy": details.busy,
    });
    for (key, text, most) in [
        ("location", &details.location, MAX_LINE_BYTES),
        ("calendar", &details.calendar, MAX_LINE_BYTES),
        ("description", &details.description, MAX_DESCRIPTION_BYTES),
    ] {
        if let Some(text) = text {
            add(&mut json, key, beginning(text, most).0);
        }
    }
    for (key, holds) in [("recurring", one.recurring), ("tentative", details.tentative)] {
        if holds {
            add(&mut json, key, true);
        }
    }
    if let Some(organizer) = &details.organizer {
        add(&mut json, "organizer", guest(organizer));
    }
    if !details.guests.is_empty() {
        add(&mut json, "attendees", details.guests.iter().take(MAX_GUESTS).map(guest).collect::<Vec<_>>());
    }
    json
}

/// The little that tells occurrences apart.
pub fn short(one: &Occurrence, zone: &TimeZone) -> Value {
    json!({
        "title": line(&one.details.title),
        "start": time(&one.start, one.all_day, zone),
        "end": end(one, zone),
    })
}

fn end(one: &Occurrence, zone: &TimeZone) -> String {
    if one.all_day {
        return one.end.date().yesterday().unwrap_or(one.end.date()).max(one.start.date()).to_string();
    }
    time(&one.end, false, zone)
}

fn time(time: &Zoned, all_day: bool, zone: &TimeZone) -> String {
    if all_day { time.date().to_string() } else { rfc3339(&time.with_time_zone(zone.clone())) }
}

fn guest(guest: &Guest) -> String {
    match (&guest.name, &guest.email) {
        (Some(name), Some(email)) if name != email => format!("{} <{}>", line(name), line(email)),
        (Some(text), _) | (None, Some(text)) => line(text).to_owned(),
        (None, None) => "(unnamed)".to_owned(),
    }
}

fn line(text: &str) -> &str {
    beginning(text, MAX_LINE_BYTES).0
}
