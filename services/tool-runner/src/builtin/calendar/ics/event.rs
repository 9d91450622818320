//! One `VEVENT` as an entry, or as the change of an occurrence.

use std::sync::Arc;

use jiff::ToSpan as _;
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;

use super::IcsCalendar;
use super::components::{ComponentList, IcsComponent, IcsProperty};
use super::rules;
use super::series::EventVersion;
use super::values::{self, PeriodEnd, WrittenClock, WrittenTime};
use super::zones::ZoneCache;
use crate::builtin::calendar::entry::{
    CalendarEntry, CalendarTime, EntryDetails, EntryLength, EntryRecurrence, ExtraOccurrence, Guest,
};
use crate::builtin::calendar::recurrence;

/// Title of what has none.
const UNTITLED: &str = "(untitled)";

/// Reads the events of a file.
pub struct EventReader<'a> {
    lines: &'a ComponentList,
    name: &'a str,
    zone: &'a TimeZone,
    zones: ZoneCache<'a>,
    pub calendar: &'a mut IcsCalendar,
}

/// The context shared by all properties of an event.
struct IcsEventContext {
    title: String,
    /// The zone that the calendar names for times without one (`X-WR-TIMEZONE`), and for recurring ones of Greenwich.
    calendar_zone: Option<TimeZone>,
    /// True for a floating event, which is tied to no time zone.
    floats: bool,
}

impl<'a> EventReader<'a> {
    pub fn new(lines: &'a ComponentList, name: &'a str, zone: &'a TimeZone, calendar: &'a mut IcsCalendar) -> Self {
        Self { lines, name, zone, zones: ZoneCache::new(lines), calendar }
    }

    /// None when it says nothing that can be shown, which a note says then.
    pub fn read_version(&mut self, event: &IcsComponent) -> Option<EventVersion> {
        let title = event.text("SUMMARY").unwrap_or_else(|| UNTITLED.to_owned());
        let calendar_zone = self.calendar_zone(event);
        let floats = calendar_zone.is_none() && event.first_property("DTSTART").is_some_and(is_floating);
        let about = IcsEventContext { title, calendar_zone, floats };
        for name in ["DTSTART", "DTEND", "DURATION", "RECURRENCE-ID"] {
            if event.properties_named(name).nth(1).is_some() {
                self.add_note(&about, name, "it is there more than once; the first one counts");
            }
        }
        let of = match event.first_property("RECURRENCE-ID") {
            Some(property) => Some((self.read_time(&about, property, None)?, property.parameter("RANGE"))),
            None => None,
        };
        let start = match event.first_property("DTSTART") {
            Some(property) => self.read_time(&about, property, None)?,
            None if of.is_some() => of.clone()?.0,
            None => {
                self.add_note(&about, "DTSTART", "it is missing, so the entry is left out");
                return None;
            }
        };
        let of = match of {
            Some((_, range)) => {
                let property = event.first_property("RECURRENCE-ID")?;
                let onward = range.is_some_and(|range| range.eq_ignore_ascii_case("THISANDFUTURE"));
                if let Some(range) = range.filter(|_| !onward) {
                    self.add_note(
                        &about,
                        "RECURRENCE-ID",
                        &format!("RANGE={range} is not understood; only this one is changed"),
                    );
                }
                Some((self.read_time(&about, property, Some(&start))?, onward))
            }
            None => None,
        };
        let (start, length) = self.read_length(&about, event, start)?;
        let entry = self.read_entry(&about, event, start, length);
        Some(EventVersion {
            sequence: event.text("SEQUENCE").and_then(|text| text.parse().ok()).unwrap_or(0),
            stamp: event
                .first_property("DTSTAMP")
                .and_then(|property| values::parse_written_time(&property.value))
                .map(|stamp| stamp.civil),
            of,
            entry,
        })
    }

    fn add_note(&mut self, about: &IcsEventContext, property: &str, what: &str) {
        self.calendar.notes.add(&about.title, property, what);
    }

