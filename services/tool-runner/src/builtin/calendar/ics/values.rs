//! Values of calendar properties: dates, times, durations and periods (RFC 5545, section 3.3).

use jiff::ToSpan as _;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::Offset;

/// Longest number in a duration, in digits.
const MAX_DIGITS: usize = 12;

/// The clock that a time refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenClock {
    /// Wall-clock time in the zone of the property, or of the calendar.
    Wall,
    /// Seconds east of Greenwich; 0 for a time that ends with Z.
    East(i32),
}

impl WrittenClock {
    /// Returns the offset from UTC; none for wall-clock time, which does not say.
    pub fn offset(self) -> Option<Offset> {
        match self {
            Self::Wall => None,
            Self::East(seconds) => Offset::from_seconds(seconds).ok(),
        }
    }
}

/// A date or a time as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenTime {
    /// Midnight of a date.
    pub civil: DateTime,
    pub is_date: bool,
    pub clock: WrittenClock,
}

/// A length of time as it is written: days of the calendar, then seconds. Both are negative where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IcsDuration {
    pub days: i64,
    pub seconds: i64,
}

/// The end of an additional occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeriodEnd {
    At(WrittenTime),
    After(IcsDuration),
}

/// "20260301", "20260301T090000", "20260301T090000Z", "20260301T0900+0100"; with or without dashes and colons. None for
/// anything else, and for a day that the calendar does not have.
pub fn parse_written_time(text: &str) -> Option<WrittenTime> {
    let text = text.trim();
    let (date, time) = match text.split_once(['T', 't']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let date = parse_date(&remove_char(date, '-'))?;
    let Some(time) = time else {
        return Some(WrittenTime {
            civil: date.to_datetime(Time::midnight()),
            is_date: true,
            clock: WrittenClock::Wall,
        });
    };
    let place = time.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(time.len());
    let (time, clock) = time.split_at(place);
    let clock = match clock.trim() {
        "" => WrittenClock::Wall,
        "Z" | "z" => WrittenClock::East(0),
        offset => WrittenClock::East(parse_offset(offset)?),
    };
    let (time, tomorrow) = parse_time_of_day(&remove_char(time, ':'))?;
    let date = if tomorrow { date.checked_add(1.day()).ok()? } else { date };
    Some(WrittenTime { civil: date.to_datetime(time), is_date: false, clock })
}

fn remove_char(text: &str, sign: char) -> String {
    text.chars().filter(|c| *c != sign).collect()
}

fn parse_digits(text: &str) -> Option<i32> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) { None } else { text.parse().ok() }
}

fn parse_date(text: &str) -> Option<Date> {
    if text.len() != 8 {
        return None;
    }
    let part = |from, to| i16::try_from(parse_digits(text.get(from..to)?)?).ok();
    let small = |from, to| i8::try_from(part(from, to)?).ok();
    Date::new(part(0, 4)?, small(4, 6)?, small(6, 8)?).ok()
}

/// The time, and whether it is that of the next day: the end of a day may be written as 24 o'clock. A leap second is the
/// last one of its minute here.
fn parse_time_of_day(text: &str) -> Option<(Time, bool)> {
    if text.len() != 6 && text.len() != 4 {
        return None;
    }
    let part = |from, to| i8::try_from(parse_digits(text.get(from..to)?)?).ok();
    let hour = part(0, 2)?;
    let minute = part(2, 4)?;
    let second = if text.len() == 6 { part(4, 6)? } else { 0 };
    if (hour, minute, second) == (24, 0, 0) {
        return Some((Time::midnight(), true));
    }
    Some((Time::new(hour, minute, if second == 60 { 59 } else { second }, 0).ok()?, false))
}

/// "+0100", "-03:30", "+010000": seconds east of Greenwich.
pub fn parse_offset(text: &str) -> Option<i32> {
    let text = remove_char(text.trim(), ':');
    let (minus, digits) = match text.strip_prefix(['-', '\u{2212}']) {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(&text)),
    };
    let part = |from, to| parse_digits(digits.get(from..to)?);
    let seconds = match digits.len() {
        1 => part(0, 1)? * 3600,
        2 => part(0, 2)? * 3600,
        4 => part(0, 2)? * 3600 + part(2, 4)? * 60,
        6 => part(0, 2)? * 3600 + part(2, 4)? * 60 + part(4, 6)?,
        _ => return None,
    };
    (seconds < 26 * 3600).then_some(if minus { -seconds } else { seconds })
}

