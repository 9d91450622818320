//! The days that a search is about: as they are written, whatever the time zone, or reckoned from a phrase.

use jiff::civil::Date;
use jiff::{ToSpan as _, Zoned};
use serde_json::Value;

use crate::builtin::date_calc;
use crate::tool::ToolError;

/// First and last day. `now` says when the call was decided on and in which zone phrases are reckoned.
pub fn parse_range(field: &str, value: &Value, now: &Zoned) -> Result<(Date, Date), ToolError> {
    let days = match value {
        Value::String(text) => match ["/", "..", " to ", " until "].iter().find_map(|between| text.split_once(between))
        {
            Some((first, last)) => (parse_days(field, first, now)?.0, parse_days(field, last, now)?.1),
            None => parse_days(field, text, now)?,
        },
        Value::Object(map) => {
            let text = |names: &[&str]| names.iter().find_map(|name| map.get(*name)).and_then(Value::as_str);
            let first = text(&["date", "from", "start", "since", "now"]);
            // The last day before the end, as `tools.date_calc` says both.
            match (first, text(&["last_date"]), text(&["to", "end", "until"])) {
                (Some(first), Some(last), _) => (parse_days(field, first, now)?.0, parse_days(field, last, now)?.1),
                (Some(first), None, Some(last)) => {
                    (parse_days(field, first, now)?.0, parse_last_day(field, last, now)?)
                }
                (Some(one), None, None) => parse_days(field, one, now)?,
                (None, _, _) => return Err(not_understood(field)),
            }
        }
        _ => return Err(not_understood(field)),
    };
    match days {
        (first, last) if first <= last => Ok(days),
        _ => Err(ToolError::invalid_arguments(format!("/{field}: it ends before it begins"))),
    }
}

/// Reads a text as a range of days: a written day or time is that day, as written; anything else is read as a phrase.
fn parse_days(field: &str, text: &str, now: &Zoned) -> Result<(Date, Date), ToolError> {
    let text = text.trim();
    if let Some(day) = parse_written_day(text) {
        return Ok((day, day));
    }
    let (start, end) =
        date_calc::parse_range(field, text, now).map_err(|error| match error.message.starts_with('/') {
            true => error,
            false => ToolError::invalid_arguments(format!("/{field}: {}", error.message)),
        })?;
    let last = if start < end { end.checked_sub(1.nanosecond()).unwrap_or(end) } else { end };
    Ok((start.date(), last.date()))
}

/// The last day of something that ends so: midnight ends the day before.
fn parse_last_day(field: &str, text: &str, now: &Zoned) -> Result<Date, ToolError> {
    let (_, last) = parse_days(field, text, now)?;
    let midnight = text.get(10..19).is_some_and(|time| time.get(1..) == Some("00:00:00"));
    Ok(if midnight { last.yesterday().unwrap_or(last) } else { last })
}

/// The day of a date, or of a date with a time behind it.
fn parse_written_day(text: &str) -> Option<Date> {
    let day = text.get(..10)?.parse().ok()?;
    let behind = text.get(10..)?.chars().next();
    matches!(behind, None | Some('T' | 't' | ' ')).then_some(day)
}

fn not_understood(field: &str) -> ToolError {
    ToolError::invalid_arguments(format!(
        "/{field}: write YYYY-MM-DD, a phrase such as \"last tuesday\", a result of tools.now or tools.date_calc, or an object with from and to"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> String {
        let now: Zoned = "2026-11-21T10:00[UTC]".parse().unwrap();
        parse_range("date", &value, &now).map_or_else(|error| error.message, |(first, last)| format!("{first} {last}"))
    }

    #[test]
    fn every_way_to_say_it() {
        for (value, days) in [
            (json!("2026-11-17"), "2026-11-17 2026-11-17"),
            (json!("last tuesday"), "2026-11-17 2026-11-17"),
            (json!("last week"), "2026-11-09 2026-11-15"),
            (json!("2026-11-01/2026-11-07"), "2026-11-01 2026-11-07"),
            (json!("2026-11-17T00:00:00+01:00"), "2026-11-17 2026-11-17"),
            (json!({"from": "2026-11-01", "to": "yesterday"}), "2026-11-01 2026-11-20"),
            (
                json!({"start": "2026-11-17T00:00:00+01:00", "end": "2026-11-18T00:00:00+01:00"}),
                "2026-11-17 2026-11-17",
            ),
            (
                json!({"start": "2026-11-16T00:00:00+01:00", "end": "2026-11-23T00:00:00+01:00", "date": "2026-11-16", "last_date": "2026-11-22"}),
                "2026-11-16 2026-11-22",
            ),
            (json!({"now": "2026-11-21T23:30:00+01:00", "date": "2026-11-21"}), "2026-11-21 2026-11-21"),
        ] {
            assert_eq!(read(value.clone()), days, "{value}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for value in [json!("2026-02-30"), json!("someday"), json!(3), json!({}), json!({"to": "2026-11-01"})] {
            assert!(read(value.clone()).starts_with("/date: "), "{value}");
        }
        assert_eq!(read(json!("2026-11-07/2026-11-01")), "/date: it ends before it begins");
    }
}
