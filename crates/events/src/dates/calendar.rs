//! Puts what the grammar understood on the calendar of a time zone.
//!
//! Weeks begin on Monday (ISO 8601). All arithmetic is checked: a date that does not exist is an
//! error, never a neighbour of it.

use jiff::civil::{Date, Weekday};
use jiff::{Span, ToSpan as _, Zoned};

use super::grammar::{CalendarPeriod, CalendarUnit, DateQuery, DateShift, DateSpec, PeriodEdge, RelativeTerm};

/// Years to look ahead for a date without a year: 29 February may be eight years away.
const MAX_YEARS_AHEAD: i16 = 8;

/// The fault of a request that the grammar understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CalendarError {
    #[error("the date lies outside the years -9999 to 9999")]
    OutOfRange,
    #[error("{0} does not exist in the calendar")]
    NoSuchDate(String),
    #[error("a time of day needs a single day; say which day of it")]
    TimeOfManyDays,
}

/// A stretch of time: from `start` until just before `end`.
#[derive(Debug, Clone, PartialEq)]
pub enum DateExtent {
    /// One moment.
    Moment(Zoned),
    /// Whole days, both ends included, and the moment that was computed, which is the start of
    /// the first day unless a time of day came along.
    Days { first: Date, last: Date, moment: Zoned },
    /// From one moment to another.
    Window(Zoned, Zoned),
}

impl DateExtent {
    /// The moment it begins with.
    pub fn moment(&self) -> &Zoned {
        match self {
            Self::Moment(moment) | Self::Days { moment, .. } | Self::Window(moment, _) => moment,
        }
    }

    /// The day of `moment`, which keeps its time of day.
    pub fn day_of(moment: Zoned) -> Self {
        Self::Days { first: moment.date(), last: moment.date(), moment }
    }
}

/// Moves a moment. Days and months keep the time of day over a change of the clock; hours are
/// hours. The last day of a month stays within the shorter month.
pub fn shift_moment(base: &Zoned, shift: DateShift) -> Result<Zoned, CalendarError> {
    let span = Span::new()
        .try_months(shift.months)
        .and_then(|span| span.try_days(shift.days))
        .and_then(|span| span.try_seconds(shift.seconds))
        .map_err(|_| CalendarError::OutOfRange)?;
    base.checked_add(span).map_err(|_| CalendarError::OutOfRange)
}

/// The extent of a moved base: a moment when hours were counted, else a day.
pub fn shift_to_extent(base: &Zoned, shift: DateShift) -> Result<DateExtent, CalendarError> {
    let moment = shift_moment(base, shift)?;
    Ok(if shift.seconds == 0 { DateExtent::day_of(moment) } else { DateExtent::Moment(moment) })
}

/// Finds what was asked for, seen from `base` and in its time zone.
pub fn resolve(find: &DateQuery, base: &Zoned) -> Result<DateExtent, CalendarError> {
    let extent = resolve_date_spec(&find.what, base)?;
    let Some(time) = find.at else {
        return Ok(extent);
    };
    match extent {
        DateExtent::Days { first, last, .. } if first == last => first
            .to_datetime(time)
            .to_zoned(base.time_zone().clone())
            .map(DateExtent::Moment)
            .map_err(|_| CalendarError::OutOfRange),
        DateExtent::Moment(_) | DateExtent::Days { .. } | DateExtent::Window(..) => Err(CalendarError::TimeOfManyDays),
    }
}

