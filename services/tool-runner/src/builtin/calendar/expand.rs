//! When an entry takes place.

use std::sync::Arc;

use calcard::common::PartialDateTime;
use calcard::common::timezone::Tz;
use calcard::datecalc::error::{RRuleError, ValidationError};
use calcard::icalendar::dates::CalendarErrorType;
use calcard::icalendar::{
    ICalendar, ICalendarComponent, ICalendarComponentType, ICalendarFrequency, ICalendarProperty,
    ICalendarRecurrenceRule,
};
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _, Zoned};

use super::entry::{Change, Details, Entry, Moment};
use super::ics::civil;
use crate::builtin::workspace::Span;

/// One time that an entry takes place.
#[derive(Debug, Clone, PartialEq)]
pub struct Occurrence {
    pub start: Zoned,
    pub end: Zoned,
    pub all_day: bool,
    pub recurring: bool,
    pub details: Arc<Details>,
}

/// Most occurrences of one step of a rule, such as a year: they are held in memory together.
const MAX_AT_ONCE: usize = 20_000;

/// Whether the rule of an entry can be followed.
pub fn is_valid(entry: &Entry) -> bool {
    let rule = entry.rule.as_ref().filter(|rule| at_once(rule) <= MAX_AT_ONCE);
    rule.is_some_and(|rule| follow(rule, entry.start.civil, 1).is_ok())
}

/// How often something may take place in one step of its rule.
fn at_once(rule: &ICalendarRecurrenceRule) -> usize {
    let days = match rule.freq {
        ICalendarFrequency::Yearly => 366,
        ICalendarFrequency::Monthly => 31,
        ICalendarFrequency::Weekly => 7,
        _ => 1,
    };
    let times = [&rule.byhour, &rule.byminute, &rule.bysecond].map(|times| times.len().max(1));
    times.into_iter().fold(days, usize::saturating_mul)
}

/// The occurrences within a stretch of time in order, at most `max` of those the rule gives, and whether there are
/// more.
pub fn occurrences(entry: &Entry, within: &Span, max: usize) -> (Vec<Occurrence>, bool) {
    let (starts, more) = starts(entry, within, max);
    let recurring = entry.rule.is_some() || !entry.also.is_empty();
    let changed = |start: &Zoned| entry.changes.iter().any(|change| change.of.means(start));
    let mut found: Vec<Occurrence> = starts
        .iter()
        .filter(|start| !entry.except.iter().any(|except| except.means(start)) && !changed(start))
        .map(|start| at(entry, start, recurring))
        .chain(entry.changes.iter().filter_map(|change| instead(change, recurring)))
        .filter(|one| !one.details.canceled && within.overlaps(&one.start, &one.end))
        .collect();
    found.sort_by(|a, b| a.start.cmp(&b.start));
    (found, more)
}

/// When it would begin by rule, changed or not.
fn starts(entry: &Entry, within: &Span, max: usize) -> (Vec<Zoned>, bool) {
    let (civil, more) = match &entry.rule {
        Some(rule) => by_rule(entry, rule, within, max),
        None => (vec![entry.start.civil], false),
    };
    let by_rule = civil.into_iter().map(|civil| Moment { civil, ..entry.start.clone() });
    let mut starts: Vec<Zoned> = by_rule.chain(entry.also.iter().cloned()).filter_map(|start| start.zoned()).collect();
    starts.sort();
    starts.dedup();
    (starts, more)
}

fn at(entry: &Entry, start: &Zoned, recurring: bool) -> Occurrence {
    let onward = |change: &&Change| change.onward && change.of.zoned().is_some_and(|of| of < *start);
    let Some(change) = entry.changes.iter().filter(onward).max_by_key(|change| change.of.civil) else {
        return occurrence(start.clone(), entry.length.after(start), &entry.start, &entry.details, recurring);
    };
    let moved = change.of.civil.until(change.start.civil).and_then(|by| start.checked_add(by));
    let start = moved.unwrap_or_else(|_| start.clone());
    let end = change.length.after(&start);
    occurrence(start, end, &change.start, &change.details, recurring)
}

fn instead(change: &Change, recurring: bool) -> Option<Occurrence> {
    let start = change.start.zoned()?;
    let end = change.length.after(&start);
    Some(occurrence(start, end, &change.start, &change.details, recurring))
}

fn occurrence(start: Zoned, end: Zoned, like: &Moment, details: &Arc<Details>, recurring: bool) -> Occurrence {
    Occurrence { start, end, all_day: like.all_day, recurring, details: Arc::clone(details) }
}

