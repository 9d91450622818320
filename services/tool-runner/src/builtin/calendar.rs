//! `calendar.check`, `.search`, `.availability` and `.create`: the agent's folder of iCalendar files.

mod availability;
mod calendar_scan;
#[cfg(test)]
mod differential;
mod entry;
mod entry_creation;
mod entry_draft;
mod free_time;
mod ics;
#[cfg(test)]
mod kinds;
mod recurrence;
#[cfg(test)]
mod tests;
mod view;

use std::num::NonZeroUsize;

use jiff::tz::TimeZone;
use jiff::{ToSpan as _, Zoned};
use serde::Deserialize;
use serde_json::{Value, json};

use self::calendar_scan::{CalendarScan, scan_calendar};
use self::recurrence::Occurrence;
use super::now::rfc3339;
use super::workspace::{
    Desk, FileToolDefinition, TimeSpan, no_outside_sources, parse_day_or_span, parse_span, result_limit,
};
use super::{parse_args, team};
use crate::tool::{CallResult, ToolError};

/// Entries returned when a call does not say how many.
const DEFAULT_RESULTS: usize = 50;

pub const TOOLS: [FileToolDefinition; 4] = [
    FileToolDefinition {
        name: "calendar.check",
        description: "What is in the calendar on a date or within a range, recurring entries included, in order. Default today. Returns events (uid, title, start, end, all_day, busy and what else is known), total, unreadable files, whether limits left something out (incomplete), and notes on what in the files was not understood.",
        schema: check_schema,
        work: check_calendar,
        outside: no_outside_sources,
    },
    FileToolDefinition {
        name: "calendar.search",
        description: "Searches the calendar for entries with all words of query in title, place, description, calendar or people, or that a team takes part in. Without a range: the coming year, and if nothing is found there the past one, latest first.",
        schema: search_schema,
        work: search_calendar,
        outside: no_outside_sources,
    },
    FileToolDefinition {
        name: "calendar.availability",
        description: "Free time between from and until (or within date_range): stretches of at least duration_minutes that no busy entry touches. people keeps only entries that these take part in; without it all entries count. hours limits each day, such as 09:00-17:00.",
        schema: availability::schema,
        work: availability::find_free_time,
        outside: no_outside_sources,
    },
    FileToolDefinition {
        name: "calendar.create",
        description: "Creates a calendar entry and returns it with the conflicts found. A start that is a date makes an all-day entry. Attendees are addresses or names from the contacts; nobody is sent anything. With on_conflict \"refuse\" nothing is created when there are conflicts.",
        schema: entry_creation::schema,
        work: entry_creation::create_entry,
        outside: no_outside_sources,
    },
];

/// Properties of schemas that are alike in several tools.
fn text_schema(description: &str, max: usize) -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": max, "description": description})
}

fn date_range_schema(description: &str) -> Value {
    json!({"type": ["string", "object"], "maxLength": 200, "description": format!(
        "{description}: a date, a phrase such as \"next week\", \"2026-03-01/2026-03-08\", or a result of tools.date_calc"
    )})
}

fn zone_schema() -> Value {
    text_schema("IANA time zone, default that of the configuration", 100)
}

fn check_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "date": date_range_schema("When"),
            "range": date_range_schema("The same as date"),
            "date_range": date_range_schema("The same as date"),
            "query": text_schema("Only entries with all these words", 200),
            "zone": zone_schema(),
            "limit": {"type": "integer", "minimum": 1, "description": "Entries returned, default 50"},
        },
        "additionalProperties": false,
    })
}

fn search_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": text_schema("Words to look for", 200),
            "team": text_schema("Department, category or group of the contacts, or the name of a calendar", 200),
            "range": date_range_schema("When"),
            "date_range": date_range_schema("The same as range"),
            "zone": zone_schema(),
            "limit": {"type": "integer", "minimum": 1, "description": "Entries returned, default 50"},
        },
        "additionalProperties": false,
    })
}

#[derive(Deserialize)]
struct CalendarQueryArgs {
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

fn check_calendar(desk: &Desk<'_>, args: Value) -> CallResult {
    let args: CalendarQueryArgs = parse_args(args)?;
    let now = now_in(desk, args.zone.as_deref())?;
    let within = parse_day_or_span("date", args.date.as_ref().unwrap_or(&json!("today")), &now)?;
    let wanted = |one: &Occurrence| args.query.as_ref().is_none_or(|query| one.details.matches_query(query));
    let found = scan_calendar(desk, &within, wanted)?;
    Ok(render_occurrences(desk, &found, &within, result_limit(args.limit, DEFAULT_RESULTS, desk)))
}

fn search_calendar(desk: &Desk<'_>, args: Value) -> CallResult {
    let args: CalendarQueryArgs = parse_args(args)?;
    let now = now_in(desk, args.zone.as_deref())?;
    let people = args.team.as_ref().map(|team| team_people(desk, team)).transpose()?;
    let wanted = |one: &Occurrence| {
        args.query.as_ref().is_none_or(|query| one.details.matches_query(query))
            && people.as_ref().is_none_or(|people| one.details.involves_any(people))
    };
    let most = result_limit(args.limit, DEFAULT_RESULTS, desk);
    if let Some(range) = &args.date {
        let within = parse_search_range(range, &now)?;
        return Ok(render_occurrences(desk, &scan_calendar(desk, &within, wanted)?, &within, most));
    }
    let year = |by: i64| now.checked_add(by.years()).map_err(|error| ToolError::failed(error.to_string()));
    let coming = TimeSpan::new(now.clone(), year(1)?);
    let found = scan_calendar(desk, &coming, wanted)?;
    if !found.occurrences.is_empty() {
        return Ok(render_occurrences(desk, &found, &coming, most));
    }
    let past = TimeSpan::new(year(-1)?, now.clone());
    let mut found = scan_calendar(desk, &past, wanted)?;
    found.occurrences.reverse();
    Ok(render_occurrences(desk, &found, &past, most))
}

fn parse_search_range(range: &Value, now: &Zoned) -> Result<TimeSpan, ToolError> {
    let found = parse_span("range", range, now)?;
    if found.start < found.end { Ok(found) } else { parse_day_or_span("range", range, now) }
}

/// The names and addresses of a team, and its own name, which a calendar may have.
fn team_people(desk: &Desk<'_>, name: &str) -> Result<Vec<String>, ToolError> {
    let (cards, _) = team::load_contacts(desk)?;
    let members = team::members_of_team(&cards, name);
    let people = members.iter().flat_map(|card| card.emails.iter().chain([&card.name])).cloned();
    Ok(people.chain([name.to_owned()]).collect())
}

fn render_occurrences(desk: &Desk<'_>, found: &CalendarScan, within: &TimeSpan, most: usize) -> Value {
    let zone = within.start.time_zone();
    let events = desk.take_fitting(found.occurrences.iter().map(|one| view::json_of(one, zone)), most);
    let mut result = json!({
        "events": events,
        "total": found.occurrences.len(),
        "from": rfc3339(&within.start),
        "until": rfc3339(&within.end),
        "zone": zone.iana_name(),
    });
    found.report_omissions(&mut result);
    result
}