fn resolve_date_spec(what: &DateSpec, base: &Zoned) -> Result<DateExtent, CalendarError> {
    let today = base.date();
    let (first, last) = match what {
        DateSpec::Now => return Ok(DateExtent::Moment(base.clone())),
        DateSpec::Shift(shift) => return shift_to_extent(base, *shift),
        DateSpec::Window(shift) => {
            let other = shift_moment(base, *shift)?;
            return Ok(if other < *base {
                DateExtent::Window(other, base.clone())
            } else {
                DateExtent::Window(base.clone(), other)
            });
        }
        DateSpec::Day(offset) => single_day(add_days(today, *offset)?),
        DateSpec::Weekday(which, weekday) => single_day(relative_weekday(today, *which, *weekday)?),
        DateSpec::WeekdayOfWeek(weekday, offset) => {
            let monday = monday_of_week(today, *offset)?;
            single_day(add_days(monday, i64::from(weekday.to_monday_zero_offset()))?)
        }
        DateSpec::Weekend(offset) => {
            let monday = monday_of_week(today, *offset)?;
            (add_days(monday, 5)?, add_days(monday, 6)?)
        }
        DateSpec::Period(period) => period_bounds(*period, today)?,
        DateSpec::Edge(PeriodEdge::First, period) => single_day(period_bounds(*period, today)?.0),
        DateSpec::Edge(PeriodEdge::Last, period) => single_day(period_bounds(*period, today)?.1),
        DateSpec::Nth(nth, weekday, period) => single_day(nth_weekday(*nth, *weekday, *period, today)?),
        DateSpec::DayOfMonth { year, month, day } => single_day(day_of_month(today, *year, *month, *day)?),
        DateSpec::Date { year, month, day } => single_day(
            civil_date(*year, *month, *day).ok_or_else(|| no_such_date(&format!("{year:04}-{month:02}-{day:02}")))?,
        ),
    };
    whole_days(first, last, base)
}

/// Whole days in the time zone of `base`.
pub fn whole_days(first: Date, last: Date, base: &Zoned) -> Result<DateExtent, CalendarError> {
    let moment = start_of_day(first, base)?;
    Ok(DateExtent::Days { first, last, moment })
}

/// The first moment of a day, which is not midnight where the clocks skip it.
pub fn start_of_day(day: Date, base: &Zoned) -> Result<Zoned, CalendarError> {
    day.to_zoned(base.time_zone().clone()).map_err(|_| CalendarError::OutOfRange)
}

/// First and last day of a unit that holds `day`, moved by `offset` units.
pub fn unit_bounds(day: Date, unit: CalendarUnit, offset: i64) -> Result<(Date, Date), CalendarError> {
    let first_of_month = day.first_of_month();
    let (first, months) = match unit {
        CalendarUnit::Week => {
            let monday = monday_of_week(day, offset)?;
            return Ok((monday, add_days(monday, 6)?));
        }
        CalendarUnit::Month => (first_of_month, 1),
        CalendarUnit::Quarter => {
            let into_quarter = i64::from((day.month() - 1) % 3);
            (add_months(first_of_month, -into_quarter)?, 3)
        }
        CalendarUnit::Year => (day.first_of_year(), 12),
    };
    let first = add_months(first, offset.saturating_mul(months))?;
    Ok((first, add_days(add_months(first, months)?, -1)?))
}

fn period_bounds(period: CalendarPeriod, today: Date) -> Result<(Date, Date), CalendarError> {
    match period {
        CalendarPeriod::Relative(unit, offset) => unit_bounds(today, unit, offset),
        CalendarPeriod::Month(_, month, Some(year)) => {
            unit_bounds(checked_date(year, month, 1)?, CalendarUnit::Month, 0)
        }
        CalendarPeriod::Month(which, month, None) => {
            let this_year = checked_date(today.year(), month, 1)?;
            let current = today.first_of_month();
            let years = match which {
                // "march" is the coming one, in march itself the current one.
                None => i64::from(this_year < current),
                Some(RelativeTerm::This) => 0,
                Some(RelativeTerm::Next) => i64::from(this_year <= current),
                Some(RelativeTerm::Last) => -i64::from(this_year >= current),
            };
            unit_bounds(add_months(this_year, years * 12)?, CalendarUnit::Month, 0)
        }
        CalendarPeriod::Quarter(quarter, year) => {
            let first = checked_date(year.unwrap_or(today.year()), quarter * 3 - 2, 1)?;
            unit_bounds(first, CalendarUnit::Quarter, 0)
        }
        CalendarPeriod::Year(year) => unit_bounds(checked_date(year, 1, 1)?, CalendarUnit::Year, 0),
    }
}

