//! `calendar.availability`: when there is time.

use jiff::Zoned;
use jiff::civil::Time;
use serde::Deserialize;
use serde_json::{Value, json};

use super::calendar_scan::scan_calendar;
use super::free_time::{DayHours, find_free_spans, whole_minutes};
use super::recurrence::Occurrence;
use super::{date_range_schema, now_in, text_schema, view, zone_schema};
use crate::builtin::now::rfc3339;
use crate::builtin::parse_args;
use crate::builtin::workspace::{Desk, TimeSpan, parse_day_or_span, set_field};
use crate::tool::{CallResult, ToolError};

/// Shortest stretch returned when a call does not say how long, in minutes.
const DEFAULT_MINUTES: i64 = 30;
/// Longest stretch of time that is looked at, in days.
const MAX_DAYS: i64 = 366;

pub fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "from": text_schema("Not before: a date, a time or a phrase", 200),
            "until": text_schema("Not after; of a day, its end", 200),
            "date_range": date_range_schema("Instead of from and until"),
            "duration_minutes": {"type": "integer", "minimum": 1, "maximum": 10_080, "description": "How long at least, default 30"},
            "hours": {"type": "string", "pattern": "^[0-2][0-9]:[0-5][0-9]-[0-2][0-9]:[0-5][0-9]$", "description": "Of each day, such as 09:00-17:00. Default the whole day"},
            "people": {
                "type": ["array", "object"],
                "description": "Names or addresses of people, or a result of team.members. Default everybody",
                "maxItems": 200,
                "items": {"type": ["string", "object"]},
            },
            "zone": zone_schema(),
        },
        "additionalProperties": false,
    })
}

#[derive(Deserialize)]
struct AvailabilityArgs {
    from: Option<String>,
    until: Option<String>,
    date_range: Option<Value>,
    duration_minutes: Option<i64>,
    hours: Option<String>,
    people: Option<Value>,
    zone: Option<String>,
}

pub fn find_free_time(desk: &Desk<'_>, args: Value) -> CallResult {
    let args: AvailabilityArgs = parse_args(args)?;
    let within = parse_requested_span(&args, &now_in(desk, args.zone.as_deref())?)?;
    let hours = args.hours.as_deref().map(parse_hours).transpose()?;
    let people = args.people.as_ref().map(parse_people).transpose()?;
    let wanted =
        |one: &Occurrence| one.details.busy && people.as_ref().is_none_or(|people| one.details.involves_any(people));
    let found = scan_calendar(desk, &within, wanted)?;
    let busy: Vec<TimeSpan> =
        found.occurrences.iter().map(|one| TimeSpan::new(one.start.clone(), one.end.clone())).collect();
    let free = find_free_spans(&within, &busy, hours, args.duration_minutes.unwrap_or(DEFAULT_MINUTES));
    let most = desk.limits.max_results;
    let zone = within.start.time_zone();
    let slot = |span: &TimeSpan| json!({"start": rfc3339(&span.start), "end": rfc3339(&span.end), "minutes": whole_minutes(span)});
    let mut result = json!({
        "free": free.iter().take(most).map(slot).collect::<Vec<_>>(),
        "busy": found.occurrences.iter().take(most).map(|one| view::short_json(one, zone)).collect::<Vec<_>>(),
        "from": rfc3339(&within.start),
        "until": rfc3339(&within.end),
        "zone": zone.iana_name(),
    });
    found.report_omissions(&mut result);
    if free.len() > most || found.occurrences.len() > most {
        set_field(&mut result, "incomplete", true);
    }
    Ok(result)
}

fn parse_requested_span(args: &AvailabilityArgs, now: &Zoned) -> Result<TimeSpan, ToolError> {
    let range = match (&args.date_range, &args.from, &args.until) {
        (Some(range), None, None) => range.clone(),
        (None, Some(from), Some(until)) => json!({"from": from, "until": until}),
        (None, Some(from), None) => json!(from),
        _ => {
            return Err(ToolError::invalid_arguments("/from: say from when until when, or give a date_range instead"));
        }
    };
    let within = parse_day_or_span("from", &range, now)?;
    let seconds = within.end.timestamp().as_second() - within.start.timestamp().as_second();
    if seconds > MAX_DAYS * 86_400 {
        return Err(ToolError::invalid_arguments(format!("/until: ask for at most {MAX_DAYS} days at once")));
    }
    Ok(within)
}

/// "09:00-17:00"
fn parse_hours(text: &str) -> Result<DayHours, ToolError> {
    let read = || {
        let (from, until) = text.split_once('-')?;
        let hours: DayHours = (from.parse::<Time>().ok()?, until.parse::<Time>().ok()?);
        (hours.0 < hours.1).then_some(hours)
    };
    read().ok_or_else(|| ToolError::invalid_arguments("/hours: write an earlier and a later time such as 09:00-17:00"))
}

/// Names and addresses, from a list of either or from a result of `team.members`.
fn parse_people(value: &Value) -> Result<Vec<String>, ToolError> {
    let list = value.get("members").unwrap_or(value);
    let of_one = |person: &Value| -> Vec<String> {
        let fields = ["email", "name"].into_iter().filter_map(|key| person.get(key));
        fields.chain([person]).filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let found: Vec<String> = list.as_array().into_iter().flatten().flat_map(of_one).collect();
    if found.is_empty() {
        return Err(ToolError::invalid_arguments(
            "/people: nobody is named; give names or addresses, or leave it out for everybody",
        ));
    }
    Ok(found)
}
