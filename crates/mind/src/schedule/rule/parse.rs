//! Reading a rule, strictly: a part that is not understood is refused, for a rule read in half is due at wrong times.

use std::str::FromStr;

use jiff::{
    Timestamp,
    civil::{Date, DateTime, Time, Weekday},
    tz::TimeZone,
};

use super::{Frequency, MOST_COUNTED, MOST_PICKED_FROM, RuleEnd, ScheduleRule};

/// Longest rule, in bytes.
const LONGEST: usize = 500;
/// Largest INTERVAL.
const MOST_INTERVAL: i32 = 10_000;

impl ScheduleRule {
    /// Reads `FREQ=…;…`, with or without `RRULE:` in front.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim().to_ascii_uppercase();
        if text.len() > LONGEST {
            return Err(format!("rrule: expected at most {LONGEST} characters, found {}", text.len()));
        }
        let mut rule = None;
        let mut parts = Vec::new();
        for part in text.strip_prefix("RRULE:").unwrap_or(&text).split(';').filter(|part| !part.is_empty()) {
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| format!("rrule: expected NAME=value, such as FREQ=DAILY, found {part:?}"))?;
            if parts.iter().any(|(known, _)| *known == name) {
                return Err(format!("rrule: {name} is there twice"));
            }
            parts.push((name, value));
            if name == "FREQ" {
                rule = Some(Self::with_frequency(parse_frequency(value)?));
            }
        }
        let mut rule = rule.ok_or("rrule: FREQ is missing, such as FREQ=WEEKLY")?;
        for (name, value) in parts {
            rule.set_part(name, value)?;
        }
        rule.check_parts()?;
        Ok(rule)
    }

    fn with_frequency(frequency: Frequency) -> Self {
        Self {
            frequency,
            interval: 1,
            count: None,
            until: None,
            months: Vec::new(),
            month_days: Vec::new(),
            weekdays: Vec::new(),
            hours: Vec::new(),
            minutes: Vec::new(),
            positions: Vec::new(),
            week_start: Weekday::Monday,
        }
    }

    fn set_part(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "FREQ" => {}
            "INTERVAL" => self.interval = parse_number(name, value, 1, MOST_INTERVAL)?,
            "COUNT" => self.count = Some(parse_number(name, value, 1, MOST_COUNTED)?),
            "UNTIL" => self.until = Some(parse_until(value)?),
            "BYMONTH" => self.months = parse_numbers(name, value, 1, 12)?,
            "BYMONTHDAY" => {
                self.month_days = parse_numbers(name, value, -31, 31)?;
                reject_zero(name, self.month_days.contains(&0))?;
            }
            "BYDAY" => self.weekdays = value.split(',').map(parse_numbered_weekday).collect::<Result<_, _>>()?,
            "BYHOUR" => self.hours = parse_numbers(name, value, 0, 23)?,
            "BYMINUTE" => self.minutes = parse_numbers(name, value, 0, 59)?,
            "BYSETPOS" => {
                self.positions = parse_numbers(name, value, -366, 366)?;
                reject_zero(name, self.positions.contains(&0))?;
            }
            "WKST" => self.week_start = parse_weekday(value).ok_or_else(|| not_a_weekday(name, value))?,
            "BYSECOND" if value == "0" => {}
            "DTSTART" => return Err("rrule: say when it begins with at, not with DTSTART".to_owned()),
            _ => {
                return Err(format!(
                    "rrule: {name} is not understood; understood are FREQ, INTERVAL, COUNT, UNTIL, BYMONTH, BYMONTHDAY, BYDAY, BYHOUR, BYMINUTE, BYSETPOS and WKST"
                ));
            }
        }
        Ok(())
    }

    fn check_parts(&self) -> Result<(), String> {
        let counted = self.weekdays.iter().any(|(nth, _)| nth.is_some());
        let long = matches!(self.frequency, Frequency::Yearly | Frequency::Monthly);
        if counted && !long {
            return Err("rrule: BYDAY with numbers, such as 1MO, goes with FREQ=MONTHLY or YEARLY only".to_owned());
        }
        if !self.month_days.is_empty() && self.frequency == Frequency::Weekly {
            return Err("rrule: BYMONTHDAY does not go with FREQ=WEEKLY".to_owned());
        }
        if self.count.is_some() && self.until.is_some() {
            return Err("rrule: expected COUNT or UNTIL, found both".to_owned());
        }
        let times = self.hours.len().max(1) * self.minutes.len().max(1);
        if !self.positions.is_empty() && (self.is_within_days() || times * 366 > MOST_PICKED_FROM) {
            return Err("rrule: BYSETPOS picks from days, with few times a day".to_owned());
        }
        Ok(())
    }
}

