//! Renders an occurrence for a model.

use jiff::Zoned;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::entry::Guest;
use super::recurrence::Occurrence;
use crate::builtin::now::rfc3339;
use crate::builtin::workspace::{set_field, truncate_text};

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
        "uid": cut_line(&details.uid),
        "title": cut_line(&details.title),
        "start": format_time(&one.start, one.all_day, zone),
        "end": format_end(one, zone),
        "all_day": one.all_day,
        "busy": details.busy,
    });
    for (key, text, most) in [
        ("location", &details.location, MAX_LINE_BYTES),
        ("calendar", &details.calendar, MAX_LINE_BYTES),
        ("description", &details.description, MAX_DESCRIPTION_BYTES),
    ] {
        if let Some(text) = text {
            set_field(&mut json, key, truncate_text(text, most).0);
        }
    }
    for (key, holds) in [("recurring", one.recurring), ("tentative", details.tentative)] {
        if holds {
            set_field(&mut json, key, true);
        }
    }
    if let Some(organizer) = &details.organizer {
        set_field(&mut json, "organizer", format_guest(organizer));
    }
    if !details.guests.is_empty() {
        set_field(&mut json, "attendees", details.guests.iter().take(MAX_GUESTS).map(format_guest).collect::<Vec<_>>());
    }
    json
}

/// The little that tells occurrences apart.
pub fn short_json(one: &Occurrence, zone: &TimeZone) -> Value {
    json!({
        "title": cut_line(&one.details.title),
        "start": format_time(&one.start, one.all_day, zone),
        "end": format_end(one, zone),
    })
}

fn format_end(one: &Occurrence, zone: &TimeZone) -> String {
    if one.all_day {
        return one.end.date().yesterday().unwrap_or(one.end.date()).max(one.start.date()).to_string();
    }
    format_time(&one.end, false, zone)
}

fn format_time(time: &Zoned, all_day: bool, zone: &TimeZone) -> String {
    if all_day { time.date().to_string() } else { rfc3339(&time.with_time_zone(zone.clone())) }
}

fn format_guest(guest: &Guest) -> String {
    match (&guest.name, &guest.email) {
        (Some(name), Some(email)) if name != email => format!("{} <{}>", cut_line(name), cut_line(email)),
        (Some(text), _) | (None, Some(text)) => cut_line(text).to_owned(),
        (None, None) => "(unnamed)".to_owned(),
    }
}

fn cut_line(text: &str) -> &str {
    truncate_text(text, MAX_LINE_BYTES).0
}
