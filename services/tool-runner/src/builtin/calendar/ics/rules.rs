//! Recurrence rules as calendar files have them (RFC 5545, section 3.3.10).

use std::fmt::Display;
use std::str::FromStr;

use calcard::common::{IanaParse as _, IanaString as _};
use calcard::icalendar::{ICalendarDay, ICalendarFrequency, ICalendarMonth, ICalendarRecurrenceRule, ICalendarWeekday};

use super::values::{WrittenTime, parse_written_time};

/// Numbers in one part of a rule.
const MAX_NUMBERS: usize = 400;

/// A rule, and what was said in it that is not done.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedRule {
    /// Without its last time.
    pub rule: ICalendarRecurrenceRule,
    pub until: Option<WrittenTime>,
    /// Complete sentences about parts that are passed over.
    pub notes: Vec<String>,
}

/// Reads `FREQ=…;…`.
///
/// # Errors
/// Names the part that cannot be followed: a rule followed in half would give wrong times.
pub fn read(text: &str) -> Result<ParsedRule, String> {
    // Some programs escape what separates the parts, as if the rule were a text.
    let text = text.trim().to_ascii_uppercase().replace('\\', "");
    let mut parts: Vec<(&str, &str)> = Vec::new();
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').ok_or_else(|| format!("{part:?} is no part of a rule"))?;
        if parts.iter().any(|(known, _)| *known == name.trim()) {
            return Err(format!("{} is there twice", name.trim()));
        }
        parts.push((name.trim(), value.trim()));
    }
    if parts.is_empty() {
        return Err("it is empty".to_owned());
    }
    let frequency = parts.iter().find(|(name, _)| *name == "FREQ").ok_or("FREQ is missing")?.1;
    let freq = ICalendarFrequency::parse(frequency.as_bytes()).ok_or_else(|| format!("FREQ={frequency} is unknown"))?;
    let rule = ICalendarRecurrenceRule { freq, ..ICalendarRecurrenceRule::default() };
    let mut reading = ParsedRule { rule, until: None, notes: Vec::new() };
    for (name, value) in parts {
        reading.apply_part(name, value)?;
    }
    reading.check_combinations()?;
    Ok(reading)
}

impl ParsedRule {
    fn apply_part(&mut self, name: &str, value: &str) -> Result<(), String> {
        let rule = &mut self.rule;
        match name {
            "FREQ" => {}
            "INTERVAL" => rule.interval = parse_interval(value, &mut self.notes)?,
            "COUNT" => rule.count = parse_count(value, &mut self.notes)?,
            "UNTIL" => {
                self.until = Some(parse_written_time(value).ok_or_else(|| format!("UNTIL={value} is no date or time"))?)
            }
            "BYSECOND" => rule.bysecond = parse_numbers(name, value, 0, 59)?,
            "BYMINUTE" => rule.byminute = parse_numbers(name, value, 0, 59)?,
            "BYHOUR" => rule.byhour = parse_numbers(name, value, 0, 23)?,
            "BYMONTHDAY" => rule.bymonthday = reject_zero(name, parse_numbers(name, value, -31, 31)?)?,
            "BYYEARDAY" => rule.byyearday = reject_zero(name, parse_numbers(name, value, -366, 366)?)?,
            "BYWEEKNO" => rule.byweekno = reject_zero(name, parse_numbers(name, value, -53, 53)?)?,
            "BYSETPOS" => rule.bysetpos = reject_zero(name, parse_numbers(name, value, -366, 366)?)?,
            "BYMONTH" => {
                let months = parse_numbers::<u8>(name, value, 1, 12)?.into_iter();
                rule.bymonth = months.map(|month| ICalendarMonth::new(month, false)).collect();
            }
            "BYDAY" => rule.byday = value.split(',').take(MAX_NUMBERS).map(parse_byday).collect::<Result<_, _>>()?,
            "WKST" => rule.wkst = Some(parse_weekday(value)?),
            // RFC 7529: what it adds says nothing new in the calendar that everybody has.
            "RSCALE" if value == "GREGORIAN" => {}
            "SKIP" if value == "OMIT" => {}
            _ => return Err(format!("{name}={value} is not understood")),
        }
        Ok(())
    }

    fn check_combinations(&mut self) -> Result<(), String> {
        let rule = &mut self.rule;
        let frequency = rule.freq;
        let long = matches!(frequency, ICalendarFrequency::Yearly | ICalendarFrequency::Monthly);
        if !long && rule.byday.iter().any(|day| day.ordwk.is_some()) {
            rule.byday.iter_mut().for_each(|day| day.ordwk = None);
            self.notes.push("numbers in BYDAY go with FREQ=MONTHLY or YEARLY only and are passed over".to_owned());
        }
        let within = |name: &str| Err(format!("{name} does not go with FREQ={}", frequency_name(frequency)));
        if !rule.bymonthday.is_empty() && frequency == ICalendarFrequency::Weekly {
            return within("BYMONTHDAY");
        }
        if !rule.byweekno.is_empty() && frequency != ICalendarFrequency::Yearly {
            return within("BYWEEKNO");
        }
        let days = [ICalendarFrequency::Monthly, ICalendarFrequency::Weekly, ICalendarFrequency::Daily];
        if !rule.byyearday.is_empty() && days.contains(&frequency) {
            return within("BYYEARDAY");
        }
        Ok(())
    }
}

