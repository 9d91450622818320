//! The small English of dates: text to [`Find`] and [`Shift`], without a calendar at hand.
//!
//! It is a closed grammar: what is not understood is an error that lists what is, because a date
//! guessed wrong is worse than none.

use jiff::civil::{Time, Weekday};

use super::vocabulary::{amount_of, month, number, ordinal, parse_which, parse_year, quarter, unit, weekday};

/// A signed distance in time. Months first, then days, then seconds, as a person would count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shift {
    pub months: i64,
    pub days: i64,
    pub seconds: i64,
}

impl Shift {
    pub fn negated(self) -> Self {
        Self { months: -self.months, days: -self.days, seconds: -self.seconds }
    }
}

/// A date, a stretch of days or a moment, relative to some base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Find {
    pub what: What,
    /// "at 17:00": makes a moment of a day.
    pub at: Option<Time>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// "now"
    Now,
    /// "today", "tomorrow", "day before yesterday": days from the base.
    Day(i64),
    /// "tuesday", "next tuesday": `None` counts today.
    Weekday(Option<Which>, Weekday),
    /// "tuesday next week": weeks from the base's week.
    WeekdayOfWeek(Weekday, i64),
    /// "next weekend": weeks from the base's week.
    Weekend(i64),
    /// "next month", "march 2027"
    Period(Period),
    /// "end of next month": the first or the last day of a period.
    Edge(Edge, Period),
    /// "second monday of next month"; negative counts from the end.
    Nth(i32, Weekday, Period),
    /// "in 3 days", "2 weeks ago"
    Shift(Shift),
    /// "last 7 days": from the base back or ahead.
    Window(Shift),
    /// "15th", "15 march", "march 15 2027": the coming one where the year or month is open.
    DayOfMonth { year: Option<i16>, month: Option<i8>, day: i8 },
    /// "2026-02-28"
    Date { year: i16, month: i8, day: i8 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    Last,
    This,
    Next,
}

