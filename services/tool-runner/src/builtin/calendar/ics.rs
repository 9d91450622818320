//! Reading iCalendar files (RFC 5545), as Outlook, Google and others really write them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use calcard::common::PartialDateTime;
use calcard::icalendar::{
    ICalendar, ICalendarComponent, ICalendarComponentType, ICalendarEntry, ICalendarParameterName, ICalendarProperty,
    ICalendarRecurrenceRule, ICalendarStatus, ICalendarTransparency, ICalendarValue,
};
use calcard::{Entry as Item, Parser};
use jiff::civil::{DateTime, Time};
use jiff::tz::{Offset, TimeZone};

use super::entry::{Change, Details, Entry, Guest, Length, Moment};
use super::{expand, zone};

/// What a file holds.
#[derive(Debug, Default)]
pub struct Calendar {
    pub entries: Vec<Entry>,
    /// Whether part of the file made no sense and was left out.
    pub broken: bool,
    /// Names of zones that mean nothing here; the default was taken instead.
    pub unknown_zones: BTreeSet<String>,
}

/// Reads a file, as long as `go_on` says so. `name` is that of the calendar when the file gives none, `zone` where dates
/// without one are.
pub fn read(text: &str, name: &str, zone: &TimeZone, go_on: &dyn Fn() -> bool) -> Calendar {
    let mut calendar = Calendar::default();
    let mut parser = Parser::new(text);
    let mut files = 0;
    loop {
        match parser.entry() {
            Item::Eof => break,
            Item::ICalendar(file) => {
                files += 1;
                Reader {
                    go_on,
                    file: &file,
                    name: calendar_name(&file).unwrap_or(name),
                    zone,
                    calendar: &mut calendar,
                }
                .read();
            }
            _ => calendar.broken = true,
        }
    }
    calendar.broken |= files == 0;
    calendar
}

fn calendar_name(file: &ICalendar) -> Option<&str> {
    let named = |entry: &&ICalendarEntry| match &entry.name {
        ICalendarProperty::Name => true,
        ICalendarProperty::Other(name) => name.eq_ignore_ascii_case("X-WR-CALNAME"),
        _ => false,
    };
    file.components.first()?.entries.iter().find(named)?.values.first()?.as_text()
}

struct Reader<'a> {
    file: &'a ICalendar,
    name: &'a str,
    zone: &'a TimeZone,
    go_on: &'a dyn Fn() -> bool,
    calendar: &'a mut Calendar,
}