fn parse_count(value: &str, notes: &mut Vec<String>) -> Result<Option<u32>, String> {
    let count: i64 = parse_number("COUNT", value, i64::MIN, i64::from(u32::MAX))?;
    if count < 0 {
        notes.push(format!("COUNT={value} is below 0 and is passed over: it recurs without a limit"));
    } else if count == 0 {
        notes.push("COUNT=0 counts nothing: only its first occurrence is shown".to_owned());
    }
    Ok(u32::try_from(count).ok())
}

fn parse_interval(value: &str, notes: &mut Vec<String>) -> Result<Option<u16>, String> {
    let interval: u16 = parse_number("INTERVAL", value, 0, u16::MAX)?;
    if interval == 0 {
        notes.push("INTERVAL=0 is passed over: it is taken for 1".to_owned());
    }
    Ok(Some(interval).filter(|interval| *interval > 0))
}

fn frequency_name(frequency: ICalendarFrequency) -> &'static str {
    frequency.as_str()
}

fn parse_number<T: FromStr + PartialOrd + Display>(name: &str, text: &str, least: T, most: T) -> Result<T, String> {
    let text = text.trim();
    match text.strip_prefix('+').unwrap_or(text).parse::<T>() {
        Ok(number) if (&least..=&most).contains(&&number) => Ok(number),
        _ => Err(format!("{name}={text} is not understood")),
    }
}

fn parse_numbers<T: FromStr + PartialOrd + Display + Copy>(
    name: &str,
    text: &str,
    least: T,
    most: T,
) -> Result<Vec<T>, String> {
    if text.split(',').count() > MAX_NUMBERS {
        return Err(format!("{name} has too many numbers"));
    }
    text.split(',').map(|one| parse_number(name, one, least, most)).collect()
}

fn reject_zero<T: PartialEq + Default>(name: &str, numbers: Vec<T>) -> Result<Vec<T>, String> {
    if numbers.contains(&T::default()) { Err(format!("{name}=0 is not understood")) } else { Ok(numbers) }
}

fn parse_weekday(text: &str) -> Result<ICalendarWeekday, String> {
    ICalendarWeekday::parse(text.as_bytes()).ok_or_else(|| format!("{text:?} is no day of the week"))
}

/// "MO", "1MO", "-1FR".
fn parse_byday(text: &str) -> Result<ICalendarDay, String> {
    let text = text.trim();
    let name = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-' || c == '+');
    let count = text.strip_suffix(name).unwrap_or_default();
    let ordwk = if count.is_empty() { None } else { Some(parse_number::<i16>("BYDAY", count, -53, 53)?) };
    if ordwk == Some(0) {
        return Err(format!("BYDAY={text} is not understood"));
    }
    Ok(ICalendarDay { ordwk, weekday: parse_weekday(name)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_followed_is_refused_by_name() {
        for (text, part) in [
            ("", "empty"),
            ("BYDAY=MO", "FREQ"),
            ("FREQ=SOMETIMES", "FREQ=SOMETIMES"),
            ("FREQ=DAILY;BYEASTER=1", "BYEASTER"),
            ("FREQ=DAILY;BYHOUR=24", "BYHOUR=24"),
            ("FREQ=MONTHLY;BYMONTHDAY=0", "BYMONTHDAY"),
            ("FREQ=MONTHLY;BYDAY=XX", "XX"),
            ("FREQ=WEEKLY;BYMONTHDAY=1", "BYMONTHDAY"),
            ("FREQ=DAILY;UNTIL=tomorrow", "UNTIL"),
            ("FREQ=DAILY;INTERVAL=70000", "INTERVAL"),
            ("FREQ=DAILY;COUNT=x", "COUNT"),
            ("FREQ=DAILY;FREQ=DAILY", "twice"),
            ("FREQ=YEARLY;RSCALE=CHINESE", "RSCALE"),
            ("D1 #10", "D1 #10"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_passed_over_is_said() {
        for (text, count, notes) in [
            ("FREQ=DAILY;COUNT=-1", None, 1),
            ("FREQ=DAILY;COUNT=0", Some(0), 1),
            ("freq=weekly;byday=1mo;interval=0;", None, 2),
            ("FREQ=MONTHLY;BYDAY=+1MO,-1FR;WKST=SU;COUNT=3", Some(3), 0),
            ("FREQ=DAILY\\;COUNT=2\\;BYDAY=MO\\, TU", Some(2), 0),
        ] {
            let reading = read(text).unwrap();
            assert_eq!((reading.rule.count, reading.notes.len()), (count, notes), "{text}: {reading:?}");
        }
    }
}
