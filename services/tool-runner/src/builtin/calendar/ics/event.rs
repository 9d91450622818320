//! One `VEVENT` as an entry, or as the change of an occurrence.

use std::sync::Arc;

use jiff::ToSpan as _;
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;

use super::Calendar;
use super::lines::{Component, Lines, Property};
use super::rules;
use super::series::Version;
use super::values::{self, Clock, PeriodEnd, Stamp};
use super::zones::Zones;
use crate::builtin::calendar::entry::{Details, Entry, Further, Guest, Length, Moment, Rule};
use crate::builtin::calendar::expand;

/// Title of what has none.
const UNTITLED: &str = "(untitled)";

/// Reads the events of a file.
pub struct Reader<'a> {
    lines: &'a Lines,
    name: &'a str,
    zone: &'a TimeZone,
    zones: Zones<'a>,
    pub calendar: &'a mut Calendar,
}

/// The context shared by all properties of an event.
struct About {
    title: String,
    /// The zone that the calendar names for times without one (`X-WR-TIMEZONE`), and for recurring ones of Greenwich.
    calendar_zone: Option<TimeZone>,
    /// True for a floating event, which is tied to no time zone.
    floats: bool,
}

impl<'a> Reader<'a> {
    pub fn new(lines: &'a Lines, name: &'a str, zone: &'a TimeZone, calendar: &'a mut Calendar) -> Self {
        Self { lines, name, zone, zones: Zones::new(lines), calendar }
    }

    /// None when it says nothing that can be shown, which a note says then.
    pub fn version(&mut self, event: &Component) -> Option<Version> {
        let title = event.text("SUMMARY").unwrap_or_else(|| UNTITLED.to_owned());
        let calendar_zone = self.calendar_zone(event);
        let floats = calendar_zone.is_none() && event.property("DTSTART").is_some_and(floats);
        let about = About { title, calendar_zone, floats };
        for name in ["DTSTART", "DTEND", "DURATION", "RECURRENCE-ID"] {
            if event.all(name).nth(1).is_some() {
                self.note(&about, name, "it is there more than once; the first one counts");
            }
        }
        let of = match event.property("RECURRENCE-ID") {
            Some(property) => Some((self.moment(&about, property, None)?, property.parameter("RANGE"))),
            None => None,
        };
        let start = match event.property("DTSTART") {
            Some(property) => self.moment(&about, property, None)?,
            None if of.is_some() => of.clone()?.0,
            None => {
                self.note(&about, "DTSTART", "it is missing, so the entry is left out");
                return None;
            }
        };
        let of = match of {
            Some((_, range)) => {
                let property = event.property("RECURRENCE-ID")?;
                let onward = range.is_some_and(|range| range.eq_ignore_ascii_case("THISANDFUTURE"));
                if let Some(range) = range.filter(|_| !onward) {
                    self.note(
                        &about,
                        "RECURRENCE-ID",
                        &format!("RANGE={range} is not understood; only this one is changed"),
                    );
                }
                Some((self.moment(&about, property, Some(&start))?, onward))
            }
            None => None,
        };
        let (start, length) = self.length(&about, event, start)?;
        let entry = self.entry(&about, event, start, length);
        Some(Version {
            sequence: event.text("SEQUENCE").and_then(|text| text.parse().ok()).unwrap_or(0),
            stamp: event
                .property("DTSTAMP")
                .and_then(|property| values::stamp(&property.value))
                .map(|stamp| stamp.civil),
            of,
            entry,
        })
    }

    fn note(&mut self, about: &About, property: &str, what: &str) {
        self.calendar.notes.add(&about.title, property, what);
    }

