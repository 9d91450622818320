//! Dates as people write them: "tomorrow at 17:00", "second monday of next month", "3 days".
//!
//! * [`grammar`]: text to what is meant, without a calendar at hand
//! * [`calendar`]: what is meant, put on the calendar of a time zone
//!
//! Pure: whoever asks says what time it is and in which zone.

pub mod calendar;
pub mod grammar;
#[cfg(test)]
mod tests;
mod vocabulary;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use self::calendar::{CalendarError, DateExtent};

/// The forms that [`grammar::parse_shift`] understands, for people.
pub const SHIFT_FORMS: &str = "numbers (or a, one … twelve) with second, minute, hour, day, week, fortnight, month, quarter or year, such as \"3 days\" or \"2 months and 1 day\"";
/// The forms that [`grammar::parse_query`] understands, for people.
pub const FIND_FORMS: &str = "now; today, tomorrow, yesterday, day after tomorrow; in 3 days, 2 weeks ago; friday, next friday, last tuesday, this monday, tuesday next week; weekend, next weekend; this|next|last week, month, quarter or year; march, march 2027, q3 2026, 2027; start of or end of any of these; second monday of next month; last 7 days, next 2 hours; 15 march 2027, march 15, 15th, 2027-03-15. A day may be followed by a time: tomorrow at 17:00, friday 5pm, noon";

/// The reason a text is no date.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DateError {
    #[error("{0:?} is not understood; understood are {FIND_FORMS}")]
    NotUnderstood(String),
    #[error(transparent)]
    Calendar(#[from] CalendarError),
}

/// Reads a date: ISO 8601, or what [`grammar::parse_query`] understands. `now` says from when to look and in which time
/// zone.
pub fn parse_extent(text: &str, now: &Zoned) -> Result<DateExtent, DateError> {
    match (grammar::parse_query(text), parse_moment(text, now.time_zone())) {
        (Some(find), _) => Ok(calendar::resolve(&find, now)?),
        (None, Some(moment)) => Ok(DateExtent::Moment(moment)),
        (None, None) => Err(DateError::NotUnderstood(text.to_owned())),
    }
}

/// Start and end of a date, the end exclusive; the same twice for a moment.
pub fn parse_range(text: &str, now: &Zoned) -> Result<(Zoned, Zoned), DateError> {
    let (start, end, _) = bounds(&parse_extent(text, now)?)?;
    Ok((start, end))
}

/// A timestamp with an offset, or date and time as a clock on the wall of `zone` shows them.
pub fn parse_moment(text: &str, zone: &TimeZone) -> Option<Zoned> {
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Some(timestamp.to_zoned(zone.clone()));
    }
    text.parse::<DateTime>().ok()?.to_zoned(zone.clone()).ok()
}

/// Returns the beginning of an extent, its end, and its last day.
pub fn bounds(extent: &DateExtent) -> Result<(Zoned, Zoned, Date), CalendarError> {
    Ok(match extent {
        DateExtent::Moment(moment) => (moment.clone(), moment.clone(), moment.date()),
        DateExtent::Window(start, end) => (start.clone(), end.clone(), end.date()),
        DateExtent::Days { first, last, moment } => (
            calendar::start_of_day(*first, moment)?,
            calendar::start_of_day(calendar::day_after(*last)?, moment)?,
            *last,
        ),
    })
}
