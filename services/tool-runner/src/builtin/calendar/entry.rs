//! Calendar entries as the project thinks of them: with real time zones, whatever the file calls them.

use std::sync::Arc;

use calcard::icalendar::ICalendarRecurrenceRule;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, ToSpan as _, Zoned};

use crate::builtin::workspace::matches_words;

/// A date or time as a calendar gives it: what clock and calendar on the wall of `zone` show.
#[derive(Debug, Clone, PartialEq)]
pub struct CalendarTime {
    pub civil: DateTime,
    pub zone: TimeZone,
    /// A date only, which in every zone is that zone's own day; here that of the agent's.
    pub all_day: bool,
}

impl CalendarTime {
    /// When that is. A time that the clock skips is as much later; of one that it shows twice it is the first. None
    /// outside the years of the calendar.
    pub fn to_zoned(&self) -> Option<Zoned> {
        self.civil.to_zoned(self.zone.clone()).ok()
    }
}

/// The length of an entry: calendar days, then seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EntryLength {
    days: i64,
    seconds: i64,
    /// True if the seconds count wall-clock time, not elapsed time.
    on_the_wall: bool,
}

/// Longest entry, in days; a longer one is a mistake.
const MAX_LENGTH_DAYS: i64 = 36_525;

impl EntryLength {
    /// None for what is no length of an entry.
    pub fn new(days: i64, seconds: i64) -> Option<Self> {
        let fits = (0..=MAX_LENGTH_DAYS).contains(&days) && (0..=MAX_LENGTH_DAYS * 86_400).contains(&seconds);
        fits.then_some(Self { days, seconds, on_the_wall: false })
    }

    /// Of a time without a zone, whose end is as little bound to one.
    pub fn with_wall_clock(self, on_the_wall: bool) -> Self {
        Self { on_the_wall, ..self }
    }

    /// With days of 24 hours.
    pub fn as_duration(self) -> SignedDuration {
        SignedDuration::from_secs(self.days * 86_400 + self.seconds)
    }

    /// The end of what begins at `start`, when the wall clock shows `civil`: days by the clock, then seconds as they pass.
    /// The start itself beyond the calendar's years.
    pub fn end_from(self, civil: DateTime, start: &Zoned) -> Zoned {
        if self.on_the_wall {
            let end = civil.checked_add(self.as_duration()).and_then(|end| end.to_zoned(start.time_zone().clone()));
            return end.map_or_else(|_| start.clone(), |end| end.max(start.clone()));
        }
        let days = civil.checked_add(self.days.days()).and_then(|civil| civil.to_zoned(start.time_zone().clone()));
        let begins = if self.days == 0 { Ok(start.clone()) } else { days };
        begins.and_then(|begins| begins.checked_add(self.seconds.seconds())).unwrap_or_else(|_| start.clone())
    }
}

/// Somebody who takes part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    pub name: Option<String>,
    pub email: Option<String>,
}

/// The fields of an entry besides its time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EntryDetails {
    pub uid: String,
    pub title: String,
    pub location: Option<String>,
    pub description: Option<String>,
    pub organizer: Option<Guest>,
    pub guests: Vec<Guest>,
    /// The name of its calendar.
    pub calendar: Option<String>,
    pub tentative: bool,
    pub canceled: bool,
    /// True if the entry blocks its time.
    pub busy: bool,
}

impl EntryDetails {
    pub fn matches_query(&self, query: &str) -> bool {
        let optional = [&self.location, &self.description, &self.calendar];
        let texts = optional.into_iter().flatten().map(String::as_str).chain([self.title.as_str()]);
        let people = self.participants().flat_map(|guest| [&guest.name, &guest.email]).flatten().map(String::as_str);
        matches_words(query, texts.chain(people))
    }

    /// Returns true if one of these people takes part, by name or address, or the name of the calendar matches one.
    pub fn involves_any(&self, people: &[String]) -> bool {
        people.iter().any(|person| {
            let same = |text: &String| text.eq_ignore_ascii_case(person);
            let named = |text: &String| matches_words(person, [text.as_str()]);
            self.participants()
                .any(|guest| guest.email.as_ref().is_some_and(same) || guest.name.as_ref().is_some_and(named))
                || self.calendar.as_ref().is_some_and(named)
        })
    }

    fn participants(&self) -> impl Iterator<Item = &Guest> {
        self.organizer.iter().chain(&self.guests)
    }
}

/// A rule by which an entry recurs.
#[derive(Debug, Clone)]
pub struct EntryRecurrence {
    /// Without its last time.
    pub rule: ICalendarRecurrenceRule,
    /// Up to and including, on the wall clock of the entry.
    pub until: Option<DateTime>,
}

/// A further occurrence of an entry.
#[derive(Debug, Clone)]
pub struct ExtraOccurrence {
    pub start: CalendarTime,
    /// Should it take longer or shorter than the entry.
    pub length: Option<EntryLength>,
}

/// One entry of a calendar with all its recurrences.
#[derive(Debug, Clone)]
pub struct CalendarEntry {
    pub start: CalendarTime,
    pub length: EntryLength,
    pub details: Arc<EntryDetails>,
    pub rules: Vec<EntryRecurrence>,
    /// Rules by which it does not take place.
    pub except_rules: Vec<EntryRecurrence>,
    /// Further occurrences.
    pub also: Vec<ExtraOccurrence>,
    /// Occurrences that do not take place.
    pub except: Vec<CalendarTime>,
    pub changes: Vec<OccurrenceChange>,
}

/// A change to one occurrence of an entry.
#[derive(Debug, Clone)]
pub struct OccurrenceChange {
    /// The original start of the occurrence.
    pub of: CalendarTime,
    /// True if all later occurrences change in the same way.
    pub onward: bool,
    /// True if it is older than the entry and has rules of its own: it counts only if the occurrence it changes exists.
    pub stale: bool,
    pub start: CalendarTime,
    pub length: EntryLength,
    pub details: Arc<EntryDetails>,
}