    /// The calendar around an event.
    fn enclosing_calendar(&self, event: &IcsComponent) -> Option<&'a IcsComponent> {
        self.lines.components.get(event.parent?).filter(|component| component.kind == "VCALENDAR")
    }

    fn calendar_zone(&mut self, event: &IcsComponent) -> Option<TimeZone> {
        let name = self.enclosing_calendar(event)?.text("X-WR-TIMEZONE")?;
        let zone = self.zones.find(&name);
        if zone.is_none() {
            self.calendar.unknown_zones.insert(name);
        }
        zone
    }

    fn read_entry(
        &mut self,
        about: &IcsEventContext,
        event: &IcsComponent,
        start: CalendarTime,
        length: EntryLength,
    ) -> CalendarEntry {
        CalendarEntry {
            details: Arc::new(self.read_details(about, event)),
            rules: self.read_rules(about, event, "RRULE", &start),
            except_rules: self.read_rules(about, event, "EXRULE", &start),
            also: self.read_extra_occurrences(about, event, &start),
            except: self.read_exceptions(about, event, &start),
            changes: Vec::new(),
            start,
            length,
        }
    }

    fn read_rules(
        &mut self,
        about: &IcsEventContext,
        event: &IcsComponent,
        name: &str,
        start: &CalendarTime,
    ) -> Vec<EntryRecurrence> {
        let mut found = Vec::new();
        for property in event.properties_named(name) {
            match rules::read(&property.value) {
                Ok(reading) if recurrence::is_expandable(&reading.rule, start.civil) => {
                    reading.notes.iter().for_each(|note| self.add_note(about, name, note));
                    let until = reading.until.and_then(|until| rule_end(until, start, about.floats));
                    found.push(EntryRecurrence { rule: reading.rule, until });
                }
                Ok(_) => self.reject_rule(about, property, "it gives too many occurrences or contradicts itself"),
                Err(why) => self.reject_rule(about, property, &why),
            }
        }
        found
    }

    fn reject_rule(&mut self, about: &IcsEventContext, property: &IcsProperty, why: &str) {
        self.calendar.broken = true;
        let what = match property.name.as_str() {
            "RRULE" => "it is not followed, and occurrences by it are missing",
            _ => "it is not followed, and what it excludes is shown",
        };
        self.add_note(about, &property.name, &format!("{:?}: {why}; {what}", property.value.trim()));
    }

    fn read_extra_occurrences(
        &mut self,
        about: &IcsEventContext,
        event: &IcsComponent,
        start: &CalendarTime,
    ) -> Vec<ExtraOccurrence> {
        let mut further = Vec::new();
        for property in event.properties_named("RDATE") {
            for text in self.split_list(about, property) {
                let period = values::parse_period(text);
                let Some(stamp) = period.map(|(stamp, _)| stamp).or_else(|| values::parse_written_time(text)) else {
                    self.reject_time(about, property, text);
                    continue;
                };
                let begins = self.resolve_written_time(about, property, stamp, Some(start));
                let length = period.map(|(_, end)| match end {
                    PeriodEnd::After(length) => EntryLength::new(length.days, length.seconds),
                    PeriodEnd::At(end) => length_between(
                        &begins,
                        &self.resolve_written_time(about, property, end, Some(start)),
                        about.floats,
                    ),
                });
                if length == Some(None) {
                    self.add_note(
                        about,
                        "RDATE",
                        &format!("{text:?} ends before it begins; the length of the entry is taken"),
                    );
                }
                let length = length.flatten().map(|length| length.with_wall_clock(about.floats));
                further.push(ExtraOccurrence { start: begins, length });
            }
        }
        further
    }

    fn read_exceptions(
        &mut self,
        about: &IcsEventContext,
        event: &IcsComponent,
        start: &CalendarTime,
    ) -> Vec<CalendarTime> {
        let mut except = Vec::new();
        for property in event.properties_named("EXDATE") {
            for text in self.split_list(about, property) {
                match values::parse_written_time(text) {
                    Some(stamp) => except.push(self.resolve_written_time(about, property, stamp, Some(start))),
                    None => self.reject_time(about, property, text),
                }
            }
        }
        except
    }

    fn split_list<'p>(&mut self, about: &IcsEventContext, property: &'p IcsProperty) -> Vec<&'p str> {
        let list: Vec<&str> = property.value.split(',').map(str::trim).filter(|text| !text.is_empty()).collect();
        if list.is_empty() {
            self.add_note(about, &property.name, "it is empty");
        }
        list
    }

    fn reject_time(&mut self, about: &IcsEventContext, property: &IcsProperty, text: &str) {
        self.calendar.broken = true;
        self.add_note(about, &property.name, &format!("{text:?} is no date or time and is passed over"));
    }

    /// A property that holds one time. Times without a zone are in that of `like`.
    fn read_time(
        &mut self,
        about: &IcsEventContext,
        property: &IcsProperty,
        like: Option<&CalendarTime>,
    ) -> Option<CalendarTime> {
        let Some(stamp) = values::parse_written_time(&property.value) else {
            let what = format!("{:?} is no date or time, so the entry is left out", property.value.trim());
            self.add_note(about, &property.name, &what);
            return None;
        };
        Some(self.resolve_written_time(about, property, stamp, like))
    }

    fn resolve_written_time(
        &mut self,
        about: &IcsEventContext,
        property: &IcsProperty,
        stamp: WrittenTime,
        like: Option<&CalendarTime>,
    ) -> CalendarTime {
        let said_date = property.parameter("VALUE").is_some_and(|kind| kind.eq_ignore_ascii_case("DATE"));
        let all_day = stamp.is_date || (said_date && stamp.civil.time() == Time::midnight());
        if all_day {
            return CalendarTime { civil: stamp.civil, zone: self.zone.clone(), all_day };
        }
        let here =
            like.filter(|like| !like.all_day).map(|like| like.zone.clone()).or_else(|| about.calendar_zone.clone());
        let here = here.unwrap_or_else(|| self.zone.clone());
        match (stamp.clock, property.parameter("TZID")) {
            (WrittenClock::East(0), _) => {
                let greenwich = CalendarTime { civil: stamp.civil, zone: TimeZone::UTC, all_day };
                about.calendar_zone.as_ref().and_then(|zone| convert_to_zone(&greenwich, zone)).unwrap_or(greenwich)
            }
            (WrittenClock::East(_), _) => {
                let zone = stamp.clock.offset().map_or(here, TimeZone::fixed);
                CalendarTime { civil: stamp.civil, zone, all_day }
            }
            (WrittenClock::Wall, Some(name)) if !name.is_empty() => {
                let zone = self.zones.find(name).unwrap_or_else(|| {
                    self.calendar.unknown_zones.insert(name.to_owned());
                    here
                });
                CalendarTime { civil: stamp.civil, zone, all_day }
            }
            (WrittenClock::Wall, _) => CalendarTime { civil: stamp.civil, zone: here, all_day },
        }
    }

    /// The length, and the start: what ends before it begins is taken the other way round.
    fn read_length(
        &mut self,
        about: &IcsEventContext,
        event: &IcsComponent,
        start: CalendarTime,
    ) -> Option<(CalendarTime, EntryLength)> {
        let default = EntryLength::new(i64::from(start.all_day), 0)?;
        let too_long = |reader: &mut Self, name: &str| {
            reader.add_note(about, name, "it makes the entry longer than a hundred years, so it is left out");
            None
        };
        if let Some(property) = event.first_property("DTEND") {
            let end = self.read_time(about, property, Some(&start))?;
            if start.all_day != end.all_day {
                self.add_note(
                    about,
                    "DTEND",
                    "one of DTSTART and DTEND is a date, the other a time; DTSTART says which it is",
                );
            }
            let (start, end) = if ends_before(&start, &end, about.floats) {
                self.add_note(about, "DTEND", "it is before DTSTART; the two are taken the other way round");
                (CalendarTime { civil: civil_on_clock_of(&end, &start), ..start.clone() }, start)
            } else {
                (start, end)
            };
            let length = length_between(&start, &end, about.floats);
            return length
                .map(|length| (start, length.with_wall_clock(about.floats)))
                .or_else(|| too_long(self, "DTEND"));
        }
        let Some(property) = event.first_property("DURATION") else { return Some((start, default)) };
        let Some(length) = values::parse_duration(&property.value) else {
            self.calendar.broken = true;
            self.add_note(about, "DURATION", &format!("{:?} is no duration and is passed over", property.value.trim()));
            return Some((start, default));
        };
        let (mut days, mut seconds) = (length.days.abs(), length.seconds.abs());
        if start.all_day {
            days += (seconds + 86_399) / 86_400;
            seconds = 0;
        }
        let backwards = length.days < 0 || length.seconds < 0;
        let Some(length) = EntryLength::new(days, seconds) else { return too_long(self, "DURATION") };
        let length = length.with_wall_clock(about.floats);
        if !backwards {
            return Some((start, if needs_default_day(days, seconds, default) { default } else { length }));
        }
        self.add_note(about, "DURATION", "it is negative; the entry is taken to end at DTSTART");
        let begins = start.civil.checked_sub(days.days().seconds(seconds)).ok()?;
        Some((CalendarTime { civil: begins, ..start }, length))
    }

    fn read_details(&self, about: &IcsEventContext, event: &IcsComponent) -> EntryDetails {
        let calendar = self.enclosing_calendar(event);
        let name = calendar.and_then(|calendar| calendar.text("NAME").or_else(|| calendar.text("X-WR-CALNAME")));
        let status = event.text("STATUS").unwrap_or_default().to_ascii_uppercase();
        let withdrawn = calendar.and_then(|calendar| calendar.text("METHOD")).is_some_and(|method| method == "CANCEL");
        let canceled = withdrawn || status == "CANCELLED" || status == "CANCELED";
        let transparent =
            event.text("TRANSP").is_some_and(|transparency| transparency.eq_ignore_ascii_case("TRANSPARENT"));
        EntryDetails {
            uid: event.text("UID").unwrap_or_default(),
            title: about.title.clone(),
            location: event.text("LOCATION"),
            description: event.text("DESCRIPTION"),
            organizer: event.first_property("ORGANIZER").map(parse_guest),
            guests: event.properties_named("ATTENDEE").map(parse_guest).collect(),
            calendar: Some(name.unwrap_or_else(|| self.name.to_owned())),
            tentative: status == "TENTATIVE",
            canceled,
            busy: !canceled && !transparent,
        }
    }
}

