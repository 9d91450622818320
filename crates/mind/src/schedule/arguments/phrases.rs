//! Delays and repetitions in words.

use jiff::Span;
use kairo_events::dates::grammar;

/// A length of time: "30m", "2 hours", "an hour", "PT30M", "1 week", and "month" for one of them. More than nothing.
pub fn parse_span(field: &str, text: &str) -> Result<Span, String> {
    let lower = text.trim().to_lowercase();
    let plain = ["in ", "every ", "after "].iter().find_map(|lead| lower.strip_prefix(lead)).unwrap_or(&lower).trim();
    let plain = match plain {
        "monthly" => "month",
        "yearly" | "annually" => "year",
        other => other,
    };
    let iso = plain.starts_with('p').then(|| plain.to_uppercase().parse().ok()).flatten();
    let span = iso
        .or_else(|| plain.parse().ok())
        .or_else(|| parse_shift(plain))
        .or_else(|| parse_shift(&format!("1 {plain}")));
    match span {
        Some(span) if Span::is_positive(span) => Ok(span),
        Some(_) => Err(format!("{field}: expected a length of time above zero, found {text:?}")),
        None => Err(format!("{field}: expected a length of time such as 30m, 2 hours, 1 day or PT30M, found {text:?}")),
    }
}

/// As `tools.date_calc` understands it.
fn parse_shift(text: &str) -> Option<Span> {
    let shift = grammar::parse_shift(text)?;
    Span::new().try_months(shift.months).ok()?.try_days(shift.days).ok()?.try_seconds(shift.seconds).ok()
}

/// Reads a repetition by names as a rule: "day", "weekday", "monday", "mondays and thursdays", "weekend".
pub fn parse_repetition(text: &str) -> Option<String> {
    let text = text.trim().to_lowercase();
    let text = text.strip_prefix("every ").unwrap_or(&text).trim();
    let rule = match text {
        "day" | "daily" => "FREQ=DAILY",
        "weekday" | "weekdays" | "workday" | "workdays" | "working day" => "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR",
        "weekend" | "weekends" => "FREQ=WEEKLY;BYDAY=SA,SU",
        "week" | "weekly" => "FREQ=WEEKLY",
        "hour" | "hourly" => "FREQ=HOURLY",
        "minute" => "FREQ=MINUTELY",
        days => return parse_weekdays(days),
    };
    Some(rule.to_owned())
}

fn parse_weekdays(text: &str) -> Option<String> {
    let words = text.split(|letter: char| letter.is_whitespace() || letter == ',').filter(|word| !word.is_empty());
    let mut days: Vec<&str> = Vec::new();
    for word in words.filter(|word| !matches!(*word, "and" | "on")) {
        let day = match word.strip_suffix('s').unwrap_or(word) {
            "monday" | "mon" => "MO",
            "tuesday" | "tue" => "TU",
            "wednesday" | "wed" => "WE",
            "thursday" | "thu" | "thur" => "TH",
            "friday" | "fri" => "FR",
            "saturday" | "sat" => "SA",
            "sunday" | "sun" => "SU",
            _ => return None,
        };
        if !days.contains(&day) {
            days.push(day);
        }
    }
    (!days.is_empty()).then(|| format!("FREQ=WEEKLY;BYDAY={}", days.join(",")))
}
