//! Writing a new entry as an iCalendar file.

use calcard::common::PartialDateTime;
use calcard::icalendar::{
    ICalendar, ICalendarComponent, ICalendarComponentType, ICalendarEntry, ICalendarParameter, ICalendarProperty,
    ICalendarRecurrenceRule, ICalendarValue, ICalendarValueType, Uri,
};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use super::entry::Guest;
use super::ics::{WrittenClock, read_rule};
use super::recurrence::to_partial_date_time;

/// Years for which the rules of a time zone are written into the file of an entry that recurs.
const RECURRING_ZONE_YEARS: i64 = 10;
const YEAR_SECONDS: i64 = 366 * 86_400;

/// An entry to be written.
#[derive(Debug)]
pub struct EntryDraft {
    pub uid: String,
    pub title: String,
    pub start: Zoned,
    pub end: Zoned,
    pub all_day: bool,
    pub location: Option<String>,
    pub description: Option<String>,
    pub category: Option<String>,
    pub guests: Vec<Guest>,
    pub rule: Option<ICalendarRecurrenceRule>,
}

impl EntryDraft {
    /// The file's text. `now` is when it was decided on; the same draft always gives the same text.
    pub fn to_ics(&self, now: Timestamp) -> String {
        let mut root = ICalendarComponent::new(ICalendarComponentType::VCalendar);
        root.add_property(ICalendarProperty::Version, "2.0");
        root.add_property(ICalendarProperty::Prodid, "-//Kairo//tool-runner//EN");
        root.component_ids.push(1);
        let mut file = ICalendar { components: vec![root, self.to_vevent(now)] };
        if let Some(zone) = self.zone_name() {
            let from = self.start.timestamp().as_second();
            let years = if self.rule.is_some() { RECURRING_ZONE_YEARS } else { 1 };
            file.add_timezone(&zone, from, from + years * YEAR_SECONDS);
        }
        file.to_string()
    }

    /// The name of the zone that times are written in; none for days, and for UTC, which needs no rules.
    fn zone_name(&self) -> Option<String> {
        let named = |zone: &TimeZone| zone.iana_name().filter(|name| *name != "UTC").map(str::to_owned);
        named(self.start.time_zone()).filter(|_| !self.all_day)
    }

    fn to_vevent(&self, now: Timestamp) -> ICalendarComponent {
        let mut event = ICalendarComponent::new(ICalendarComponentType::VEvent);
        event.add_uid(&self.uid);
        event.add_dtstamp(PartialDateTime::from_utc_timestamp(now.as_second()));
        event.entries.extend(self.time_property(ICalendarProperty::Dtstart, &self.start));
        event.entries.extend(self.time_property(ICalendarProperty::Dtend, &self.end));
        event.add_property(ICalendarProperty::Summary, self.title.as_str());
        for (property, text) in [
            (ICalendarProperty::Location, &self.location),
            (ICalendarProperty::Description, &self.description),
            (ICalendarProperty::Categories, &self.category),
        ] {
            if let Some(text) = text {
                event.add_property(property, text.as_str());
            }
        }
        if let Some(rule) = &self.rule {
            event.add_property(ICalendarProperty::Rrule, rule.clone());
        }
        event.entries.extend(self.guests.iter().map(attendee_property));
        event
    }

    fn time_property(&self, property: ICalendarProperty, moment: &Zoned) -> Option<ICalendarEntry> {
        let entry = ICalendarEntry::new(property);
        if self.all_day {
            let day = to_partial_date_time(moment.datetime())?;
            let day = PartialDateTime { hour: None, minute: None, second: None, ..day };
            return Some(entry.with_param(ICalendarParameter::value(ICalendarValueType::Date)).with_value(day));
        }
        Some(match self.zone_name() {
            Some(zone) => {
                entry.with_param(ICalendarParameter::tzid(zone)).with_value(to_partial_date_time(moment.datetime())?)
            }
            None => entry.with_value(PartialDateTime::from_utc_timestamp(moment.timestamp().as_second())),
        })
    }
}

fn attendee_property(guest: &Guest) -> ICalendarEntry {
    let address = match &guest.email {
        Some(email) => format!("mailto:{email}"),
        // What calendars write for somebody without an address, which the property cannot do without.
        None => "invalid:nomail".to_owned(),
    };
    let name = guest.name.clone().map(ICalendarParameter::cn);
    ICalendarEntry::new(ICalendarProperty::Attendee)
        .with_param_opt(name)
        .with_value(ICalendarValue::Uri(Uri::Location(address)))
}

/// Reads a rule as RFC 5545 writes it, or one of a few words. None when it is neither.
pub fn parse_rule(text: &str) -> Option<ICalendarRecurrenceRule> {
    let text = text.trim();
    let rule = match text.to_lowercase().as_str() {
        "daily" | "every day" => "FREQ=DAILY".to_owned(),
        "weekdays" | "every weekday" => "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR".to_owned(),
        "weekly" | "every week" => "FREQ=WEEKLY".to_owned(),
        "monthly" | "every month" => "FREQ=MONTHLY".to_owned(),
        "yearly" | "every year" => "FREQ=YEARLY".to_owned(),
        _ => text.to_uppercase().trim_start_matches("RRULE:").to_owned(),
    };
    let allowed = |c: char| c.is_ascii_alphanumeric() || "=;,+-:".contains(c);
    let reading = read_rule(&rule).ok().filter(|reading| reading.notes.is_empty())?;
    // A semicolon at the end is a sign that something was cut off.
    if !rule.chars().all(allowed) || rule.ends_with(';') {
        return None;
    }
    let until = match reading.until {
        None => None,
        Some(until) if until.is_date => {
            let day = to_partial_date_time(until.civil)?;
            Some(PartialDateTime { hour: None, minute: None, second: None, ..day })
        }
        Some(until) if until.clock == WrittenClock::Wall => Some(to_partial_date_time(until.civil)?),
        Some(until) => {
            let moment = until.civil.to_zoned(TimeZone::fixed(until.clock.offset()?)).ok()?;
            Some(PartialDateTime::from_utc_timestamp(moment.timestamp().as_second()))
        }
    };
    Some(ICalendarRecurrenceRule { until, ..reading.rule })
}

/// The time on the wall that `text` names, should it name one without an offset.
pub fn parse_wall_time(text: &str) -> Option<DateTime> {
    if text.parse::<Timestamp>().is_ok() { None } else { text.parse().ok() }
}
