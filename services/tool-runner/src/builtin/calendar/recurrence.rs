//! When an entry takes place.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use calcard::common::PartialDateTime;
use calcard::common::timezone::Tz;
use calcard::datecalc::error::{RRuleError, ValidationError};
use calcard::icalendar::dates::CalendarErrorType;
use calcard::icalendar::{
    ICalendar, ICalendarComponent, ICalendarComponentType, ICalendarFrequency, ICalendarProperty,
    ICalendarRecurrenceRule,
};
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _, Zoned};

use super::entry::{CalendarEntry, CalendarTime, EntryDetails, EntryLength, EntryRecurrence, OccurrenceChange};
use crate::builtin::workspace::TimeSpan;

/// One time that an entry takes place.
#[derive(Debug, Clone, PartialEq)]
pub struct Occurrence {
    pub start: Zoned,
    pub end: Zoned,
    pub all_day: bool,
    pub recurring: bool,
    pub details: Arc<EntryDetails>,
}

/// Most occurrences of one step of a rule, such as a year: they are held in memory together.
const MAX_AT_ONCE: usize = 20_000;
/// Most occurrences that a rule is followed through which must be followed from its beginning.
const MAX_FOLLOWED: usize = 100_000;

/// Returns true if a rule can be expanded within the limits.
pub fn is_expandable(rule: &ICalendarRecurrenceRule, start: DateTime) -> bool {
    max_per_step(rule) <= MAX_AT_ONCE && follow_rule(rule, start, None, 1).is_ok()
}

/// Returns the most occurrences in one step of the rule.
fn max_per_step(rule: &ICalendarRecurrenceRule) -> usize {
    let days = match rule.freq {
        ICalendarFrequency::Yearly => 366,
        ICalendarFrequency::Monthly => 31,
        ICalendarFrequency::Weekly => 7,
        _ => 1,
    };
    let times = [&rule.byhour, &rule.byminute, &rule.bysecond].map(|times| times.len().max(1));
    times.into_iter().fold(days, usize::saturating_mul)
}

/// When an entry would begin if no occurrence were changed, and how long that would take.
#[derive(Clone)]
struct OccurrenceStart {
    civil: DateTime,
    at: Zoned,
    length: Option<EntryLength>,
}

/// The occurrences within a stretch of time in order, at most `max` of those each rule gives, and whether there are
/// more.
pub fn expand_occurrences(entry: &CalendarEntry, within: &TimeSpan, max: usize) -> (Vec<Occurrence>, bool) {
    let (starts, more) = expand_starts(entry, within, max);
    let index = StartIndex::from_starts(entry, &starts);
    let excepted: BTreeSet<usize> = entry.except.iter().flat_map(|except| index.find_all(except)).collect();
    let changed: BTreeSet<usize> = entry.changes.iter().filter_map(|change| index.find_first(&change.of)).collect();
    let recurring = !entry.rules.is_empty() || !entry.also.is_empty();
    let kept = starts.iter().enumerate().filter(|(at, _)| !excepted.contains(at) && !changed.contains(at));
    let exceptions = ExceptionSet::from_entry(entry);
    let changes = entry.changes.iter().filter(|change| {
        !exceptions.contains(&original_start(&change.of, &entry.start)) && has_changed_occurrence(change, entry)
    });
    let mut found: Vec<Occurrence> = kept
        .map(|(_, start)| occurrence_at(entry, start, recurring))
        .chain(changes.filter_map(|change| changed_occurrence(change, recurring)))
        .filter(|one| !one.details.canceled && within.overlaps(&one.start, &one.end))
        .collect();
    found.sort_by(|a, b| a.start.cmp(&b.start));
    (found, more)
}

/// The starts by what an exception or a change may call them.
struct StartIndex<'a> {
    all_day: bool,
    zone: &'a TimeZone,
    instants: HashMap<i64, usize>,
    walls: HashMap<DateTime, usize>,
    days: HashMap<Date, Vec<usize>>,
}

