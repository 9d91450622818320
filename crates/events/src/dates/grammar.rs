//! The small English of dates: text to [`DateQuery`] and [`DateShift`], without a calendar at hand.
//!
//! It is a closed grammar: what is not understood is an error that lists what is, because a date
//! guessed wrong is worse than none.

use jiff::civil::{Time, Weekday};

use super::vocabulary::{
    parse_amount, parse_month, parse_number, parse_ordinal, parse_quarter, parse_relative_term, parse_unit,
    parse_weekday, parse_year,
};

/// A signed distance in time. Months first, then days, then seconds, as a person would count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DateShift {
    pub months: i64,
    pub days: i64,
    pub seconds: i64,
}

impl DateShift {
    pub fn negate(self) -> Self {
        Self { months: -self.months, days: -self.days, seconds: -self.seconds }
    }
}

/// A date, a stretch of days or a moment, relative to some base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DateQuery {
    pub what: DateSpec,
    /// "at 17:00": makes a moment of a day.
    pub at: Option<Time>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DateSpec {
    /// "now"
    Now,
    /// "today", "tomorrow", "day before yesterday": days from the base.
    Day(i64),
    /// "tuesday", "next tuesday": `None` counts today.
    Weekday(Option<RelativeTerm>, Weekday),
    /// "tuesday next week": weeks from the base's week.
    WeekdayOfWeek(Weekday, i64),
    /// "next weekend": weeks from the base's week.
    Weekend(i64),
    /// "next month", "march 2027"
    Period(CalendarPeriod),
    /// "end of next month": the first or the last day of a period.
    Edge(PeriodEdge, CalendarPeriod),
    /// "second monday of next month"; negative counts from the end.
    Nth(i32, Weekday, CalendarPeriod),
    /// "in 3 days", "2 weeks ago"
    Shift(DateShift),
    /// "last 7 days": from the base back or ahead.
    Window(DateShift),
    /// "15th", "15 march", "march 15 2027": the coming one where the year or month is open.
    DayOfMonth { year: Option<i16>, month: Option<i8>, day: i8 },
    /// "2026-02-28"
    Date { year: i16, month: i8, day: i8 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelativeTerm {
    Last,
    This,
    Next,
}

impl RelativeTerm {
    pub fn offset(self) -> i64 {
        match self {
            Self::Last => -1,
            Self::This => 0,
            Self::Next => 1,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeriodEdge {
    First,
    Last,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CalendarPeriod {
    /// Weeks, months, quarters or years from that of the base.
    Relative(CalendarUnit, i64),
    /// A month by name: of a year, or relative to the base.
    Month(Option<RelativeTerm>, i8, Option<i16>),
    /// "q3", "q3 2026": without a year, of the base's year.
    Quarter(i8, Option<i16>),
    /// "2027"
    Year(i16),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CalendarUnit {
    Week,
    Month,
    Quarter,
    Year,
}

/// Reads what `add` and `subtract` take: "3 days", "2 months and 1 day".
pub fn parse_shift(text: &str) -> Option<DateShift> {
    parse_shift_words(&split_words(text))
}

/// Reads what `find` takes.
pub fn parse_query(text: &str) -> Option<DateQuery> {
    let words = split_words(text);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (day, at) = split_time(&words)?;
    let what = match day {
        [] => DateSpec::Day(0),
        day => parse_date_spec(day)?,
    };
    Some(DateQuery { what, at })
}

/// Lower-case words without the ones that carry no meaning.
fn split_words(text: &str) -> Vec<String> {
    text.to_lowercase()
        .split(|c: char| c.is_whitespace() || c == ',')
        .filter(|word| !matches!(*word, "" | "the" | "on"))
        .map(str::to_owned)
        .collect()
}

/// Splits "tomorrow at 5 pm" into day and time. A time may stand alone.
fn split_time<'a>(words: &'a [&'a str]) -> Option<(&'a [&'a str], Option<Time>)> {
    if let Some(position) = words.iter().position(|word| *word == "at") {
        let (day, rest) = words.split_at(position);
        return Some((day, Some(parse_time(rest.get(1..)?)?)));
    }
    for length in [2, 1] {
        if let Some((day, rest)) = words.len().checked_sub(length).and_then(|position| words.split_at_checked(position))
            && let Some(time) = parse_time(rest)
        {
            return Some((day, Some(time)));
        }
    }
    (!words.is_empty()).then_some((words, None))
}

/// "17:00", "5pm", "5:30 pm", "noon", "midnight".
fn parse_time(words: &[&str]) -> Option<Time> {
    let (clock, half) = match words {
        ["noon"] => return Time::new(12, 0, 0, 0).ok(),
        ["midnight"] => return Some(Time::midnight()),
        [clock, half @ ("am" | "pm")] => (*clock, Some(*half)),
        [word] => match word.strip_suffix("am") {
            Some(clock) => (clock, Some("am")),
            None => match word.strip_suffix("pm") {
                Some(clock) => (clock, Some("pm")),
                None => (*word, None),
            },
        },
        _ => return None,
    };
    let mut parts = clock.split(':');
    let hour: i8 = parse_number(parts.next()?)?;
    let minute = parts.next();
    let second: i8 = parts.next().map_or(Some(0), parse_number)?;
    if parts.next().is_some() {
        return None;
    }
    let hour = match half {
        // A bare number is an hour only with am or pm: "15" may be a day.
        None => minute.and(Some(hour))?,
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some("pm") => hour % 12 + 12,
        Some(_) => hour % 12,
    };
    let minute: i8 = minute.map_or(Some(0), parse_number)?;
    Time::new(hour, minute, second, 0).ok()
}

fn parse_date_spec(words: &[&str]) -> Option<DateSpec> {
    Some(match words {
        ["now"] => DateSpec::Now,
        ["today"] => DateSpec::Day(0),
        ["tomorrow"] => DateSpec::Day(1),
        ["yesterday"] => DateSpec::Day(-1),
        ["day", "after", "tomorrow"] => DateSpec::Day(2),
        ["day", "before", "yesterday"] => DateSpec::Day(-2),
        ["in", rest @ ..] => match parse_shift_words(rest) {
            Some(shift) => DateSpec::Shift(shift),
            None => DateSpec::Period(parse_period(rest)?),
        },
        [rest @ .., "ago"] => DateSpec::Shift(parse_shift_words(rest)?.negate()),
        [rest @ .., "from", "now"] | [rest @ .., "later"] => DateSpec::Shift(parse_shift_words(rest)?),
        ["start" | "beginning", "of", rest @ ..] | ["first", "day", "of", rest @ ..] => {
            DateSpec::Edge(PeriodEdge::First, parse_period(rest)?)
        }
        ["end", "of", rest @ ..] | ["last", "day", "of", rest @ ..] => {
            DateSpec::Edge(PeriodEdge::Last, parse_period(rest)?)
        }
        ["weekend"] => DateSpec::Weekend(0),
        [which, "weekend"] => DateSpec::Weekend(parse_relative_term(which)?.offset()),
        _ => {
            return parse_weekday_phrase(words)
                .or_else(|| parse_day_of_month(words))
                .or_else(|| parse_window(words))
                .or_else(|| parse_period(words).map(DateSpec::Period));
        }
    })
}

fn parse_weekday_phrase(words: &[&str]) -> Option<DateSpec> {
    Some(match words {
        [day] => DateSpec::Weekday(None, parse_weekday(day)?),
        [day, "of", which, "week"] | [day, which, "week"] | [which, "week", day] => {
            DateSpec::WeekdayOfWeek(parse_weekday(day)?, parse_relative_term(which)?.offset())
        }
        [which, day] => DateSpec::Weekday(Some(parse_relative_term(which)?), parse_weekday(day)?),
        [nth, day, "of" | "in", rest @ ..] => {
            DateSpec::Nth(parse_ordinal(nth)?, parse_weekday(day)?, parse_period(rest)?)
        }
        _ => return None,
    })
}

/// "2026-02-28", "15th", "15 march 2027", "15th of march", "march 15".
fn parse_day_of_month(words: &[&str]) -> Option<DateSpec> {
    if let [date] = words
        && let Some(date) = parse_iso_date(date)
    {
        return Some(date);
    }
    let (day, month, year) = match words {
        // Without a month only "15th" is a day; "15" alone says nothing.
        [day] if day.parse::<i8>().is_err() => (day, None, None),
        [day, "of", name] => (day, Some(parse_month(name)?), None),
        [day, "of", name, year] => (day, Some(parse_month(name)?), Some(parse_year(year)?)),
        [first, second] => match parse_month(first) {
            Some(month) => (second, Some(month), None),
            None => (first, Some(parse_month(second)?), None),
        },
        [first, second, year] => match parse_month(first) {
            Some(month) => (second, Some(month), Some(parse_year(year)?)),
            None => (first, Some(parse_month(second)?), Some(parse_year(year)?)),
        },
        _ => return None,
    };
    let digits = ["st", "nd", "rd", "th"].iter().find_map(|suffix| day.strip_suffix(suffix)).unwrap_or(day);
    let day = parse_number::<i8>(digits).filter(|day| (1..=31).contains(day))?;
    Some(DateSpec::DayOfMonth { year, month, day })
}

fn parse_iso_date(word: &str) -> Option<DateSpec> {
    let mut parts = word.split('-');
    let year = parts.next().and_then(parse_year)?;
    let month = parse_number(parts.next()?)?;
    let day = parse_number(parts.next()?)?;
    parts.next().is_none().then_some(DateSpec::Date { year, month, day })
}

/// "last 7 days", "next 2 weeks", "past hour".
fn parse_window(words: &[&str]) -> Option<DateSpec> {
    let (which, rest) = words.split_first()?;
    let distance = match rest {
        [unit @ ("second" | "minute" | "hour" | "day")] => parse_shift_words(&["1", unit])?,
        [amount, _, ..] if parse_amount(amount).is_some() => parse_shift_words(rest)?,
        _ => return None,
    };
    match (parse_relative_term(which)?, rest) {
        (RelativeTerm::Last, ["day"]) => Some(DateSpec::Day(-1)),
        (RelativeTerm::Next, ["day"]) => Some(DateSpec::Day(1)),
        (RelativeTerm::Last, _) => Some(DateSpec::Window(distance.negate())),
        (RelativeTerm::Next, _) => Some(DateSpec::Window(distance)),
        (RelativeTerm::This, _) => None,
    }
}

fn parse_period(words: &[&str]) -> Option<CalendarPeriod> {
    match words {
        [word] => parse_unit(word)
            .map(|unit| CalendarPeriod::Relative(unit, 0))
            .or_else(|| parse_month(word).map(|month| CalendarPeriod::Month(None, month, None)))
            .or_else(|| parse_quarter(word).map(|quarter| CalendarPeriod::Quarter(quarter, None)))
            .or_else(|| parse_year(word).map(CalendarPeriod::Year)),
        [first, second] => match parse_relative_term(first) {
            Some(which) => parse_unit(second)
                .map(|unit| CalendarPeriod::Relative(unit, which.offset()))
                .or_else(|| parse_month(second).map(|month| CalendarPeriod::Month(Some(which), month, None))),
            None => {
                let year = Some(parse_year(second)?);
                parse_month(first)
                    .map(|month| CalendarPeriod::Month(None, month, year))
                    .or_else(|| parse_quarter(first).map(|quarter| CalendarPeriod::Quarter(quarter, year)))
            }
        },
        _ => None,
    }
}

fn parse_shift_words<W: AsRef<str>>(words: &[W]) -> Option<DateShift> {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).filter(|word| *word != "and").collect();
    let (pairs, rest) = words.as_chunks::<2>();
    if pairs.is_empty() || !rest.is_empty() {
        return None;
    }
    let mut sum = DateShift::default();
    for [amount, unit] in pairs {
        let amount = parse_amount(amount)?;
        let (field, factor) = match unit.strip_suffix('s').unwrap_or(unit) {
            "year" => (&mut sum.months, 12),
            "quarter" => (&mut sum.months, 3),
            "month" => (&mut sum.months, 1),
            "fortnight" => (&mut sum.days, 14),
            "week" => (&mut sum.days, 7),
            "day" => (&mut sum.days, 1),
            "hour" | "hr" => (&mut sum.seconds, 3600),
            "minute" | "min" => (&mut sum.seconds, 60),
            "second" | "sec" => (&mut sum.seconds, 1),
            _ => return None,
        };
        *field = field.checked_add(amount.checked_mul(factor)?)?;
    }
    Some(sum)
}
