//! `calendar.create`: a new entry, and what it collides with.

use jiff::tz::AmbiguousOffset;
use jiff::{ToSpan as _, Zoned};
use serde::Deserialize;
use serde_json::{Value, json};

use super::calendar_scan::{CalendarScan, FOLDER, scan_calendar};
use super::entry::Guest;
use super::entry_draft::{EntryDraft, parse_rule, parse_wall_time};
use super::recurrence::{Occurrence, expand_occurrences};
use super::{ics, now_in, text_schema, view, zone_schema};
use crate::builtin::workspace::{Desk, TimeSpan, parse_span, set_field};
use crate::builtin::{parse_args, team};
use crate::tool::{CallResult, ToolError};

/// Length of an entry with neither end nor duration, in minutes.
const DEFAULT_MINUTES: i64 = 60;
/// Range in which the occurrences of a recurring entry are checked for conflicts, in days.
const CHECKED_DAYS: i64 = 366;
/// Most conflicts shown.
const MAX_CONFLICTS: usize = 20;

pub fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["title", "start"],
        "properties": {
            "title": text_schema("What it is", 500),
            "start": text_schema("When it begins: a date, a time such as 2026-03-02T14:00, or a phrase such as \"tomorrow at 9:00\"", 200),
            "end": text_schema("When it ends; of an all-day entry, its last day", 200),
            "duration": text_schema("Instead of end, such as 30m or 1h 30m. Default an hour", 50),
            "zone": zone_schema(),
            "location": text_schema("Where", 500),
            "attendees": {
                "type": "array",
                "maxItems": 100,
                "description": "Addresses, or names as the contacts have them",
                "items": {"type": "string", "minLength": 1, "maxLength": 300},
            },
            "description": text_schema("What it is about", 10_000),
            "recurrence": text_schema("A rule as RFC 5545 writes it, such as FREQ=WEEKLY;BYDAY=MO, or daily, weekdays, weekly, monthly, yearly", 300),
            "type": text_schema("Its category, such as meeting", 100),
            "on_conflict": {"enum": ["report", "refuse"], "description": "Whether to create it nonetheless, default report"},
        },
        "additionalProperties": false,
    })
}

#[derive(Deserialize)]
struct CalendarCreateArgs {
    title: String,
    start: String,
    end: Option<String>,
    duration: Option<String>,
    zone: Option<String>,
    location: Option<String>,
    #[serde(default)]
    attendees: Vec<String>,
    description: Option<String>,
    recurrence: Option<String>,
    #[serde(rename = "type")]
    category: Option<String>,
    #[serde(default)]
    on_conflict: OnConflict,
}

#[derive(Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OnConflict {
    #[default]
    Report,
    Refuse,
}

pub fn create_entry(desk: &Desk<'_>, args: Value) -> CallResult {
    let args: CalendarCreateArgs = parse_args(args)?;
    let folder = desk.folder(FOLDER)?;
    let file = format!("{}.ics", desk.action_key());
    let note = clock_change_note(&args, &now_in(desk, args.zone.as_deref())?);
    let on_conflict = args.on_conflict;
    let draft = draft_entry(desk, args)?;
    let text = draft.to_ics(desk.decided_at());
    let own = own_occurrences(&text, desk, &draft)?;
    let conflicts = find_conflicts(desk, &own, &draft.uid)?;
    let first = own.first().ok_or_else(|| {
        ToolError::invalid_arguments("/recurrence: it never takes place with this start; correct one of them")
    })?;
    let zone = draft.start.time_zone();
    // Called again, it has been created already, whatever was put into the calendar since.
    let created = folder.has(&file)?;
    let refused = on_conflict == OnConflict::Refuse && !conflicts.occurrences.is_empty() && !created;
    if !refused && !created {
        folder.write(&file, text.as_bytes())?;
    }
    let shown = conflicts.occurrences.iter().take(MAX_CONFLICTS).map(|one| view::short_json(one, zone));
    let mut result = json!({
        "created": !refused,
        "event": view::json_of(first, zone),
        "path": format!("{FOLDER}/{file}"),
        "conflicts": shown.collect::<Vec<_>>(),
        "total_conflicts": conflicts.occurrences.len(),
    });
    if let Some(note) = note {
        set_field(&mut result, "note", note);
    }
    conflicts.report_omissions(&mut result);
    Ok(result)
}

fn draft_entry(desk: &Desk<'_>, args: CalendarCreateArgs) -> Result<EntryDraft, ToolError> {
    let now = now_in(desk, args.zone.as_deref())?;
    let begins = parse_span("start", &Value::from(args.start.as_str()), &now)?;
    let is_midnight = |moment: &Zoned| moment.start_of_day().is_ok_and(|start| start == *moment);
    let all_day = begins.start < begins.end && is_midnight(&begins.start) && is_midnight(&begins.end);
    let end = parse_end(&args, &begins, all_day)?;
    let rule = args.recurrence.as_deref().map(|text| {
        parse_rule(text).ok_or_else(|| {
            ToolError::invalid_arguments(format!(
                "/recurrence: {text:?} is no rule; write one such as FREQ=WEEKLY;BYDAY=MO;COUNT=10"
            ))
        })
    });
    Ok(EntryDraft {
        uid: format!("{}@kairo", desk.action_key()),
        title: args.title,
        start: begins.start,
        end,
        all_day,
        location: args.location,
        description: args.description,
        category: args.category,
        guests: resolve_guests(desk, &args.attendees)?,
        rule: rule.transpose()?,
    })
}

