//! Puts what the grammar understood on the calendar of a time zone.
//!
//! Weeks begin on Monday (ISO 8601). All arithmetic is checked: a date that does not exist is an
//! error, never a neighbour of it.

use jiff::civil::{Date, Weekday};
use jiff::{Span, ToSpan as _, Zoned};

use super::grammar::{Edge, Find, Period, Shift, Unit, What, Which};

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
pub enum Extent {
    /// One moment.
    Moment(Zoned),
    /// Whole days, both ends included, and the moment that was computed, which is the start of
    /// the first day unless a time of day came along.
    Days { first: Date, last: Date, moment: Zoned },
    /// From one moment to another.
    Window(Zoned, Zoned),
}

impl Extent {
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
pub fn shifted(base: &Zoned, shift: Shift) -> Result<Zoned, CalendarError> {
    let span = Span::new()
        .try_months(shift.months)
        .and_then(|span| span.try_days(shift.days))
        .and_then(|span| span.try_seconds(shift.seconds))
        .map_err(|_| CalendarError::OutOfRange)?;
    base.checked_add(span).map_err(|_| CalendarError::OutOfRange)
}

/// The extent of a moved base: a moment when hours were counted, else a day.
pub fn shifted_extent(base: &Zoned, shift: Shift) -> Result<Extent, CalendarError> {
    let moment = shifted(base, shift)?;
    Ok(if shift.seconds == 0 { Extent::day_of(moment) } else { Extent::Moment(moment) })
}

/// Finds what was asked for, seen from `base` and in its time zone.
pub fn resolve(find: &Find, base: &Zoned) -> Result<Extent, CalendarError> {
    let extent = resolve_what(&find.what, base)?;
    let Some(time) = find.at else {
        return Ok(extent);
    };
    match extent {
        Extent::Days { first, last, .. } if first == last => first
            .to_datetime(time)
            .to_zoned(base.time_zone().clone())
            .map(Extent::Moment)
            .map_err(|_| CalendarError::OutOfRange),
        Extent::Moment(_) | Extent::Days { .. } | Extent::Window(..) => Err(CalendarError::TimeOfManyDays),
    }
}

fn resolve_what(what: &What, base: &Zoned) -> Result<Extent, CalendarError> {
    let today = base.date();
    let (first, last) = match what {
        What::Now => return Ok(Extent::Moment(base.clone())),
        What::Shift(shift) => return shifted_extent(base, *shift),
        What::Window(shift) => {
            let other = shifted(base, *shift)?;
            return Ok(if other < *base {
                Extent::Window(other, base.clone())
            } else {
                Extent::Window(base.clone(), other)
            });
        }
        What::Day(offset) => single(add_days(today, *offset)?),
        What::Weekday(which, weekday) => single(relative_weekday(today, *which, *weekday)?),
        What::WeekdayOfWeek(weekday, offset) => {
            let monday = monday(today, *offset)?;
            single(add_days(monday, i64::from(weekday.to_monday_zero_offset()))?)
        }
        What::Weekend(offset) => {
            let monday = monday(today, *offset)?;
            (add_days(monday, 5)?, add_days(monday, 6)?)
        }
        What::Period(period) => days_of(*period, today)?,
        What::Edge(Edge::First, period) => single(days_of(*period, today)?.0),
        What::Edge(Edge::Last, period) => single(days_of(*period, today)?.1),
        What::Nth(nth, weekday, period) => single(nth_weekday(*nth, *weekday, *period, today)?),
        What::DayOfMonth { year, month, day } => single(day_of_month(today, *year, *month, *day)?),
        What::Date { year, month, day } => single(
            civil_date(*year, *month, *day).ok_or_else(|| no_such_date(&format!("{year:04}-{month:02}-{day:02}")))?,
        ),
    };
    days(first, last, base)
}

/// Whole days in the time zone of `base`.
pub fn days(first: Date, last: Date, base: &Zoned) -> Result<Extent, CalendarError> {
    let moment = start_of(first, base)?;
    Ok(Extent::Days { first, last, moment })
}

/// The first moment of a day, which is not midnight where the clocks skip it.
pub fn start_of(day: Date, base: &Zoned) -> Result<Zoned, CalendarError> {
    day.to_zoned(base.time_zone().clone()).map_err(|_| CalendarError::OutOfRange)
}

/// First and last day of a unit that holds `day`, moved by `offset` units.
pub fn unit_of(day: Date, unit: Unit, offset: i64) -> Result<(Date, Date), CalendarError> {
    let first_of_month = day.first_of_month();
    let (first, months) = match unit {
        Unit::Week => {
            let monday = monday(day, offset)?;
            return Ok((monday, add_days(monday, 6)?));
        }
        Unit::Month => (first_of_month, 1),
        Unit::Quarter => {
            let into_quarter = i64::from((day.month() - 1) % 3);
            (add_months(first_of_month, -into_quarter)?, 3)
        }
        Unit::Year => (day.first_of_year(), 12),
    };
    let first = add_months(first, offset.saturating_mul(months))?;
    Ok((first, add_days(add_months(first, months)?, -1)?))
}

fn days_of(period: Period, today: Date) -> Result<(Date, Date), CalendarError> {
    match period {
        Period::Relative(unit, offset) => unit_of(today, unit, offset),
        Period::Month(_, month, Some(year)) => unit_of(date(year, month, 1)?, Unit::Month, 0),
        Period::Month(which, month, None) => {
            let this_year = date(today.year(), month, 1)?;
            let current = today.first_of_month();
            let years = match which {
                // "march" is the coming one, in march itself the current one.
                None => i64::from(this_year < current),
                Some(Which::This) => 0,
                Some(Which::Next) => i64::from(this_year <= current),
                Some(Which::Last) => -i64::from(this_year >= current),
            };
            unit_of(add_months(this_year, years * 12)?, Unit::Month, 0)
        }
        Period::Quarter(quarter, year) => {
            let first = date(year.unwrap_or(today.year()), quarter * 3 - 2, 1)?;
            unit_of(first, Unit::Quarter, 0)
        }
        Period::Year(year) => unit_of(date(year, 1, 1)?, Unit::Year, 0),
    }
}

fn relative_weekday(today: Date, which: Option<Which>, weekday: Weekday) -> Result<Date, CalendarError> {
    let found = match which {
        None if today.weekday() == weekday => Ok(today),
        None | Some(Which::Next) => today.nth_weekday(1, weekday),
        Some(Which::Last) => today.nth_weekday(-1, weekday),
        Some(Which::This) => {
            return add_days(monday(today, 0)?, i64::from(weekday.to_monday_zero_offset()));
        }
    };
    found.map_err(|_| CalendarError::OutOfRange)
}

fn nth_weekday(nth: i32, weekday: Weekday, period: Period, today: Date) -> Result<Date, CalendarError> {
    let (first, last) = days_of(period, today)?;
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

fn single(day: Date) -> (Date, Date) {
    (day, day)
}

fn monday(day: Date, weeks: i64) -> Result<Date, CalendarError> {
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

fn date(year: i16, month: i8, day: i8) -> Result<Date, CalendarError> {
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