/// The rule is followed on the wall clock, from shortly before `within` until its end.
fn by_rule(entry: &Entry, rule: &ICalendarRecurrenceRule, within: &Span, max: usize) -> (Vec<DateTime>, bool) {
    let wall = |moment: &Zoned| moment.with_time_zone(entry.start.zone.clone()).datetime();
    let first = entry.start.civil;
    // A change of the clock may lie in between.
    let (Ok(last), Ok(earliest)) = (wall(&within.end).checked_add(1.day()), wall(&within.start).checked_sub(2.days()))
    else {
        return (Vec::new(), false);
    };
    let earliest = earliest.checked_sub(entry.length.as_span()).unwrap_or(earliest);
    let last = until(rule, &entry.start).map_or(last, |until| last.min(until));
    let first = skip(first, earliest, rule);
    if last < first {
        return (Vec::new(), false);
    }
    let rule = ICalendarRecurrenceRule { until: partial(last), ..rule.clone() };
    let starts = follow(&rule, first, max.saturating_add(1)).unwrap_or_default();
    let more = starts.len() > max;
    (starts.into_iter().take(max).collect(), more)
}

/// The last moment of a rule on the wall clock of the entry's zone; of a date, the whole day. Some programs give a time
/// for the last day of days.
fn until(rule: &ICalendarRecurrenceRule, start: &Moment) -> Option<DateTime> {
    let until = rule.until.as_ref()?;
    let wall = civil(until)?;
    if until.hour.is_none() || start.all_day {
        let midnight = wall.date().to_datetime(Time::midnight());
        return midnight.checked_add(1.day()).and_then(|next| next.checked_sub(1.second())).ok();
    }
    if until.tz_hour.is_none() {
        return Some(wall);
    }
    Some(wall.to_zoned(TimeZone::UTC).ok()?.with_time_zone(start.zone.clone()).datetime())
}

/// A later first occurrence from which a rule without a count goes on in the same way, so that the years before need
/// not be gone through. Only where its step is a fixed number of seconds on the wall clock.
fn skip(first: DateTime, earliest: DateTime, rule: &ICalendarRecurrenceRule) -> DateTime {
    let unit: i64 = match rule.freq {
        ICalendarFrequency::Secondly => 1,
        ICalendarFrequency::Minutely => 60,
        ICalendarFrequency::Hourly => 3600,
        ICalendarFrequency::Daily => 86_400,
        ICalendarFrequency::Weekly => 7 * 86_400,
        ICalendarFrequency::Monthly | ICalendarFrequency::Yearly => return first,
    };
    let step = unit * i64::from(rule.interval.unwrap_or(1).max(1));
    let ahead = seconds(earliest).saturating_sub(seconds(first));
    if rule.count.is_some() || ahead < step {
        return first;
    }
    // What the entry begins with stands for what the rule leaves open: the day of the week, the time.
    first.checked_add((ahead / step * step).seconds()).unwrap_or(first)
}

/// Seconds since 1970 as if the wall clock were that of Greenwich.
fn seconds(wall: DateTime) -> i64 {
    wall.to_zoned(TimeZone::UTC).map_or(0, |moment| moment.timestamp().as_second())
}

/// At most `max` occurrences on the wall clock.
fn follow(rule: &ICalendarRecurrenceRule, first: DateTime, max: usize) -> Result<Vec<DateTime>, ()> {
    let mut event = ICalendarComponent::new(ICalendarComponentType::VEvent);
    event.add_property(ICalendarProperty::Dtstart, partial(first).ok_or(())?);
    event.add_property(ICalendarProperty::Rrule, rule.clone());
    // Without any zone: those of the file's names are known better here than there.
    let expanded = ICalendar { components: vec![event] }.expand_dates(Tz::Floating, max);
    let wrong = |error: &CalendarErrorType| {
        !matches!(
            error,
            CalendarErrorType::RRule(RRuleError::ValidationError(ValidationError::UntilBeforeStart { .. }))
        )
    };
    if expanded.errors.iter().any(|error| wrong(&error.error)) {
        return Err(());
    }
    let wall = |second| Some(Timestamp::from_second(second).ok()?.to_zoned(TimeZone::UTC).datetime());
    Ok(expanded.events.iter().filter_map(|event| wall(event.start.timestamp())).collect())
}

/// A time on the wall clock, as calcard has it.
pub fn partial(wall: DateTime) -> Option<PartialDateTime> {
    let small = |number: i8| u8::try_from(number).ok();
    Some(PartialDateTime {
        year: Some(u16::try_from(wall.year()).ok()?),
        month: small(wall.month()),
        day: small(wall.day()),
        hour: small(wall.hour()),
        minute: small(wall.minute()),
        second: small(wall.second()),
        ..PartialDateTime::default()
    })
}