fn relative_weekday(today: Date, which: Option<RelativeTerm>, weekday: Weekday) -> Result<Date, CalendarError> {
    let found = match which {
        None if today.weekday() == weekday => Ok(today),
        None | Some(RelativeTerm::Next) => today.nth_weekday(1, weekday),
        Some(RelativeTerm::Last) => today.nth_weekday(-1, weekday),
        Some(RelativeTerm::This) => {
            return add_days(monday_of_week(today, 0)?, i64::from(weekday.to_monday_zero_offset()));
        }
    };
    found.map_err(|_| CalendarError::OutOfRange)
}

fn nth_weekday(nth: i32, weekday: Weekday, period: CalendarPeriod, today: Date) -> Result<Date, CalendarError> {
    let (first, last) = period_bounds(period, today)?;
    // Counting starts from the day outside the period, so that its own edge counts.
    let outside = if nth > 0 { add_days(first, -1)? } else { add_days(last, 1)? };
    outside
        .nth_weekday(nth, weekday)
        .ok()
        .filter(|day| (first..=last).contains(day))
        .ok_or_else(|| no_such_date(&format!("weekday number {nth} between {first} and {last}")))
}

fn day_of_month(today: Date, year: Option<i16>, month: Option<i8>, day: i8) -> Result<Date, CalendarError> {
    let coming = match (year, month) {
        (Some(year), Some(month)) => {
            return civil_date(year, month, day).ok_or_else(|| no_such_date(&format!("{year:04}-{month:02}-{day:02}")));
        }
        (_, Some(month)) => (0..=MAX_YEARS_AHEAD)
            .filter_map(|ahead| civil_date(today.year().checked_add(ahead)?, month, day))
            .find(|date| *date >= today),
        // A day of no named month: one of the next two months has it.
        (_, None) => (0..=2)
            .filter_map(|ahead| add_months(today.first_of_month(), ahead).ok())
            .filter_map(|first| civil_date(first.year(), first.month(), day))
            .find(|date| *date >= today),
    };
    coming.ok_or_else(|| no_such_date(&format!("day {day} of that month")))
}

fn single_day(day: Date) -> (Date, Date) {
    (day, day)
}

fn monday_of_week(day: Date, weeks: i64) -> Result<Date, CalendarError> {
    let since_monday = i64::from(day.weekday().to_monday_zero_offset());
    add_days(day, weeks * 7 - since_monday)
}

fn add_days(day: Date, days: i64) -> Result<Date, CalendarError> {
    let span = Span::new().try_days(days).map_err(|_| CalendarError::OutOfRange)?;
    day.checked_add(span).map_err(|_| CalendarError::OutOfRange)
}

fn add_months(day: Date, months: i64) -> Result<Date, CalendarError> {
    let span = Span::new().try_months(months).map_err(|_| CalendarError::OutOfRange)?;
    day.checked_add(span).map_err(|_| CalendarError::OutOfRange)
}

fn checked_date(year: i16, month: i8, day: i8) -> Result<Date, CalendarError> {
    civil_date(year, month, day).ok_or(CalendarError::OutOfRange)
}

fn no_such_date(text: &str) -> CalendarError {
    CalendarError::NoSuchDate(text.to_owned())
}

/// The day after, where a range that includes `day` ends.
pub fn day_after(day: Date) -> Result<Date, CalendarError> {
    day.checked_add(1.day()).map_err(|_| CalendarError::OutOfRange)
}

/// A civil date that the calendar has.
fn civil_date(year: i16, month: i8, day: i8) -> Option<Date> {
    Date::new(year, month, day).ok()
}