impl<'a> StartIndex<'a> {
    fn from_starts(entry: &'a CalendarEntry, starts: &[OccurrenceStart]) -> Self {
        let mut days: HashMap<Date, Vec<usize>> = HashMap::new();
        for (at, start) in starts.iter().enumerate() {
            days.entry(start.civil.date()).or_default().push(at);
        }
        let each = || starts.iter().enumerate().rev();
        Self {
            all_day: entry.start.all_day,
            zone: &entry.start.zone,
            instants: each().map(|(at, start)| (start.at.timestamp().as_second(), at)).collect(),
            walls: each().map(|(at, start)| (start.civil, at)).collect(),
            days,
        }
    }

    /// Finds the occurrences that a moment refers to. Some programs give a date for a time, a time for a date, or a
    /// time without its zone or in another.
    fn find_all(&self, moment: &CalendarTime) -> Vec<usize> {
        let on = |date: Date| self.days.get(&date).cloned().unwrap_or_default();
        if self.all_day {
            return on(series_day(moment, self.zone));
        }
        if moment.all_day {
            return on(moment.civil.date());
        }
        let exact = moment.to_zoned().and_then(|moment| self.instants.get(&moment.timestamp().as_second()));
        exact.or_else(|| self.walls.get(&moment.civil)).copied().into_iter().collect()
    }

    fn find_first(&self, moment: &CalendarTime) -> Option<usize> {
        self.find_all(moment).into_iter().min()
    }
}

/// The day that a moment means in a series of days: where it is a midnight of the agent's zone, the day that begins then.
fn series_day(moment: &CalendarTime, zone: &TimeZone) -> Date {
    let here = moment.to_zoned().map(|moment| moment.with_time_zone(zone.clone()).datetime());
    let midnight = here.filter(|here| !moment.all_day && here.time() == Time::midnight());
    midnight.unwrap_or(moment.civil).date()
}

/// The exceptions of an entry, by which a change of what does not take place is none.
struct ExceptionSet {
    instants: BTreeSet<i64>,
    walls: BTreeSet<DateTime>,
    /// Of a series of days.
    days: Option<BTreeSet<Date>>,
    zone: TimeZone,
}

impl ExceptionSet {
    fn from_entry(entry: &CalendarEntry) -> Self {
        let zone = entry.start.zone.clone();
        let days = entry.start.all_day.then(|| entry.except.iter().map(|except| series_day(except, &zone)).collect());
        let instants = entry.except.iter().filter(|except| !except.all_day).filter_map(CalendarTime::to_zoned);
        Self {
            instants: instants.map(|except| except.timestamp().as_second()).collect(),
            walls: entry.except.iter().map(|except| except.civil).collect(),
            days,
            zone,
        }
    }

    fn contains(&self, moment: &CalendarTime) -> bool {
        if let Some(days) = &self.days {
            return days.contains(&series_day(moment, &self.zone));
        }
        let exact = || moment.to_zoned().is_some_and(|at| self.instants.contains(&at.timestamp().as_second()));
        self.walls.contains(&moment.civil) || (!moment.all_day && exact())
    }
}

/// When it would begin by rule, changed or not.
fn expand_starts(entry: &CalendarEntry, within: &TimeSpan, max: usize) -> (Vec<OccurrenceStart>, bool) {
    let mut civil = Vec::new();
    let mut more = false;
    for rule in &entry.rules {
        let (found, cut) = expand_rule(entry, rule, within, max);
        civil.extend(found);
        more |= cut;
    }
    // The entry itself is the first of its series (RFC 5545, section 3.8.5.3), unless all of that lies before it.
    let last = entry.rules.iter().filter_map(|rule| rule.until).max();
    if last.is_none_or(|last| entry.start.civil <= last) {
        civil.push(entry.start.civil);
    }
    let start = |civil: DateTime| {
        let moment = CalendarTime { civil, ..entry.start.clone() };
        Some(OccurrenceStart { civil, at: moment.to_zoned()?, length: None })
    };
    let mut starts: Vec<OccurrenceStart> = civil.into_iter().filter_map(start).collect();
    starts.extend(entry.also.iter().filter_map(|further| {
        let moment = align_to_series(&further.start, entry);
        Some(OccurrenceStart { civil: moment.civil, at: moment.to_zoned()?, length: further.length })
    }));
    let mut left_out: BTreeSet<DateTime> = BTreeSet::new();
    for rule in &entry.except_rules {
        let (found, cut) = expand_rule(entry, rule, within, max);
        left_out.extend(found);
        more |= cut;
    }
    starts.retain(|start| !left_out.contains(&start.civil));
    // Of two at once, that with a length of its own.
    starts.sort_by(|a, b| a.at.cmp(&b.at).then(b.length.is_some().cmp(&a.length.is_some())));
    starts.dedup_by(|later, earlier| later.at == earlier.at);
    (starts, more)
}