/// "PT45M", "-P1D", "P2W", "P1DT12H". None for anything else.
pub fn parse_duration(text: &str) -> Option<IcsDuration> {
    let text = text.trim().to_ascii_uppercase();
    let (minus, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(&text)),
    };
    let mut length = IcsDuration { days: 0, seconds: 0 };
    let mut number = String::new();
    let mut timed = false;
    let mut parts = 0;
    for c in text.strip_prefix('P')?.chars() {
        if c.is_ascii_digit() && number.len() < MAX_DIGITS {
            number.push(c);
            continue;
        }
        if c == 'T' && number.is_empty() && !timed {
            timed = true;
            continue;
        }
        let count: i64 = number.parse().ok()?;
        let (days, seconds) = match (c, timed) {
            ('W', false) => (count * 7, 0),
            ('D', false) => (count, 0),
            ('H', true) => (0, count * 3600),
            ('M', true) => (0, count * 60),
            ('S', true) => (0, count),
            _ => return None,
        };
        length = IcsDuration { days: length.days + days, seconds: length.seconds + seconds };
        number.clear();
        parts += 1;
    }
    let sign = if minus { -1 } else { 1 };
    (parts > 0 && number.is_empty()).then_some(IcsDuration { days: sign * length.days, seconds: sign * length.seconds })
}

/// "20260301T090000Z/PT1H", "20260301T090000Z/20260301T100000Z".
pub fn parse_period(text: &str) -> Option<(WrittenTime, PeriodEnd)> {
    let (start, end) = text.split_once('/')?;
    let end = match parse_duration(end) {
        Some(length) => PeriodEnd::After(length),
        None => PeriodEnd::At(parse_written_time(end)?),
    };
    Some((parse_written_time(start)?, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times() {
        let shown = |text| parse_written_time(text).map(|stamp| (stamp.civil.to_string(), stamp.is_date, stamp.clock));
        for (text, civil, is_date, clock) in [
            ("20260301", "2026-03-01T00:00:00", true, WrittenClock::Wall),
            ("20260301T0930", "2026-03-01T09:30:00", false, WrittenClock::Wall),
            ("2026-03-01T09:30:15Z", "2026-03-01T09:30:15", false, WrittenClock::East(0)),
            ("20260301t093015-0330", "2026-03-01T09:30:15", false, WrittenClock::East(-12_600)),
            ("20260228T240000", "2026-03-01T00:00:00", false, WrittenClock::Wall),
            ("20260301T235960Z", "2026-03-01T23:59:59", false, WrittenClock::East(0)),
        ] {
            assert_eq!(shown(text), Some((civil.to_owned(), is_date, clock)), "{text}");
        }
        for text in ["", "20260230", "2026031", "20260301T250000", "20260301T", "20260301T09+", "2026030é", "now"] {
            assert_eq!(parse_written_time(text), None, "{text:?}");
        }
    }

    #[test]
    fn durations_and_periods() {
        for (text, days, seconds) in [("PT45M", 0, 2700), ("-P1DT1H", -1, -3600), ("+P2W", 14, 0), ("PT0S", 0, 0)] {
            assert_eq!(parse_duration(text), Some(IcsDuration { days, seconds }), "{text}");
        }
        for text in ["", "P", "PT", "P1", "P1H", "PT1D", "1D", "P99999999999999W", "PTT1H"] {
            assert_eq!(parse_duration(text), None, "{text:?}");
        }
        assert!(matches!(parse_period("20260301T090000Z/PT1H"), Some((_, PeriodEnd::After(_)))));
        assert!(matches!(parse_period("20260301T090000/20260301T100000"), Some((_, PeriodEnd::At(_)))));
        assert_eq!(parse_period("20260301T090000"), None);
    }
}