    /// The calendar around an event.
    fn around(&self, event: &Component) -> Option<&'a Component> {
        self.lines.components.get(event.parent?).filter(|component| component.kind == "VCALENDAR")
    }

    fn calendar_zone(&mut self, event: &Component) -> Option<TimeZone> {
        let name = self.around(event)?.text("X-WR-TIMEZONE")?;
        let zone = self.zones.find(&name);
        if zone.is_none() {
            self.calendar.unknown_zones.insert(name);
        }
        zone
    }

    fn entry(&mut self, about: &About, event: &Component, start: Moment, length: Length) -> Entry {
        Entry {
            details: Arc::new(self.details(about, event)),
            rules: self.rules(about, event, "RRULE", &start),
            except_rules: self.rules(about, event, "EXRULE", &start),
            also: self.further(about, event, &start),
            except: self.except(about, event, &start),
            changes: Vec::new(),
            start,
            length,
        }
    }

    fn rules(&mut self, about: &About, event: &Component, name: &str, start: &Moment) -> Vec<Rule> {
        let mut found = Vec::new();
        for property in event.all(name) {
            match rules::read(&property.value) {
                Ok(reading) if expand::is_valid(&reading.rule, start.civil) => {
                    reading.notes.iter().for_each(|note| self.note(about, name, note));
                    let until = reading.until.and_then(|until| last(until, start, about.floats));
                    found.push(Rule { rule: reading.rule, until });
                }
                Ok(_) => self.not_followed(about, property, "it gives too many occurrences or contradicts itself"),
                Err(why) => self.not_followed(about, property, &why),
            }
        }
        found
    }

    fn not_followed(&mut self, about: &About, property: &Property, why: &str) {
        self.calendar.broken = true;
        let what = match property.name.as_str() {
            "RRULE" => "it is not followed, and occurrences by it are missing",
            _ => "it is not followed, and what it excludes is shown",
        };
        self.note(about, &property.name, &format!("{:?}: {why}; {what}", property.value.trim()));
    }

    fn further(&mut self, about: &About, event: &Component, start: &Moment) -> Vec<Further> {
        let mut further = Vec::new();
        for property in event.all("RDATE") {
            for text in self.list(about, property) {
                let period = values::period(text);
                let Some(stamp) = period.map(|(stamp, _)| stamp).or_else(|| values::stamp(text)) else {
                    self.not_a_time(about, property, text);
                    continue;
                };
                let begins = self.of_stamp(about, property, stamp, Some(start));
                let length = period.map(|(_, end)| match end {
                    PeriodEnd::After(length) => Length::new(length.days, length.seconds),
                    PeriodEnd::At(end) => {
                        between(&begins, &self.of_stamp(about, property, end, Some(start)), about.floats)
                    }
                });
                if length == Some(None) {
                    self.note(
                        about,
                        "RDATE",
                        &format!("{text:?} ends before it begins; the length of the entry is taken"),
                    );
                }
                let length = length.flatten().map(|length| length.on_the_wall(about.floats));
                further.push(Further { start: begins, length });
            }
        }
        further
    }

    fn except(&mut self, about: &About, event: &Component, start: &Moment) -> Vec<Moment> {
        let mut except = Vec::new();
        for property in event.all("EXDATE") {
            for text in self.list(about, property) {
                match values::stamp(text) {
                    Some(stamp) => except.push(self.of_stamp(about, property, stamp, Some(start))),
                    None => self.not_a_time(about, property, text),
                }
            }
        }
        except
    }

    fn list<'p>(&mut self, about: &About, property: &'p Property) -> Vec<&'p str> {
        let list: Vec<&str> = property.value.split(',').map(str::trim).filter(|text| !text.is_empty()).collect();
        if list.is_empty() {
            self.note(about, &property.name, "it is empty");
        }
        list
    }

    fn not_a_time(&mut self, about: &About, property: &Property, text: &str) {
        self.calendar.broken = true;
        self.note(about, &property.name, &format!("{text:?} is no date or time and is passed over"));
    }

    /// A property that holds one time. Times without a zone are in that of `like`.
    fn moment(&mut self, about: &About, property: &Property, like: Option<&Moment>) -> Option<Moment> {
        let Some(stamp) = values::stamp(&property.value) else {
            let what = format!("{:?} is no date or time, so the entry is left out", property.value.trim());
            self.note(about, &property.name, &what);
            return None;
        };
        Some(self.of_stamp(about, property, stamp, like))
    }

    fn of_stamp(&mut self, about: &About, property: &Property, stamp: Stamp, like: Option<&Moment>) -> Moment {
        let said_date = property.parameter("VALUE").is_some_and(|kind| kind.eq_ignore_ascii_case("DATE"));
        let all_day = stamp.is_date || (said_date && stamp.civil.time() == Time::midnight());
        if all_day {
            return Moment { civil: stamp.civil, zone: self.zone.clone(), all_day };
        }
        let here =
            like.filter(|like| !like.all_day).map(|like| like.zone.clone()).or_else(|| about.calendar_zone.clone());
        let here = here.unwrap_or_else(|| self.zone.clone());
        match (stamp.clock, property.parameter("TZID")) {
            (Clock::East(0), _) => {
                let greenwich = Moment { civil: stamp.civil, zone: TimeZone::UTC, all_day };
                about.calendar_zone.as_ref().and_then(|zone| moved(&greenwich, zone)).unwrap_or(greenwich)
            }
            (Clock::East(_), _) => {
                let zone = stamp.clock.offset().map_or(here, TimeZone::fixed);
                Moment { civil: stamp.civil, zone, all_day }
            }
            (Clock::Wall, Some(name)) if !name.is_empty() => {
                let zone = self.zones.find(name).unwrap_or_else(|| {
                    self.calendar.unknown_zones.insert(name.to_owned());
                    here
                });
                Moment { civil: stamp.civil, zone, all_day }
            }
            (Clock::Wall, _) => Moment { civil: stamp.civil, zone: here, all_day },
        }
    }

    /// The length, and the start: what ends before it begins is taken the other way round.
    fn length(&mut self, about: &About, event: &Component, start: Moment) -> Option<(Moment, Length)> {
        let default = Length::new(i64::from(start.all_day), 0)?;
        let too_long = |reader: &mut Self, name: &str| {
            reader.note(about, name, "it makes the entry longer than a hundred years, so it is left out");
            None
        };
        if let Some(property) = event.property("DTEND") {
            let end = self.moment(about, property, Some(&start))?;
            if start.all_day != end.all_day {
                self.note(
                    about,
                    "DTEND",
                    "one of DTSTART and DTEND is a date, the other a time; DTSTART says which it is",
                );
            }
            let (start, end) = if ends_before(&start, &end, about.floats) {
                self.note(about, "DTEND", "it is before DTSTART; the two are taken the other way round");
                (Moment { civil: on_clock_of(&end, &start), ..start.clone() }, start)
            } else {
                (start, end)
            };
            let length = between(&start, &end, about.floats);
            return length.map(|length| (start, length.on_the_wall(about.floats))).or_else(|| too_long(self, "DTEND"));
        }
        let Some(property) = event.property("DURATION") else { return Some((start, default)) };
        let Some(length) = values::duration(&property.value) else {
            self.calendar.broken = true;
            self.note(about, "DURATION", &format!("{:?} is no duration and is passed over", property.value.trim()));
            return Some((start, default));
        };
        let (mut days, mut seconds) = (length.days.abs(), length.seconds.abs());
        if start.all_day {
            days += (seconds + 86_399) / 86_400;
            seconds = 0;
        }
        let backwards = length.days < 0 || length.seconds < 0;
        let Some(length) = Length::new(days, seconds) else { return too_long(self, "DURATION") };
        let length = length.on_the_wall(about.floats);
        if !backwards {
            return Some((start, if start_needs_a_day(days, seconds, default) { default } else { length }));
        }
        self.note(about, "DURATION", "it is negative; the entry is taken to end at DTSTART");
        let begins = start.civil.checked_sub(days.days().seconds(seconds)).ok()?;
        Some((Moment { civil: begins, ..start }, length))
    }

    fn details(&self, about: &About, event: &Component) -> Details {
        let calendar = self.around(event);
        let name = calendar.and_then(|calendar| calendar.text("NAME").or_else(|| calendar.text("X-WR-CALNAME")));
        let status = event.text("STATUS").unwrap_or_default().to_ascii_uppercase();
        let withdrawn = calendar.and_then(|calendar| calendar.text("METHOD")).is_some_and(|method| method == "CANCEL");
        let canceled = withdrawn || status == "CANCELLED" || status == "CANCELED";
        let transparent =
            event.text("TRANSP").is_some_and(|transparency| transparency.eq_ignore_ascii_case("TRANSPARENT"));
        Details {
            uid: event.text("UID").unwrap_or_default(),
            title: about.title.clone(),
            location: event.text("LOCATION"),
            description: event.text("DESCRIPTION"),
            organizer: event.property("ORGANIZER").map(guest),
            guests: event.all("ATTENDEE").map(guest).collect(),
            calendar: Some(name.unwrap_or_else(|| self.name.to_owned())),
            tentative: status == "TENTATIVE",
            canceled,
            busy: !canceled && !transparent,
        }
    }
}

