//! Dates in arguments: ISO 8601, the phrases of `tools.date_calc`, and what it and `tools.now` return.

use jiff::Zoned;
use serde_json::Value;

use crate::builtin::date_calc;
use crate::tool::ToolError;

/// From `start` until just before `end`.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeSpan {
    pub start: Zoned,
    pub end: Zoned,
}

impl TimeSpan {
    pub fn new(start: Zoned, end: Zoned) -> Self {
        Self { start, end }
    }

    /// Returns true if the two share a moment; something without duration takes up the moment at which it begins.
    pub fn overlaps(&self, start: &Zoned, end: &Zoned) -> bool {
        (*start < self.end && *end > self.start) || (start == end && *start >= self.start && *start < self.end)
    }
}

/// Reads a stretch of time. `now` says when the call was decided on and in which zone to reckon.
pub fn parse_span(field: &str, value: &Value, now: &Zoned) -> Result<TimeSpan, ToolError> {
    match value {
        Value::String(text) => match split_range(text) {
            Some((start, end)) => span_between(field, start, end, now),
            None => {
                let (start, end) = date_calc::parse_range(field, text, now)?;
                Ok(TimeSpan::new(start, end))
            }
        },
        Value::Object(map) => {
            let text = |names: &[&str]| names.iter().find_map(|name| map.get(*name)).and_then(Value::as_str);
            match (text(&["start", "from", "since"]), text(&["end", "until", "to"])) {
                // A result of `tools.date_calc` ends just before its end, also when that is midnight.
                (Some(start), Some(end)) => span_between(field, start, end, now),
                (start, None) => {
                    let one = start.or_else(|| text(&["date", "now"])).ok_or_else(|| not_understood(field))?;
                    parse_span(field, &Value::from(one), now)
                }
                (None, Some(_)) => Err(not_understood(field)),
            }
        }
        _ => Err(not_understood(field)),
    }
}

/// Reads a stretch of time as [`parse_span`] does, with a moment standing for its whole day.
pub fn parse_day_or_span(field: &str, value: &Value, now: &Zoned) -> Result<TimeSpan, ToolError> {
    let span = parse_span(field, value, now)?;
    if span.start < span.end {
        return Ok(span);
    }
    let day = span.start.date().to_string();
    let (start, end) = date_calc::parse_range(field, &day, &span.start)?;
    Ok(TimeSpan::new(start, end))
}

/// Reads a moment; of a day, its first.
pub fn parse_moment(field: &str, text: &str, now: &Zoned) -> Result<Zoned, ToolError> {
    Ok(date_calc::parse_range(field, text, now)?.0)
}

/// "2026-03-01/2026-03-08", "2026-03-01..2026-03-08", "monday to friday".
fn split_range(text: &str) -> Option<(&str, &str)> {
    ["/", "..", " to ", " until "].iter().find_map(|separator| text.split_once(separator))
}

/// A last day is included whole.
fn span_between(field: &str, start: &str, end: &str, now: &Zoned) -> Result<TimeSpan, ToolError> {
    let (start, _) = date_calc::parse_range(field, start.trim(), now)?;
    let (_, end) = date_calc::parse_range(field, end.trim(), now)?;
    if end < start {
        return Err(ToolError::invalid_arguments(format!("/{field}: it ends before it begins")));
    }
    Ok(TimeSpan::new(start, end))
}

fn not_understood(field: &str) -> ToolError {
    ToolError::invalid_arguments(format!(
        "/{field}: write a date, a phrase such as \"next week\", \"2026-03-01/2026-03-08\", or an object with start and end"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> Zoned {
        "2026-03-25T10:00[Europe/Berlin]".parse().unwrap()
    }

    fn read(value: Value) -> String {
        let span = parse_span("range", &value, &now()).unwrap();
        format!("{} {}", span.start.strftime("%m-%dT%H:%M%:z"), span.end.strftime("%m-%dT%H:%M%:z"))
    }

    #[test]
    fn every_way_to_say_it() {
        let week = "03-23T00:00+01:00 03-30T00:00+02:00";
        for value in [
            json!("this week"),
            json!("2026-03-23/2026-03-29"),
            json!("2026-03-23..2026-03-29"),
            json!("monday this week to sunday this week"),
            json!({"start": "2026-03-23T00:00:00+01:00", "end": "2026-03-30T00:00:00+02:00", "date": "2026-03-23"}),
            json!({"from": "2026-03-23", "until": "2026-03-29"}),
        ] {
            assert_eq!(read(value.clone()), week, "{value}");
        }
        assert_eq!(read(json!({"date": "2026-03-25"})), "03-25T00:00+01:00 03-26T00:00+01:00");
        assert_eq!(read(json!("tomorrow at 9:00")), "03-26T09:00+01:00 03-26T09:00+01:00");
        assert_eq!(read(json!("2026-03-26T09:00:00Z")), "03-26T10:00+01:00 03-26T10:00+01:00");
    }

    #[test]
    fn a_moment_stands_for_its_day_where_a_day_is_wanted() {
        let day = parse_day_or_span("date", &json!({"now": "2026-03-26T23:30:00+01:00"}), &now()).unwrap();
        assert_eq!(day, parse_span("date", &json!("2026-03-26"), &now()).unwrap());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for value in [
            json!("2026-02-30"),
            json!("someday"),
            json!(3),
            json!({}),
            json!({"until": "friday"}),
            json!("2026-03-29/2026-03-01"),
        ] {
            assert!(parse_span("range", &value, &now()).is_err(), "{value}");
        }
    }
}
