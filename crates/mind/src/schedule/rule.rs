//! Recurrence rules of RFC 5545, such as `FREQ=WEEKLY;BYDAY=MO,TH;BYHOUR=8`.
//!
//! Days, weeks, months and years are counted on the wall clock, hours and minutes as they pass. What the standard has
//! beyond the parts below is refused by name. The work of finding the next time is bounded.

mod parse;

use jiff::{
    SignedDuration, Span, Timestamp, ToSpan as _,
    civil::{Date, DateTime, Time, Weekday},
    tz::TimeZone,
};

use super::wall_to_timestamp;

/// Years behind which no further time is looked for: 29 February may be eight years away.
const HORIZON_YEARS: i16 = 9;
/// Steps of hours or minutes looked at for one next time.
const STEPS: u32 = 200_000;
/// Times that a step of a rule may have of which BYSETPOS picks some.
const MOST_PICKED_FROM: usize = 20_000;
/// Most times a rule may count.
const MOST_COUNTED: u32 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frequency {
    Yearly,
    Monthly,
    Weekly,
    Daily,
    Hourly,
    Minutely,
}

/// Up to and including.
#[derive(Clone, Copy, Debug, PartialEq)]
enum RuleEnd {
    Moment(Timestamp),
    Wall(DateTime),
}

/// A rule.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleRule {
    frequency: Frequency,
    interval: i32,
    count: Option<u32>,
    until: Option<RuleEnd>,
    months: Vec<i8>,
    /// Negative from the end of the month.
    month_days: Vec<i8>,
    /// With a number: that one of the month or year, negative from its end.
    weekdays: Vec<(Option<i16>, Weekday)>,
    hours: Vec<i8>,
    minutes: Vec<i8>,
    /// Positions that count among the times of a step, negative from the end.
    positions: Vec<i16>,
    week_start: Weekday,
}

impl ScheduleRule {
    /// Returns true if the rule sets the hour.
    pub fn has_hours(&self) -> bool {
        !self.hours.is_empty()
    }

    /// Returns true if the rule's steps are hours or minutes.
    pub fn is_within_days(&self) -> bool {
        matches!(self.frequency, Frequency::Hourly | Frequency::Minutely)
    }

    /// The first time behind `after` of the rule that begins at `start`.
    pub fn next_after(&self, start: DateTime, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
        match self.is_within_days() {
            true => self.next_step(start, zone, after),
            false => self.next_day(start, zone, after),
        }
    }

    fn next_day(&self, start: DateTime, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
        let here = after.to_zoned(zone.clone()).date();
        let horizon = here.max(start.date()).checked_add(HORIZON_YEARS.years()).ok()?;
        // Whoever counts must begin at the beginning. A clock that was changed may have shown a later day.
        let first = if self.count.is_some() { 0 } else { (self.period_index(start.date(), here) - 1).max(0) };
        let mut counted = 0;
        for index in first.. {
            let (from, to) = self.period_bounds(start.date(), index)?;
            if from > horizon {
                return None;
            }
            for wall in self.wall_times(start, from, to).filter(|wall| *wall >= start) {
                let moment = wall_to_timestamp(wall, zone)?;
                if self.is_over(moment, wall) || self.count.is_some_and(|count| counted >= count) {
                    return None;
                }
                counted += 1;
                if moment > after {
                    return Some(moment);
                }
            }
        }
        None
    }

    fn next_step(&self, start: DateTime, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
        let unit = if self.frequency == Frequency::Hourly { 3600 } else { 60 };
        let step = i64::from(self.interval) * unit;
        let anchor = wall_to_timestamp(start, zone)?;
        let horizon =
            after.max(anchor).checked_add(SignedDuration::from_hours(i64::from(HORIZON_YEARS) * 366 * 24)).ok()?;
        let reach = |moment: Timestamp| (moment.as_second() - anchor.as_second()).div_euclid(step);
        let mut index = if self.count.is_some() { 0 } else { reach(after).max(0) };
        let mut counted = 0;
        for _ in 0..STEPS {
            let moment = anchor.checked_add(SignedDuration::from_secs(index.checked_mul(step)?)).ok()?;
            let wall = moment.to_zoned(zone.clone()).datetime();
            if moment > horizon || self.is_over(moment, wall) || self.count.is_some_and(|count| counted >= count) {
                return None;
            }
            if !self.has_day(start.date(), wall.date()) {
                let tomorrow = wall_to_timestamp(wall.date().tomorrow().ok()?.to_datetime(Time::midnight()), zone)?;
                index = (reach(tomorrow) + i64::from((tomorrow.as_second() - anchor.as_second()) % step != 0))
                    .max(index + 1);
                continue;
            }
            if is_allowed(&self.hours, wall.hour()) && is_allowed(&self.minutes, wall.minute()) {
                counted += 1;
                if moment > after {
                    return Some(moment);
                }
            }
            index += 1;
        }
        None
    }

    fn is_over(&self, moment: Timestamp, wall: DateTime) -> bool {
        match self.until {
            None => false,
            Some(RuleEnd::Moment(last)) => moment > last,
            Some(RuleEnd::Wall(last)) => wall > last,
        }
    }