/// Days that take no time take the day they begin on.
fn start_needs_a_day(days: i64, seconds: i64, default: Length) -> bool {
    days == 0 && seconds == 0 && default != Length::default()
}

fn moved(moment: &Moment, zone: &TimeZone) -> Option<Moment> {
    let civil = moment.zoned()?.with_time_zone(zone.clone()).datetime();
    Some(Moment { civil, zone: zone.clone(), all_day: false })
}

/// A moment on the clock of another.
fn on_clock_of(moment: &Moment, like: &Moment) -> DateTime {
    if moment.all_day || like.all_day {
        return moment.civil;
    }
    moved(moment, &like.zone).map_or(moment.civil, |moment| moment.civil)
}

/// Returns true for a floating time: not a date, without `TZID` and without an offset.
fn floats(property: &Property) -> bool {
    let of_the_wall = |stamp: Stamp| !stamp.is_date && stamp.clock == Clock::Wall;
    property.parameter("TZID").is_none() && values::stamp(&property.value).is_some_and(of_the_wall)
}

fn ends_before(start: &Moment, end: &Moment, floats: bool) -> bool {
    if start.all_day || end.all_day || (floats && start.zone == end.zone) {
        return if start.all_day { end.civil.date() < start.civil.date() } else { end.civil < start.civil };
    }
    // In an hour that the clock leaves out, the later of two times may be the earlier moment.
    let is_before = matches!((start.zoned(), end.zoned()), (Some(start), Some(end)) if end < start);
    is_before && (start.zone != end.zone || end.civil < start.civil)
}

