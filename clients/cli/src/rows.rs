//! Times and JSON as the rows of the contract hold them. Pure.

use jiff::{Timestamp, tz::TimeZone};
use kairo_proto::{time, v1::Json};
use serde_json::Value;

use crate::durations;

/// A time, where the row has one.
pub fn time(field: Option<prost_types::Timestamp>) -> Option<Timestamp> {
    field.as_ref().and_then(time::read)
}

/// A time for people; nothing where the row has none.
pub fn format_time(field: Option<prost_types::Timestamp>, zone: &TimeZone) -> String {
    time(field).map(|time| time.to_zoned(zone.clone()).strftime("%F %T").to_string()).unwrap_or_default()
}

/// Returns the time from `begun` to `ended`, or to `now` if it has not ended; `None` if it has not begun.
pub fn format_elapsed(
    begun: Option<prost_types::Timestamp>,
    ended: Option<prost_types::Timestamp>,
    now: Timestamp,
) -> Option<String> {
    time(begun).map(|begun| durations::format_between(begun, time(ended).unwrap_or(now)))
}

/// JSON as it is written.
pub fn text(field: Option<&Json>) -> &str {
    field.map_or("null", |json| json.text.as_str())
}

/// JSON, to be looked into.
pub fn value(field: Option<&Json>) -> Value {
    field.map(Json::value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_time_is_the_one_that_was_written_and_may_be_absent() {
        let row: kairo_proto::v1::FiringRow =
            serde_json::from_value(json!({"fired_at": "2026-01-08T00:09:00.5+01:00"})).unwrap();
        assert_eq!(time(row.fired_at).unwrap().to_string(), "2026-01-07T23:09:00.5Z");
        assert_eq!(format_time(row.fired_at, &TimeZone::UTC), "2026-01-07 23:09:00");
        assert_eq!((time(row.due_at), format_time(row.due_at, &TimeZone::UTC)), (None, String::new()));
    }

    #[test]
    fn json_that_is_absent_is_null() {
        let json = Json { text: r#"{"a":[1]}"#.to_owned() };
        assert_eq!((text(Some(&json)), value(Some(&json))), (r#"{"a":[1]}"#, json!({"a": [1]})));
        assert_eq!((text(None), value(None)), ("null", Value::Null));
    }
}