/// Days that take no time take the day they begin on.
fn needs_default_day(days: i64, seconds: i64, default: EntryLength) -> bool {
    days == 0 && seconds == 0 && default != EntryLength::default()
}

fn convert_to_zone(moment: &CalendarTime, zone: &TimeZone) -> Option<CalendarTime> {
    let civil = moment.to_zoned()?.with_time_zone(zone.clone()).datetime();
    Some(CalendarTime { civil, zone: zone.clone(), all_day: false })
}

/// A moment on the clock of another.
fn civil_on_clock_of(moment: &CalendarTime, like: &CalendarTime) -> DateTime {
    if moment.all_day || like.all_day {
        return moment.civil;
    }
    convert_to_zone(moment, &like.zone).map_or(moment.civil, |moment| moment.civil)
}

/// Returns true for a floating time: not a date, without `TZID` and without an offset.
fn is_floating(property: &IcsProperty) -> bool {
    let of_the_wall = |stamp: WrittenTime| !stamp.is_date && stamp.clock == WrittenClock::Wall;
    property.parameter("TZID").is_none() && values::parse_written_time(&property.value).is_some_and(of_the_wall)
}

fn ends_before(start: &CalendarTime, end: &CalendarTime, floats: bool) -> bool {
    if start.all_day || end.all_day || (floats && start.zone == end.zone) {
        return if start.all_day { end.civil.date() < start.civil.date() } else { end.civil < start.civil };
    }
    // In an hour that the clock leaves out, the later of two times may be the earlier moment.
    let is_before = matches!((start.to_zoned(), end.to_zoned()), (Some(start), Some(end)) if end < start);
    is_before && (start.zone != end.zone || end.civil < start.civil)
}