/// The length of what is given by start and end: of days whole days, of anything else the seconds that pass.
fn between(start: &Moment, end: &Moment, floats: bool) -> Option<Length> {
    if start.all_day {
        let end_day =
            if end.civil.time() == Time::midnight() { end.civil.date() } else { end.civil.date().tomorrow().ok()? };
        let days = start.civil.date().until(end_day).ok()?.get_days();
        // Some programs end an entry of one day on that day.
        return Length::new(i64::from(days).max(1), 0);
    }
    let end = Moment { zone: if end.all_day { start.zone.clone() } else { end.zone.clone() }, ..end.clone() };
    if floats && end.zone == start.zone {
        return Length::new(0, start.civil.duration_until(end.civil).as_secs());
    }
    let seconds = start.zoned()?.timestamp().until(end.zoned()?.timestamp()).ok()?.get_seconds();
    Length::new(0, seconds.max(0))
}

/// The last moment of a rule on the wall clock of the entry; of a date, or for days, the whole day.
fn last(until: Stamp, start: &Moment, floats: bool) -> Option<DateTime> {
    if until.is_date || start.all_day {
        return Some(until.civil.date().to_datetime(Time::constant(23, 59, 59, 0)));
    }
    match until.clock {
        Clock::Wall => Some(until.civil),
        // An entry on no particular clock has its last time on that, too, whatever is written behind it.
        Clock::East(_) if floats => Some(until.civil),
        Clock::East(_) => {
            let zone = TimeZone::fixed(until.clock.offset()?);
            let moment = Moment { civil: until.civil, zone, all_day: false };
            Some(moved(&moment, &start.zone)?.civil)
        }
    }
}

fn guest(property: &Property) -> Guest {
    let address = property.value.trim();
    let bare = address.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("mailto:")).and_then(|_| address.get(7..));
    let own = bare.unwrap_or(address).trim();
    let email =
        if own.contains('@') { Some(own) } else { property.parameter("EMAIL").filter(|text| text.contains('@')) };
    let name = property.parameter("CN").map(str::trim).filter(|name| !name.is_empty());
    Guest { name: name.map(str::to_owned), email: email.map(str::to_owned) }
}
