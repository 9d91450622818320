//! `calendar.check`, `.search`, `.availability` and `.create`: the agent's folder of iCalendar files.

mod availability;
mod create;
#[cfg(test)]
mod differential;
mod draft;
mod entry;
mod expand;
mod free;
mod gather;
mod ics;
#[cfg(test)]
mod kinds;
#[cfg(test)]
mod tests;
mod view;

use std::num::NonZeroUsize;

use jiff::tz::TimeZone;
use jiff::{ToSpan as _, Zoned};
use serde::Deserialize;
use serde_json::{Value, json};

use self::expand::Occurrence;
use self::gather::{Gathered, gather};
use super::now::rfc3339;
use super::workspace::{About, Desk, Span, day_or_span, limit, nobody, span};
use super::{parse_args, team};
use crate::tool::{CallResult, ToolError};

/// Entries returned when a call does not say how many.
const DEFAULT_RESULTS: usize = 50;

pub const TOOLS: [About; 4] = [
    About {
        name: "calendar.check",
        description: "What is in the calendar on a date or within a range, recurring entries included, in order. Default today. Returns events (uid, title, start, end, all_day, busy and what else is known), total, unreadable files, whether limits left something out (incomplete), and notes on what in the files was not understood.",
        schema: check_schema,
        work: check,
        outside: nobody,
    },
    About {
        name: "calendar.search",
        description: "Searches the calendar for entries with all words of query in title, place, description, calendar or people, or that a team takes part in. Without a range: the coming year, and if nothing is found there the past one, latest first.",
        schema: search_schema,
        work: search,
        outside: nobody,
    },
    About {
        name: "calendar.availability",
        description: "Free time between from and until (or within date_range): stretches of at least duration_minutes that no busy entry touches. people keeps only entries that these take part in; without it all entries count. hours limits each day, such as 09:00-17:00.",
        schema: availability::schema,
        work: availability::work,
        outside: nobody,
    },
    About {
        name: "calendar.create",
        description: "Creates a calendar entry and returns it with the conflicts found. A start that is a date makes an all-day entry. Attendees are addresses or names from the contacts; nobody is sent anything. With on_conflict \"refuse\" nothing is created when there are conflicts.",
        schema: create::schema,
        work: create::work,
        outside: nobody,
    },
];

/// Properties of schemas that are alike in several tools.
fn text(description: &str, max: usize) -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": max, "description": description})
}

fn stretch(description: &str) -> Value {
    json!({"type": ["string", "object"], "maxLength": 200, "description": format!(
        "{description}: a date, a phrase such as \"next week\", \"2026-03-01/2026-03-08\", or a result of tools.date_calc"
    )})
}

fn zone_text() -> Value {
    text("IANA time zone, default that of the configuration", 100)
}

fn check_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "date": stretch("When"),
            "range": stretch("The same as date"),
            "date_range": stretch("The same as date"),
            "query": text("Only entries with all these words", 200),
            "zone": zone_text(),
            "limit": {"type": "integer", "minimum": 1, "description": "Entries returned, default 50"},
        },
        "additionalProperties": false,
    })
}

fn search_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": text("Words to look for", 200),
            "team": text("Department, category or group of the contacts, or the name of a calendar", 200),
            "range": stretch("When"),
            "date_range": stretch("The same as range"),
            "zone": zone_text(),
            "limit": {"type": "integer", "minimum": 1, "description": "Entries returned, default 50"},
        },
        "additionalProperties": false,
    })
}

#[derive(Deserialize)]
struct Args {
    query: Option<String>,
    team: Option<String>,
    #[serde(alias = "range", alias = "date_range")]
    date: Option<Value>,
    zone: Option<String>,
    limit: Option<NonZeroUsize>,
}

/// The time of the call in the zone that it is about.
fn now_in(desk: &Desk<'_>, zone: Option<&str>) -> Result<Zoned, ToolError> {
    Ok(match zone {
        Some(name) => desk.now.with_time_zone(TimeZone::get(name).map_err(|_| {
            ToolError::invalid_arguments(format!("/zone: {name:?} is no IANA time zone such as Europe/Berlin"))
        })?),
        None => desk.now.clone(),
    })
}

fn check(desk: &Desk<'_>, args: Value) -> CallResult {
    let args: Args = parse_args(args)?;
    let now = now_in(desk, args.zone.as_deref())?;
    let within = day_or_span("date", args.date.as_ref().unwrap_or(&json!("today")), &now)?;
    let wanted = |one: &Occurrence| args.query.as_ref().is_none_or(|query| one.details.mentions(query));
    let found = gather(desk, &within, wanted)?;
    Ok(show(desk, &found, &within, limit(args.limit, DEFAULT_RESULTS, desk)))
}

fn search(desk: &Desk<'_>, args: Value) -> CallResult {
    let args: Args = parse_args(args)?;
    let now = now_in(desk, args.zone.as_deref())?;
    let people = args.team.as_ref().map(|team| team_people(desk, team)).transpose()?;
    let wanted = |one: &Occurrence| {
        args.query.as_ref().is_none_or(|query| one.details.mentions(query))
            && people.as_ref().is_none_or(|people| one.details.involves(people))
    };
    let most = limit(args.limit, DEFAULT_RESULTS, desk);
    if let Some(range) = &args.date {
        let within = span_of_days(range, &now)?;
        return Ok(show(desk, &gather(desk, &within, wanted)?, &within, most));
    }
    let year = |by: i64| now.checked_add(by.years()).map_err(|error| ToolError::failed(error.to_string()));
    let coming = Span::new(now.clone(), year(1)?);
    let found = gather(desk, &coming, wanted)?;
    if !found.occurrences.is_empty() {
        return Ok(show(desk, &found, &coming, most));
    }
    let past = Span::new(year(-1)?, now.clone());
    let mut found = gather(desk, &past, wanted)?;
    found.occurrences.reverse();
    Ok(show(desk, &found, &past, most))
}

fn span_of_days(range: &Value, now: &Zoned) -> Result<Span, ToolError> {
    let found = span("range", range, now)?;
    if found.start < found.end { Ok(found) } else { day_or_span("range", range, now) }
}

/// The names and addresses of a team, and its own name, which a calendar may have.
fn team_people(desk: &Desk<'_>, name: &str) -> Result<Vec<String>, ToolError> {
    let (cards, _) = team::contacts(desk)?;
    let members = team::of_team(&cards, name);
    let people = members.iter().flat_map(|card| card.emails.iter().chain([&card.name])).cloned();
    Ok(people.chain([name.to_owned()]).collect())
}

fn show(desk: &Desk<'_>, found: &Gathered, within: &Span, most: usize) -> Value {
    let zone = within.start.time_zone();
    let events = desk.list(found.occurrences.iter().map(|one| view::json_of(one, zone)), most);
    let mut result = json!({
        "events": events,
        "total": found.occurrences.len(),
        "from": rfc3339(&within.start),
        "until": rfc3339(&within.end),
        "zone": zone.iana_name(),
    });
    found.say_what_is_missing(&mut result);
    result
}