/// The length of what is given by start and end: of days whole days, of anything else the seconds that pass.
fn length_between(start: &CalendarTime, end: &CalendarTime, floats: bool) -> Option<EntryLength> {
    if start.all_day {
        let end_day =
            if end.civil.time() == Time::midnight() { end.civil.date() } else { end.civil.date().tomorrow().ok()? };
        let days = start.civil.date().until(end_day).ok()?.get_days();
        // Some programs end an entry of one day on that day.
        return EntryLength::new(i64::from(days).max(1), 0);
    }
    let end = CalendarTime { zone: if end.all_day { start.zone.clone() } else { end.zone.clone() }, ..end.clone() };
    if floats && end.zone == start.zone {
        return EntryLength::new(0, start.civil.duration_until(end.civil).as_secs());
    }
    let seconds = start.to_zoned()?.timestamp().until(end.to_zoned()?.timestamp()).ok()?.get_seconds();
    EntryLength::new(0, seconds.max(0))
}

/// The last moment of a rule on the wall clock of the entry; of a date, or for days, the whole day.
fn rule_end(until: WrittenTime, start: &CalendarTime, floats: bool) -> Option<DateTime> {
    if until.is_date || start.all_day {
        return Some(until.civil.date().to_datetime(Time::constant(23, 59, 59, 0)));
    }
    match until.clock {
        WrittenClock::Wall => Some(until.civil),
        // An entry on no particular clock has its last time on that, too, whatever is written behind it.
        WrittenClock::East(_) if floats => Some(until.civil),
        WrittenClock::East(_) => {
            let zone = TimeZone::fixed(until.clock.offset()?);
            let moment = CalendarTime { civil: until.civil, zone, all_day: false };
            Some(convert_to_zone(&moment, &start.zone)?.civil)
        }
    }
}

fn parse_guest(property: &IcsProperty) -> Guest {
    let address = property.value.trim();
    let bare = address.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("mailto:")).and_then(|_| address.get(7..));
    let own = bare.unwrap_or(address).trim();
    let email =
        if own.contains('@') { Some(own) } else { property.parameter("EMAIL").filter(|text| text.contains('@')) };
    let name = property.parameter("CN").map(str::trim).filter(|name| !name.is_empty());
    Guest { name: name.map(str::to_owned), email: email.map(str::to_owned) }
}
