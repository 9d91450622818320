//! `calendar.availability`: when there is time.

use jiff::Zoned;
use jiff::civil::Time;
use serde::Deserialize;
use serde_json::{Value, json};

use super::expand::Occurrence;
use super::free::{Hours, free, minutes};
use super::gather::gather;
use super::{now_in, stretch, text, view, zone_text};
use crate::builtin::now::rfc3339;
use crate::builtin::parse_args;
use crate::builtin::workspace::{Desk, Span, add, day_or_span};
use crate::tool::{CallResult, ToolError};

/// Shortest stretch returned when a call does not say how long, in minutes.
const DEFAULT_MINUTES: i64 = 30;
/// Longest stretch of time that is looked at, in days.
const MAX_DAYS: i64 = 366;

pub fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "from": text("Not before: a date, a time or a phrase", 200),
            "until": text("Not after; of a day, its end", 200),
            "date_range": stretch("Instead of from and until"),
            "duration_minutes": {"type": "integer", "minimum": 1, "maximum": 10_080, "description": "How long at least, default 30"},
            "hours": {"type": "string", "pattern": "^[0-2][0-9]:[0-5][0-9]-[0-2][0-9]:[0-5][0-9]$", "description": "Of each day, such as 09:00-17:00. Default the whole day"},
            "people": {
                "type": ["array", "object"],
                "description": "Names or addresses of people, or a result of team.members. Default everybody",
                "maxItems": 200,
                "items": {"type": ["string", "object"]},
            },
            "zone": zone_text(),
        },
        "additionalProperties": false,
    })
}

#[derive(Deserialize)]
struct Args {
    from: Option<String>,
    until: Option<String>,
    date_range: Option<Value>,
    duration_minutes: Option<i64>,
    hours: Option<String>,
    people: Option<Value>,
    zone: Option<String>,
}

pub fn work(desk: &Desk<'_>, args: Value) -> CallResult {
    let args: Args = parse_args(args)?;
    let within = within(&args, &now_in(desk, args.zone.as_deref())?)?;
    let hours = args.hours.as_deref().map(hours).transpose()?;
    let people = args.people.as_ref().map(people).transpose()?;
    let wanted =
        |one: &Occurrence| one.details.busy && people.as_ref().is_none_or(|people| one.details.involves(people));
    let found = gather(desk, &within, wanted)?;
    let busy: Vec<Span> = found.occurrences.iter().map(|one| Span::new(one.start.clone(), one.end.clone())).collect();
    let free = free(&within, &busy, hours, args.duration_minutes.unwrap_or(DEFAULT_MINUTES));
    let most = desk.limits.max_results;
    let zone = within.start.time_zone();
    let slot =
        |span: &Span| json!({"start": rfc3339(&span.start), "end": rfc3339(&span.end), "minutes": minutes(span)});
    let mut result = json!({
        "free": free.iter().take(most).map(slot).collect::<Vec<_>>(),
        "busy": found.occurrences.iter().take(most).map(|one| view::short(one, zone)).collect::<Vec<_>>(),
        "from": rfc3339(&within.start),
        "until": rfc3339(&within.end),
        "zone": zone.iana_name(),
    });
    found.say_what_is_missing(&mut result);
    if free.len() > most || found.occurrences.len() > most {
        add(&mut result, "incomplete", true);
    }
    Ok(result)
}

fn within(args: &Args, now: &Zoned) -> Result<Span, ToolError> {
    let range = match (&args.date_range, &args.from, &args.until) {
        (Some(range), None, None) => range.clone(),
        (None, Some(from), Some(until)) => json!({"from": from, "until": until}),
        (None, Some(from), None) => json!(from),
        _ => {
            return Err(ToolError::invalid_arguments("/from: say from when until when, or give a date_range instead"));
        }
    };
    let within = day_or_span("from", &range, now)?;
    let seconds = within.end.timestamp().as_second() - within.start.timestamp().as_second();
    if seconds > MAX_DAYS * 86_400 {
        return Err(ToolError::invalid_arguments(format!("/until: ask for at most {MAX_DAYS} days at once")));
    }
    Ok(within)
}

/// "09:00-17:00"
fn hours(text: &str) -> Result<Hours, ToolError> {
    let read = || {
        let (from, until) = text.split_once('-')?;
        let hours: Hours = (from.parse::<Time>().ok()?, until.parse::<Time>().ok()?);
        (hours.0 < hours.1).then_some(hours)
    };
    read().ok_or_else(|| ToolError::invalid_arguments("/hours: write an earlier and a later time such as 09:00-17:00"))
}

/// Names and addresses, from a list of either or from a result of `team.members`.
fn people(value: &Value) -> Result<Vec<String>, ToolError> {
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