/// A further occurrence as the series has its times: a day within days, a time on the clock of the series within times.
fn align_to_series(moment: &CalendarTime, entry: &CalendarEntry) -> CalendarTime {
    if entry.start.all_day || moment.all_day {
        let civil = if entry.start.all_day { moment.civil.date().to_datetime(Time::midnight()) } else { moment.civil };
        return CalendarTime { civil, ..entry.start.clone() };
    }
    let here = moment.to_zoned().map(|moment| moment.with_time_zone(entry.start.zone.clone()).datetime());
    here.map_or_else(|| moment.clone(), |civil| CalendarTime { civil, ..entry.start.clone() })
}

/// Returns true if the occurrence that a change applies to exists, which matters only for a stale change.
fn has_changed_occurrence(change: &OccurrenceChange, entry: &CalendarEntry) -> bool {
    let is_there = || {
        let of = original_start(&change.of, &entry.start).to_zoned()?;
        let within = TimeSpan::new(of.clone(), of.checked_add(1.second()).ok()?);
        Some(expand_starts(entry, &within, MAX_FOLLOWED).0.iter().any(|start| start.at == of))
    };
    !change.stale || is_there().unwrap_or(false)
}

fn occurrence_at(entry: &CalendarEntry, start: &OccurrenceStart, recurring: bool) -> Occurrence {
    let onward = |change: &&OccurrenceChange| {
        change.onward && original_start(&change.of, &entry.start).to_zoned().is_some_and(|of| of < start.at)
    };
    let Some(change) = entry.changes.iter().filter(onward).max_by_key(|change| change.of.civil) else {
        let end = start.length.unwrap_or(entry.length).end_from(start.civil, &start.at);
        return build_occurrence(start.at.clone(), end, &entry.start, &entry.details, recurring);
    };
    let civil = change_offset(change, entry).and_then(|by| start.civil.checked_add(by).ok()).unwrap_or(start.civil);
    let begins = civil.to_zoned(start.at.time_zone().clone()).unwrap_or_else(|_| start.at.clone());
    let end = start.length.unwrap_or(change.length).end_from(civil, &begins);
    build_occurrence(begins, end, &change.start, &change.details, recurring)
}

/// When what is changed would have begun: of a day in a series of times, at the time of the series.
pub fn original_start(of: &CalendarTime, series: &CalendarTime) -> CalendarTime {
    match (of.all_day, series.all_day) {
        (true, false) => CalendarTime { civil: of.civil.date().to_datetime(series.civil.time()), ..series.clone() },
        (false, true) => {
            CalendarTime { civil: series_day(of, &series.zone).to_datetime(Time::midnight()), ..series.clone() }
        }
        _ => of.clone(),
    }
}

/// By how much a change moves what it changes, on the wall clock.
fn change_offset(change: &OccurrenceChange, entry: &CalendarEntry) -> Option<SignedDuration> {
    let of = original_start(&change.of, &entry.start);
    let here = change.start.to_zoned()?.with_time_zone(of.zone.clone()).datetime();
    let start = if change.start.all_day || of.all_day { change.start.civil } else { here };
    Some(of.civil.duration_until(start))
}

fn changed_occurrence(change: &OccurrenceChange, recurring: bool) -> Option<Occurrence> {
    let start = change.start.to_zoned()?;
    let end = change.length.end_from(change.start.civil, &start);
    Some(build_occurrence(start, end, &change.start, &change.details, recurring))
}

fn build_occurrence(
    start: Zoned,
    end: Zoned,
    like: &CalendarTime,
    details: &Arc<EntryDetails>,
    recurring: bool,
) -> Occurrence {
    Occurrence { start, end, all_day: like.all_day, recurring, details: Arc::clone(details) }
}