fn parse_frequency(value: &str) -> Result<Frequency, String> {
    Ok(match value {
        "YEARLY" => Frequency::Yearly,
        "MONTHLY" => Frequency::Monthly,
        "WEEKLY" => Frequency::Weekly,
        "DAILY" => Frequency::Daily,
        "HOURLY" => Frequency::Hourly,
        "MINUTELY" => Frequency::Minutely,
        _ => {
            return Err(format!(
                "rrule: FREQ: expected YEARLY, MONTHLY, WEEKLY, DAILY, HOURLY or MINUTELY, found {value:?}"
            ));
        }
    })
}

fn parse_number<T: FromStr + PartialOrd + std::fmt::Display>(
    name: &str,
    text: &str,
    least: T,
    most: T,
) -> Result<T, String> {
    match text.strip_prefix('+').unwrap_or(text).parse::<T>() {
        Ok(number) if (&least..=&most).contains(&&number) => Ok(number),
        _ => Err(format!("rrule: {name}: expected a number from {least} to {most}, found {text:?}")),
    }
}

/// In order, each once.
fn parse_numbers<T: FromStr + Ord + Copy + std::fmt::Display>(
    name: &str,
    text: &str,
    least: T,
    most: T,
) -> Result<Vec<T>, String> {
    let mut numbers =
        text.split(',').map(|one| parse_number(name, one, least, most)).collect::<Result<Vec<T>, String>>()?;
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

fn reject_zero(name: &str, found: bool) -> Result<(), String> {
    if found {
        Err(format!("rrule: {name}: 0 is none; they are counted from 1, or from -1 at the end"))
    } else {
        Ok(())
    }
}

fn parse_weekday(text: &str) -> Option<Weekday> {
    Some(match text {
        "MO" => Weekday::Monday,
        "TU" => Weekday::Tuesday,
        "WE" => Weekday::Wednesday,
        "TH" => Weekday::Thursday,
        "FR" => Weekday::Friday,
        "SA" => Weekday::Saturday,
        "SU" => Weekday::Sunday,
        _ => return None,
    })
}

fn not_a_weekday(name: &str, text: &str) -> String {
    format!("rrule: {name}: expected MO, TU, WE, TH, FR, SA or SU, found {text:?}")
}

/// `MO`, `1MO`, `-1FR`.
fn parse_numbered_weekday(text: &str) -> Result<(Option<i16>, Weekday), String> {
    let name = text.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '-' || letter == '+');
    let count = text.strip_suffix(name).unwrap_or_default();
    let weekday = parse_weekday(name).ok_or_else(|| not_a_weekday("BYDAY", text))?;
    if count.is_empty() {
        return Ok((None, weekday));
    }
    let nth = parse_number("BYDAY", count, -53, 53)?;
    reject_zero("BYDAY", nth == 0)?;
    Ok((Some(nth), weekday))
}

/// `20261231`, `20261231T170000` on the wall clock, or `20261231T170000Z`; with or without dashes and colons.
fn parse_until(text: &str) -> Result<RuleEnd, String> {
    let wrong =
        || format!("rrule: UNTIL: expected such as 20261231, 20261231T170000 or 20261231T170000Z, found {text:?}");
    let plain = text.strip_suffix('Z');
    if let Some(plain) = plain {
        let wall = plain.parse::<DateTime>().map_err(|_| wrong())?;
        let moment = TimeZone::UTC.to_timestamp(wall).map_err(|_| wrong())?;
        return Ok(RuleEnd::Moment(moment));
    }
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(RuleEnd::Moment(moment));
    }
    let wall = text.parse::<DateTime>().map_err(|_| wrong())?;
    if text.contains('T') {
        return Ok(RuleEnd::Wall(wall));
    }
    let last = |day: Date| day.to_datetime(Time::constant(23, 59, 59, 999_999_999));
    Ok(RuleEnd::Wall(last(wall.date())))
}
