//! The words of the grammar.

use jiff::civil::Weekday;

use super::grammar::{CalendarUnit, RelativeTerm};

/// Digits only: "+3" and "-3" would hide the direction that `add` and `subtract` state.
pub fn parse_number<T: std::str::FromStr>(word: &str) -> Option<T> {
    let digits = !word.is_empty() && word.chars().all(|c| c.is_ascii_digit());
    digits.then(|| word.parse().ok()).flatten()
}

pub fn parse_year(word: &str) -> Option<i16> {
    (word.len() == 4).then(|| parse_number(word)).flatten()
}

pub fn parse_amount(word: &str) -> Option<i64> {
    const WORDS: [&str; 13] =
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    match word {
        "a" | "an" => Some(1),
        word => parse_number(word).or_else(|| word_index(&WORDS, word).map(i64::from)),
    }
}

pub fn parse_relative_term(word: &str) -> Option<RelativeTerm> {
    match word {
        "this" | "current" => Some(RelativeTerm::This),
        "next" | "coming" | "upcoming" => Some(RelativeTerm::Next),
        "last" | "previous" | "past" => Some(RelativeTerm::Last),
        _ => None,
    }
}

pub fn parse_unit(word: &str) -> Option<CalendarUnit> {
    match word {
        "week" => Some(CalendarUnit::Week),
        "month" => Some(CalendarUnit::Month),
        "quarter" => Some(CalendarUnit::Quarter),
        "year" => Some(CalendarUnit::Year),
        _ => None,
    }
}

pub fn parse_quarter(word: &str) -> Option<i8> {
    parse_number(word.strip_prefix('q')?).filter(|quarter| (1..=4).contains(quarter))
}

pub fn parse_ordinal(word: &str) -> Option<i32> {
    match word {
        "first" | "1st" => Some(1),
        "second" | "2nd" => Some(2),
        "third" | "3rd" => Some(3),
        "fourth" | "4th" => Some(4),
        "fifth" | "5th" => Some(5),
        "last" => Some(-1),
        _ => None,
    }
}

/// Full names, and "mon", "tue", "tues", "wed", "thu", "thur", "thurs", "fri", "sat", "sun".
pub fn parse_weekday(word: &str) -> Option<Weekday> {
    const NAMES: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let index = abbreviation_index(&NAMES, word, 5)?;
    Weekday::from_monday_zero_offset(index).ok()
}

/// Full names, and "jan", "feb", … "sept".
pub fn parse_month(word: &str) -> Option<i8> {
    const NAMES: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    abbreviation_index(&NAMES, word, 4).map(|index| index + 1)
}

fn abbreviation_index(names: &[&str], word: &str, longest: usize) -> Option<i8> {
    let short = (3..=longest).contains(&word.len());
    let index = names.iter().position(|name| *name == word || (short && name.starts_with(word)))?;
    i8::try_from(index).ok()
}

fn word_index(names: &[&str], word: &str) -> Option<i32> {
    let index = names.iter().position(|name| *name == word)?;
    i32::try_from(index).ok()
}