    /// Returns the index of the step that holds the day.
    fn period_index(&self, start: Date, day: Date) -> i64 {
        let years = i64::from(day.year()) - i64::from(start.year());
        let days = |from: Date| from.until(day).map_or(0, |span| i64::from(span.get_days()));
        let steps = match self.frequency {
            Frequency::Yearly => years,
            Frequency::Monthly => years * 12 + i64::from(day.month()) - i64::from(start.month()),
            Frequency::Weekly => days(self.week_start_of(start).unwrap_or(start)).div_euclid(7),
            Frequency::Daily | Frequency::Hourly | Frequency::Minutely => days(start),
        };
        steps.div_euclid(i64::from(self.interval))
    }

    /// First and last day of a step.
    fn period_bounds(&self, start: Date, index: i64) -> Option<(Date, Date)> {
        let by = index.checked_mul(i64::from(self.interval))?;
        let moved = |day: Date, span: Result<Span, jiff::Error>| day.checked_add(span.ok()?).ok();
        Some(match self.frequency {
            Frequency::Yearly => {
                let first = moved(start.first_of_year(), Span::new().try_years(by))?;
                (first, first.last_of_year())
            }
            Frequency::Monthly => {
                let first = moved(start.first_of_month(), Span::new().try_months(by))?;
                (first, first.last_of_month())
            }
            Frequency::Weekly => {
                let first = moved(self.week_start_of(start)?, Span::new().try_weeks(by))?;
                (first, first.checked_add(6.days()).ok()?)
            }
            Frequency::Daily | Frequency::Hourly | Frequency::Minutely => {
                let day = moved(start, Span::new().try_days(by))?;
                (day, day)
            }
        })
    }

    fn week_start_of(&self, day: Date) -> Option<Date> {
        let since = day.weekday().since(self.week_start);
        day.checked_sub(i64::from(since).days()).ok()
    }

    /// The times of a step, in order.
    fn wall_times(&self, start: DateTime, from: Date, to: Date) -> impl Iterator<Item = DateTime> {
        let days = from.series(1.day()).take_while(move |day| *day <= to);
        let days: Vec<Date> = days.filter(|day| self.has_day(start.date(), *day)).collect();
        let times = self.times_of_day(start);
        let all = days.len() * times.len();
        let all_of = (0..all).filter_map(move |at| {
            let day = days.get(at / times.len())?;
            let time = times.get(at % times.len())?;
            Some(day.to_datetime(*time))
        });
        let picked = move |at: usize| {
            let picks = |position: &i16| match usize::from(position.unsigned_abs()) {
                nth if *position > 0 => at + 1 == nth,
                nth => at + nth == all,
            };
            self.positions.is_empty() || self.positions.iter().any(picks)
        };
        all_of.enumerate().filter(move |(at, _)| picked(*at)).map(|(_, wall)| wall)
    }

    /// The times of a day, in order.
    fn times_of_day(&self, start: DateTime) -> Vec<Time> {
        let own = |given: &[i8], own: i8| if given.is_empty() { vec![own] } else { given.to_vec() };
        let minutes = own(&self.minutes, start.minute());
        let hours = own(&self.hours, start.hour());
        let at = |hour: i8| minutes.iter().filter_map(move |minute| Time::new(hour, *minute, start.second(), 0).ok());
        hours.iter().flat_map(|hour| at(*hour).collect::<Vec<_>>()).collect()
    }

    /// Returns true if the rule includes the day. Parts that the rule leaves open are as on the day it begins.
    fn has_day(&self, start: Date, day: Date) -> bool {
        let open = self.month_days.is_empty() && self.weekdays.is_empty();
        let frequency = self.frequency;
        let months = is_allowed(&self.months, day.month())
            && (frequency != Frequency::Yearly || !open || !self.months.is_empty() || day.month() == start.month());
        let month_days = match frequency {
            Frequency::Yearly | Frequency::Monthly if open => day.day() == start.day(),
            _ => {
                let from_end = day.day() - day.days_in_month() - 1;
                self.month_days.is_empty()
                    || self.month_days.contains(&day.day())
                    || self.month_days.contains(&from_end)
            }
        };
        let weekdays = match frequency {
            Frequency::Weekly if open => day.weekday() == start.weekday(),
            _ => self.weekdays.is_empty() || self.weekdays.iter().any(|(nth, of)| self.is_nth_weekday(*nth, *of, day)),
        };
        months && month_days && weekdays
    }

    fn is_nth_weekday(&self, nth: Option<i16>, weekday: Weekday, day: Date) -> bool {
        if day.weekday() != weekday {
            return false;
        }
        let in_year = self.frequency == Frequency::Yearly && self.months.is_empty();
        let (at, of) = match in_year {
            true => (day.day_of_year(), day.days_in_year()),
            false => (i16::from(day.day()), i16::from(day.days_in_month())),
        };
        match nth {
            None => true,
            Some(nth) if nth > 0 => (at - 1) / 7 + 1 == nth,
            Some(nth) => (of - at) / 7 + 1 == -nth,
        }
    }
}

fn is_allowed(allowed: &[i8], value: i8) -> bool {
    allowed.is_empty() || allowed.contains(&value)
}