fn parse_end(args: &CalendarCreateArgs, begins: &TimeSpan, all_day: bool) -> Result<Zoned, ToolError> {
    let end = match (&args.end, &args.duration) {
        (Some(_), Some(_)) => return Err(ToolError::invalid_arguments("/end: give an end or a duration, not both")),
        (Some(end), None) => {
            // "17:00" means that of the day it begins on.
            let end = parse_span("end", &Value::from(end.as_str()), &begins.start)?;
            if all_day == (end.start == end.end) {
                return Err(ToolError::invalid_arguments("/end: start and end must both be dates or both be times"));
            }
            end.end
        }
        (None, None) if begins.start < begins.end => begins.end.clone(),
        (None, duration) => begins
            .start
            .checked_add(parse_length(duration.as_deref(), all_day)?)
            .map_err(|_| ToolError::invalid_arguments("/duration: it ends beyond the years of the calendar"))?,
    };
    if end <= begins.start {
        return Err(ToolError::invalid_arguments("/end: it must be after the start"));
    }
    Ok(end)
}

fn parse_length(text: Option<&str>, all_day: bool) -> Result<jiff::Span, ToolError> {
    let Some(text) = text else {
        return Ok(DEFAULT_MINUTES.minutes());
    };
    let span = text.parse::<jiff::Span>().ok().filter(|span| !all_day || span.get_days() > 0 || span.get_weeks() > 0);
    span.ok_or_else(|| {
        ToolError::invalid_arguments(format!(
            "/duration: {text:?} is not understood; write 30m, 1h 30m or, for an all-day entry, 2 days"
        ))
    })
}

/// Names are looked up in the contacts; one that fits nobody, or several people, stays a name.
fn resolve_guests(desk: &Desk<'_>, attendees: &[String]) -> Result<Vec<Guest>, ToolError> {
    let cards = if attendees.is_empty() { Vec::new() } else { team::load_contacts(desk)?.0 };
    let guest = |text: &String| {
        let text = text.trim();
        let is_address =
            text.contains('@') && !text.contains(|c: char| c.is_whitespace() || c.is_control() || "<>\"".contains(c));
        if is_address {
            return Guest { name: None, email: Some(text.to_owned()) };
        }
        let mut named = cards.iter().filter(|card| card.is_person() && card.is_called(text));
        match (named.next(), named.next()) {
            (Some(card), None) => Guest { name: Some(card.name.clone()), email: card.emails.first().cloned() },
            _ => Guest { name: Some(text.to_owned()), email: None },
        }
    };
    Ok(attendees.iter().map(guest).collect())
}

/// When the entry takes place, read from what is written: so it is known to be readable.
fn own_occurrences(text: &str, desk: &Desk<'_>, draft: &EntryDraft) -> Result<Vec<Occurrence>, ToolError> {
    let days = if draft.rule.is_some() { CHECKED_DAYS } else { 0 };
    let until = draft.end.checked_add(days.days()).unwrap_or_else(|_| draft.end.clone());
    let calendar = ics::read(text, FOLDER, draft.start.time_zone(), &|| true);
    if calendar.broken {
        let why = calendar.notes.first().unwrap_or("this rule cannot be followed");
        return Err(ToolError::invalid_arguments(format!("/recurrence: correct it ({why})")));
    }
    let within = TimeSpan::new(draft.start.clone(), until);
    let found =
        calendar.entries.iter().flat_map(|entry| expand_occurrences(entry, &within, desk.limits.max_occurrences).0);
    Ok(found.collect())
}

/// The busy entries that overlap one of these.
fn find_conflicts(desk: &Desk<'_>, own: &[Occurrence], uid: &str) -> Result<CalendarScan, ToolError> {
    let (Some(first), Some(last)) = (own.first(), own.iter().max_by_key(|one| one.end.timestamp())) else {
        return scan_calendar(desk, &TimeSpan::new(desk.now.clone(), desk.now.clone()), |_| false);
    };
    let within = TimeSpan::new(first.start.clone(), last.end.clone());
    scan_calendar(desk, &within, |other| {
        let overlap = |one: &Occurrence| one.start < other.end && other.start < one.end;
        other.details.busy && other.details.uid != uid && own.iter().any(overlap)
    })
}

/// Returns a note on a time that the clock skips or shows twice that day.
fn clock_change_note(args: &CalendarCreateArgs, now: &Zoned) -> Option<String> {
    let zone = now.time_zone();
    let one = |field: &str, text: &str| {
        let wall = parse_wall_time(text)?;
        match zone.to_ambiguous_zoned(wall).offset() {
            AmbiguousOffset::Unambiguous { .. } => None,
            AmbiguousOffset::Gap { .. } => Some(format!(
                "{field}: the clock skips {} that day, so it is taken as much later as the clock is put forward",
                wall.time()
            )),
            AmbiguousOffset::Fold { .. } => {
                Some(format!("{field}: the clock shows {} twice that day; the first is meant", wall.time()))
            }
        }
    };
    one("start", &args.start).or_else(|| one("end", args.end.as_deref()?))
}