/// The rule is followed on the wall clock, from shortly before `within` until its end.
fn expand_rule(entry: &CalendarEntry, rule: &EntryRecurrence, within: &TimeSpan, max: usize) -> (Vec<DateTime>, bool) {
    let wall = |moment: &Zoned| moment.with_time_zone(entry.start.zone.clone()).datetime();
    // How far before or behind `within` something may begin that is moved or lasts into it.
    let shifts = entry.changes.iter().filter(|change| change.onward).filter_map(|change| change_offset(change, entry));
    let moved = shifts.map(SignedDuration::abs).max();
    let moved = moved.unwrap_or_default();
    let lengths =
        entry.changes.iter().map(|change| change.length).chain(entry.also.iter().filter_map(|one| one.length));
    let length = lengths.chain([entry.length]).map(EntryLength::as_duration).max().unwrap_or_default();
    // A change of the clock may lie in between.
    let day = SignedDuration::from_hours(24);
    let (Ok(last), Ok(earliest)) =
        (wall(&within.end).checked_add(day + moved), wall(&within.start).checked_sub(day + day + moved))
    else {
        return (Vec::new(), false);
    };
    let earliest = earliest.checked_sub(length).unwrap_or(earliest);
    let last = rule.until.map_or(last, |until| last.min(until));
    let first = skip_ahead(entry.start.civil, earliest, &rule.rule);
    if last < first {
        return (Vec::new(), false);
    }
    let most = if first > entry.start.civil { max.saturating_add(1) } else { MAX_FOLLOWED.max(max) };
    let mut starts = follow_rule(&rule.rule, first, Some(last), most).unwrap_or_default();
    let cut = starts.len() == most;
    starts.retain(|start| *start >= earliest);
    let more = starts.len() > max || cut;
    starts.truncate(max);
    (starts, more)
}

/// A later first occurrence from which a rule without a count goes on in the same way, so that the years before need
/// not be gone through. Only where its step is a fixed number of seconds on the wall clock.
fn skip_ahead(first: DateTime, earliest: DateTime, rule: &ICalendarRecurrenceRule) -> DateTime {
    let unit: i64 = match rule.freq {
        ICalendarFrequency::Secondly => 1,
        ICalendarFrequency::Minutely => 60,
        ICalendarFrequency::Hourly => 3600,
        ICalendarFrequency::Daily => 86_400,
        ICalendarFrequency::Weekly => 7 * 86_400,
        ICalendarFrequency::Monthly | ICalendarFrequency::Yearly => return first,
    };
    let step = unit * i64::from(rule.interval.unwrap_or(1).max(1));
    // Of the step in which it begins, BYSETPOS sees but what is left of it: nothing of that step may be wanted.
    let cut = if rule.bysetpos.is_empty() { 0 } else { step };
    let ahead = wall_seconds(earliest).saturating_sub(wall_seconds(first)).saturating_sub(cut);
    if rule.count.is_some() || ahead < step {
        return first;
    }
    // What the entry begins with stands for what the rule leaves open: the day of the week, the time.
    first.checked_add((ahead / step * step).seconds()).unwrap_or(first)
}

/// Seconds since 1970 as if the wall clock were that of Greenwich.
fn wall_seconds(wall: DateTime) -> i64 {
    wall.to_zoned(TimeZone::UTC).map_or(0, |moment| moment.timestamp().as_second())
}

/// At most `max` occurrences on the wall clock, none behind `last`.
///
/// # Errors
/// None but that the rule cannot be followed.
pub fn follow_rule(
    rule: &ICalendarRecurrenceRule,
    first: DateTime,
    last: Option<DateTime>,
    max: usize,
) -> Result<Vec<DateTime>, ()> {
    let rule = ICalendarRecurrenceRule { until: last.and_then(to_partial_date_time), ..rule.clone() };
    let mut event = ICalendarComponent::new(ICalendarComponentType::VEvent);
    event.add_property(ICalendarProperty::Dtstart, to_partial_date_time(first).ok_or(())?);
    event.add_property(ICalendarProperty::Rrule, rule);
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
pub fn to_partial_date_time(wall: DateTime) -> Option<PartialDateTime> {
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