impl Which {
    pub fn offset(self) -> i64 {
        match self {
            Self::Last => -1,
            Self::This => 0,
            Self::Next => 1,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    First,
    Last,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    /// Weeks, months, quarters or years from that of the base.
    Relative(Unit, i64),
    /// A month by name: of a year, or relative to the base.
    Month(Option<Which>, i8, Option<i16>),
    /// "q3", "q3 2026": without a year, of the base's year.
    Quarter(i8, Option<i16>),
    /// "2027"
    Year(i16),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Week,
    Month,
    Quarter,
    Year,
}

/// Reads what `add` and `subtract` take: "3 days", "2 months and 1 day".
pub fn parse_shift(text: &str) -> Option<Shift> {
    shift(&words(text))
}

/// Reads what `find` takes.
pub fn parse_find(text: &str) -> Option<Find> {
    let words = words(text);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (day, at) = split_time(&words)?;
    let what = match day {
        [] => What::Day(0),
        day => what(day)?,
    };
    Some(Find { what, at })
}

/// Lower-case words without the ones that carry no meaning.
fn words(text: &str) -> Vec<String> {
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
        return Some((day, Some(time(rest.get(1..)?)?)));
    }
    for length in [2, 1] {
        if let Some((day, rest)) = words.len().checked_sub(length).and_then(|position| words.split_at_checked(position))
            && let Some(time) = time(rest)
        {
            return Some((day, Some(time)));
        }
    }
    (!words.is_empty()).then_some((words, None))
}

/// "17:00", "5pm", "5:30 pm", "noon", "midnight".
fn time(words: &[&str]) -> Option<Time> {
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
    let hour: i8 = number(parts.next()?)?;
    let minute = parts.next();
    let second: i8 = parts.next().map_or(Some(0), number)?;
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
    let minute: i8 = minute.map_or(Some(0), number)?;
    Time::new(hour, minute, second, 0).ok()
}

fn what(words: &[&str]) -> Option<What> {
    Some(match words {
        ["now"] => What::Now,
        ["today"] => What::Day(0),
        ["tomorrow"] => What::Day(1),
        ["yesterday"] => What::Day(-1),
        ["day", "after", "tomorrow"] => What::Day(2),
        ["day", "before", "yesterday"] => What::Day(-2),
        ["in", rest @ ..] => match shift(rest) {
            Some(shift) => What::Shift(shift),
            None => What::Period(period(rest)?),
        },
        [rest @ .., "ago"] => What::Shift(shift(rest)?.negated()),
        [rest @ .., "from", "now"] | [rest @ .., "later"] => What::Shift(shift(rest)?),
        ["start" | "beginning", "of", rest @ ..] | ["first", "day", "of", rest @ ..] => {
            What::Edge(Edge::First, period(rest)?)
        }
        ["end", "of", rest @ ..] | ["last", "day", "of", rest @ ..] => What::Edge(Edge::Last, period(rest)?),
        ["weekend"] => What::Weekend(0),
        [which, "weekend"] => What::Weekend(parse_which(which)?.offset()),
        _ => {
            return weekday_phrase(words)
                .or_else(|| day_of_month(words))
                .or_else(|| window(words))
                .or_else(|| period(words).map(What::Period));
        }
    })
}

fn weekday_phrase(words: &[&str]) -> Option<What> {
    Some(match words {
        [day] => What::Weekday(None, weekday(day)?),
        [day, "of", which, "week"] | [day, which, "week"] | [which, "week", day] => {
            What::WeekdayOfWeek(weekday(day)?, parse_which(which)?.offset())
        }
        [which, day] => What::Weekday(Some(parse_which(which)?), weekday(day)?),
        [nth, day, "of" | "in", rest @ ..] => What::Nth(ordinal(nth)?, weekday(day)?, period(rest)?),
        _ => return None,
    })
}

/// "2026-02-28", "15th", "15 march 2027", "15th of march", "march 15".
fn day_of_month(words: &[&str]) -> Option<What> {
    if let [date] = words
        && let Some(date) = iso_date(date)
    {
        return Some(date);
    }
    let (day, month, year) = match words {
        // Without a month only "15th" is a day; "15" alone says nothing.
        [day] if day.parse::<i8>().is_err() => (day, None, None),
        [day, "of", name] => (day, Some(month(name)?), None),
        [day, "of", name, year] => (day, Some(month(name)?), Some(parse_year(year)?)),
        [first, second] => match month(first) {
            Some(month) => (second, Some(month), None),
            None => (first, Some(month(second)?), None),
        },
        [first, second, year] => match month(first) {
            Some(month) => (second, Some(month), Some(parse_year(year)?)),
            None => (first, Some(month(second)?), Some(parse_year(year)?)),
        },
        _ => return None,
    };
    let digits = ["st", "nd", "rd", "th"].iter().find_map(|suffix| day.strip_suffix(suffix)).unwrap_or(day);
    let day = number::<i8>(digits).filter(|day| (1..=31).contains(day))?;
    Some(What::DayOfMonth { year, month, day })
}

fn iso_date(word: &str) -> Option<What> {
    let mut parts = word.split('-');
    let year = parts.next().and_then(parse_year)?;
    let month = number(parts.next()?)?;
    let day = number(parts.next()?)?;
    parts.next().is_none().then_some(What::Date { year, month, day })
}

/// "last 7 days", "next 2 weeks", "past hour".
fn window(words: &[&str]) -> Option<What> {
    let (which, rest) = words.split_first()?;
    let distance = match rest {
        [unit @ ("second" | "minute" | "hour" | "day")] => shift(&["1", unit])?,
        [amount, _, ..] if amount_of(amount).is_some() => shift(rest)?,
        _ => return None,
    };
    match (parse_which(which)?, rest) {
        (Which::Last, ["day"]) => Some(What::Day(-1)),
        (Which::Next, ["day"]) => Some(What::Day(1)),
        (Which::Last, _) => Some(What::Window(distance.negated())),
        (Which::Next, _) => Some(What::Window(distance)),
        (Which::This, _) => None,
    }
}

fn period(words: &[&str]) -> Option<Period> {
    match words {
        [word] => unit(word)
            .map(|unit| Period::Relative(unit, 0))
            .or_else(|| month(word).map(|month| Period::Month(None, month, None)))
            .or_else(|| quarter(word).map(|quarter| Period::Quarter(quarter, None)))
            .or_else(|| parse_year(word).map(Period::Year)),
        [first, second] => match parse_which(first) {
            Some(which) => unit(second)
                .map(|unit| Period::Relative(unit, which.offset()))
                .or_else(|| month(second).map(|month| Period::Month(Some(which), month, None))),
            None => {
                let year = Some(parse_year(second)?);
                month(first)
                    .map(|month| Period::Month(None, month, year))
                    .or_else(|| quarter(first).map(|quarter| Period::Quarter(quarter, year)))
            }
        },
        _ => None,
    }
}

fn shift<W: AsRef<str>>(words: &[W]) -> Option<Shift> {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).filter(|word| *word != "and").collect();
    let (pairs, rest) = words.as_chunks::<2>();
    if pairs.is_empty() || !rest.is_empty() {
        return None;
    }
    let mut sum = Shift::default();
    for [amount, unit] in pairs {
        let amount = amount_of(amount)?;
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