impl Reader<'_> {
    fn read(&mut self) {
        let mut changes: BTreeMap<String, Vec<Change>> = BTreeMap::new();
        let first = self.calendar.entries.len();
        let is_event = |part: &&ICalendarComponent| part.component_type == ICalendarComponentType::VEvent;
        // A file made to be slow has many entries whose rules never come to anything.
        for event in self.file.components.iter().filter(is_event).take_while(|_| (self.go_on)()) {
            let Some(entry) = self.entry(event) else {
                self.calendar.broken = true;
                continue;
            };
            match self.change(event, &entry) {
                Some(change) => changes.entry(entry.details.uid.clone()).or_default().push(change),
                None => self.calendar.entries.push(entry),
            }
        }
        for entry in self.calendar.entries.iter_mut().skip(first) {
            entry.changes = changes.remove(&entry.details.uid).unwrap_or_default();
        }
        // An invitation to one occurrence comes without the entry that it belongs to.
        let alone = changes.into_values().flatten().filter(|change| !change.details.canceled);
        self.calendar.entries.extend(alone.map(|change| Entry {
            start: change.start,
            length: change.length,
            details: change.details,
            rule: None,
            also: Vec::new(),
            except: Vec::new(),
            changes: Vec::new(),
        }));
    }

    fn entry(&mut self, event: &ICalendarComponent) -> Option<Entry> {
        let start = self.moment(event.property(&ICalendarProperty::Dtstart)?)?;
        let length = self.length(event, &start)?;
        let entry = Entry {
            length,
            details: Arc::new(self.details(event)),
            rule: recurrence(event).cloned(),
            also: self.moments(event, &ICalendarProperty::Rdate),
            except: self.moments(event, &ICalendarProperty::Exdate),
            changes: Vec::new(),
            start,
        };
        (!event.has_property(&ICalendarProperty::Rrule) || expand::is_valid(&entry)).then_some(entry)
    }

    fn change(&mut self, event: &ICalendarComponent, entry: &Entry) -> Option<Change> {
        let of = event.property(&ICalendarProperty::RecurrenceId)?;
        Some(Change {
            of: self.moment(of)?,
            onward: of.has_parameter(&ICalendarParameterName::Range),
            start: entry.start.clone(),
            length: entry.length,
            details: Arc::clone(&entry.details),
        })
    }

    fn length(&mut self, event: &ICalendarComponent, start: &Moment) -> Option<Length> {
        if let Some(end) = event.property(&ICalendarProperty::Dtend) {
            let end = self.moment(end)?;
            if start.all_day {
                let days = start.civil.date().until(end.civil.date()).ok()?.get_days();
                // Some programs end an entry of one day on that day.
                return Length::new(i64::from(days).max(1), 0);
            }
            let seconds = start.zoned()?.timestamp().until(end.zoned()?.timestamp()).ok()?.get_seconds();
            return Length::new(0, seconds.max(0));
        }
        match first(event, &ICalendarProperty::Duration) {
            Some(ICalendarValue::Duration(length)) if !length.neg => Length::new(
                i64::from(length.weeks) * 7 + i64::from(length.days),
                i64::from(length.hours) * 3600 + i64::from(length.minutes) * 60 + i64::from(length.seconds),
            ),
            _ => Length::new(i64::from(start.all_day), 0),
        }
    }

    fn moments(&mut self, event: &ICalendarComponent, property: &ICalendarProperty) -> Vec<Moment> {
        let mut moments = Vec::new();
        for entry in event.properties(property) {
            for value in entry.values.iter().filter_map(ICalendarValue::as_partial_date_time) {
                match self.read_moment(value, entry.tz_id()) {
                    Some(moment) => moments.push(moment),
                    None => self.calendar.broken = true,
                }
            }
        }
        moments
    }

    fn moment(&mut self, entry: &ICalendarEntry) -> Option<Moment> {
        self.read_moment(entry.values.first()?.as_partial_date_time()?, entry.tz_id())
    }

    fn read_moment(&mut self, value: &PartialDateTime, zone: Option<&str>) -> Option<Moment> {
        Some(Moment { civil: civil(value)?, zone: self.zone_of(value, zone)?, all_day: value.hour.is_none() })
    }

    fn zone_of(&mut self, value: &PartialDateTime, name: Option<&str>) -> Option<TimeZone> {
        if let Some(hours) = value.tz_hour {
            let seconds = i32::from(hours) * 3600 + i32::from(value.tz_minute.unwrap_or(0)) * 60;
            let offset = Offset::from_seconds(if value.tz_minus { -seconds } else { seconds }).ok()?;
            return Some(if seconds == 0 { TimeZone::UTC } else { TimeZone::fixed(offset) });
        }
        let Some(name) = name.filter(|_| value.hour.is_some()) else {
            return Some(self.zone.clone());
        };
        Some(zone::resolve(name, self.file).unwrap_or_else(|| {
            self.calendar.unknown_zones.insert(name.to_owned());
            self.zone.clone()
        }))
    }

    fn details(&self, event: &ICalendarComponent) -> Details {
        let text = |property| {
            let text = first(event, &property).and_then(ICalendarValue::as_text).map(str::trim);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let status = event.status();
        let canceled = matches!(status, Some(ICalendarStatus::Cancelled));
        Details {
            uid: event.uid().unwrap_or_default().to_owned(),
            title: text(ICalendarProperty::Summary).unwrap_or_else(|| "(untitled)".to_owned()),
            location: text(ICalendarProperty::Location),
            description: text(ICalendarProperty::Description),
            organizer: event.property(&ICalendarProperty::Organizer).map(guest),
            guests: event.properties(&ICalendarProperty::Attendee).map(guest).collect(),
            calendar: Some(self.name.to_owned()),
            tentative: matches!(status, Some(ICalendarStatus::Tentative)),
            canceled,
            busy: !canceled && !matches!(event.transparency(), Some(ICalendarTransparency::Transparent)),
        }
    }
}

fn guest(entry: &ICalendarEntry) -> Guest {
    let name = entry.parameter(&ICalendarParameterName::Cn).and_then(|name| name.as_text());
    let email = entry.calendar_address().filter(|address| address.contains('@'));
    Guest { name: name.map(str::to_owned), email: email.map(str::to_owned) }
}

/// The first value of a property.
pub fn first<'a>(part: &'a ICalendarComponent, property: &ICalendarProperty) -> Option<&'a ICalendarValue> {
    part.property(property)?.values.first()
}

/// The rule by which something recurs.
pub fn recurrence(part: &ICalendarComponent) -> Option<&ICalendarRecurrenceRule> {
    match first(part, &ICalendarProperty::Rrule)? {
        ICalendarValue::RecurrenceRule(rule) => Some(rule),
        _ => None,
    }
}

/// None for a date that the calendar does not have.
pub fn civil(value: &PartialDateTime) -> Option<DateTime> {
    let small = |number: Option<u8>| i8::try_from(number.unwrap_or(0)).ok();
    let date = jiff::civil::Date::new(i16::try_from(value.year?).ok()?, small(value.month)?, small(value.day)?).ok()?;
    // A leap second is the last one of its minute here.
    let time = Time::new(small(value.hour)?, small(value.minute)?, small(value.second)?.min(59), 0).ok()?;
    Some(date.to_datetime(time))
}
