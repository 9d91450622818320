//! Tables: arguments, and what comes out. "Now" is Thursday, 5 March 2026, 10:00 in Berlin.

use serde_json::{Value, json};

use super::{DateCalcArgs, calculate};
use crate::tool::{CallResult, ToolErrorKind};

fn run(args: Value) -> CallResult {
    let args: DateCalcArgs = serde_json::from_value(args).unwrap();
    calculate(&args, "2026-03-05T09:00:00Z".parse().unwrap(), "Europe/Berlin")
}

/// "date" or "first..last" of what was found.
fn dates(args: Value) -> String {
    let shown = args.to_string();
    let found = run(args).unwrap_or_else(|error| panic!("{shown}: {error}"));
    let first = &found["date"];
    let last = &found["last_date"];
    if first == last {
        first.as_str().unwrap().to_owned()
    } else {
        format!("{}..{}", first.as_str().unwrap(), last.as_str().unwrap())
    }
}

fn start(args: Value) -> String {
    let shown = args.to_string();
    let found = run(args).unwrap_or_else(|error| panic!("{shown}: {error}"));
    found["start"].as_str().unwrap().to_owned()
}

#[test]
fn adds_and_subtracts() {
    for (args, expected) in [
        (json!({"add": "3 days"}), "2026-03-08"),
        (json!({"add": "1 week"}), "2026-03-12"),
        (json!({"add": "2 months 1 day"}), "2026-05-06"),
        (json!({"subtract": "1 day"}), "2026-03-04"),
        (json!({"add": "1 year", "subtract": "1 day"}), "2027-03-04"),
        (json!({"add": "0 days"}), "2026-03-05"),
        (json!({"add": "2 quarters"}), "2026-09-05"),
        // Month ends stay within the month.
        (json!({"from": "2026-01-31", "add": "1 month"}), "2026-02-28"),
        (json!({"from": "2028-01-31", "add": "1 month"}), "2028-02-29"),
        (json!({"from": "2026-03-31", "subtract": "1 month"}), "2026-02-28"),
        (json!({"from": "2026-10-31", "add": "4 months"}), "2027-02-28"),
        // Leap days.
        (json!({"from": "2028-02-29", "add": "1 year"}), "2029-02-28"),
        (json!({"from": "2028-02-29", "add": "4 years"}), "2032-02-29"),
        (json!({"from": "2028-02-28", "add": "1 day"}), "2028-02-29"),
        (json!({"from": "2027-02-28", "add": "1 day"}), "2027-03-01"),
        (json!({"from": "2026-12-31", "add": "1 day"}), "2027-01-01"),
        // find looks from where the arithmetic ended.
        (json!({"add": "1 month", "find": "next friday"}), "2026-04-10"),
        (json!({"from": "2026-01-01", "find": "end of month"}), "2026-01-31"),
        (json!({"from": "tomorrow", "add": "1 day"}), "2026-03-07"),
        (json!({}), "2026-03-05"),
    ] {
        let shown = args.to_string();
        assert_eq!(dates(args), expected, "{shown}");
    }
}

#[test]
fn formats() {
    for (args, expected) in [
        (json!({"add": "1 week", "format": "week_range"}), "2026-03-09..2026-03-15"),
        (json!({"add": "1 week", "format": "month_range"}), "2026-03-01..2026-03-31"),
        (json!({"find": "next month", "format": "date"}), "2026-04-01"),
        (json!({"find": "2028-02-10", "format": "month_range"}), "2028-02-01..2028-02-29"),
        (json!({"from": "2026-03-08", "format": "week_range"}), "2026-03-02..2026-03-08"),
        (json!({"from": "2026-12-31", "format": "week_range"}), "2026-12-28..2027-01-03"),
    ] {
        let shown = args.to_string();
        assert_eq!(dates(args), expected, "{shown}");
    }
    assert_eq!(
        start(json!({"from": "2026-03-05 16:30", "add": "1 day", "format": "datetime"})),
        "2026-03-06T16:30:00+01:00"
    );
}

#[test]
fn every_form_of_from() {
    for (from, expected) in [
        (json!("2026-06-01"), "2026-06-01T00:00:00+02:00"),
        (json!("2026-06-01 17:00"), "2026-06-01T17:00:00+02:00"),
        (json!("2026-06-01T17:00"), "2026-06-01T17:00:00+02:00"),
        (json!("2026-06-01T17:00:00Z"), "2026-06-01T19:00:00+02:00"),
        (json!("2026-06-01T17:00:00-04:00"), "2026-06-01T23:00:00+02:00"),
        (json!("2026-06-01T17:00:00-04:00[America/New_York]"), "2026-06-01T17:00:00-04:00"),
        (json!("next friday at 8am"), "2026-03-06T08:00:00+01:00"),
        (
            json!({"now": "2026-06-01T17:00:00+00:00", "date": "2026-06-01", "time_zone": "UTC"}),
            "2026-06-01T17:00:00+00:00",
        ),
        (json!({"date": "2026-06-01"}), "2026-06-01T00:00:00+02:00"),
    ] {
        let args = json!({"from": from, "format": "datetime"});
        assert_eq!(start(args), expected, "{from}");
    }
}

#[test]
fn a_result_can_be_the_base_of_the_next_call() {
    let week = run(json!({"find": "next week"})).unwrap();
    assert_eq!(dates(json!({"from": week, "add": "1 day"})), "2026-03-10");
}

#[test]
fn clocks_that_change() {
    // On 29 March 2026 Berlin skips 02:00 to 03:00; on 25 October 02:00 to 03:00 comes twice.
    for (args, expected) in [
        (json!({"from": "2026-03-28 12:00", "add": "1 day"}), "2026-03-29T12:00:00+02:00"),
        (json!({"from": "2026-03-28 12:00", "add": "24 hours"}), "2026-03-29T13:00:00+02:00"),
        (json!({"from": "2026-03-28 02:30", "add": "1 day"}), "2026-03-29T03:30:00+02:00"),
        (json!({"find": "2026-03-29 at 02:30"}), "2026-03-29T03:30:00+02:00"),
        (json!({"from": "2026-10-25 01:30", "add": "1 hour"}), "2026-10-25T02:30:00+02:00"),
        (json!({"from": "2026-10-25 01:30", "add": "2 hours"}), "2026-10-25T02:30:00+01:00"),
        (json!({"from": "2026-03-28 12:00", "time_zone": "UTC", "add": "1 day"}), "2026-03-29T12:00:00+00:00"),
    ] {
        let shown = args.to_string();
        let mut args = args;
        args["format"] = json!("datetime");
        assert_eq!(start(args), expected, "{shown}");
    }
    let day = run(json!({"find": "2026-03-29"})).unwrap();
    assert_eq!(day["start"], "2026-03-29T00:00:00+01:00");
    assert_eq!(day["end"], "2026-03-30T00:00:00+02:00");
    // Beirut's clocks skip midnight itself.
    let day = run(json!({"find": "2026-03-29", "time_zone": "Asia/Beirut"})).unwrap();
    assert_eq!(day["start"], "2026-03-29T01:00:00+03:00");
}

#[test]
fn the_day_depends_on_the_zone() {
    // 10:00 in Berlin is 22:00 of the same day in Auckland, and 23:00 of the day before on Midway.
    assert_eq!(dates(json!({"find": "today", "time_zone": "Pacific/Auckland"})), "2026-03-05");
    assert_eq!(dates(json!({"find": "today", "time_zone": "Pacific/Midway"})), "2026-03-04");
}

#[test]
fn the_whole_answer() {
    assert_eq!(
        run(json!({"find": "next week"})).unwrap(),
        json!({
            "start": "2026-03-09T00:00:00+01:00",
            "end": "2026-03-16T00:00:00+01:00",
            "date": "2026-03-09",
            "last_date": "2026-03-15",
            "weekday": "Monday",
            "time_zone": "Europe/Berlin",
            "description": "Monday, 9 March 2026 to Sunday, 15 March 2026",
        })
    );
    assert_eq!(run(json!({"find": "friday at 17:00"})).unwrap()["description"], "Friday, 6 March 2026 at 17:00");
}

#[test]
fn what_does_not_exist_is_refused() {
    for args in [
        json!({"find": "2026-02-29"}),
        json!({"find": "30 february"}),
        json!({"find": "31 april 2026"}),
        json!({"from": "2026-02-30"}),
        json!({"find": "fifth monday of april"}),
        json!({"add": "99999 years"}),
        json!({"add": "99999999999999999 days"}),
        json!({"find": "in 99999999999 weeks"}),
        json!({"find": "next week at 17:00"}),
        json!({"time_zone": "Europe/Atlantis"}),
        json!({"from": {}}),
    ] {
        let error = run(args.clone()).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::InvalidArguments, "{args}");
        assert!(!error.message.contains("understood"), "{args}: {error}");
    }
}

#[test]
fn what_is_not_understood_is_refused_with_a_list_of_what_is() {
    for (field, text) in [
        ("find", "someday"),
        ("find", "next"),
        ("find", "friday friday"),
        ("find", "15"),
        ("find", "32nd"),
        ("find", "q5"),
        ("find", "tomorrow at 25:00"),
        ("find", "tomorrow at 13pm"),
        ("find", "at"),
        ("find", ""),
        ("find", "this 3 days"),
        ("find", "2026-3-4-5"),
        ("add", "3"),
        ("add", "days"),
        ("add", "-3 days"),
        ("add", "+3 days"),
        ("add", "3.5 days"),
        ("add", "3 days ago"),
        ("add", "99999999999999999999 days"),
        ("subtract", "and"),
        ("from", "whenever"),
    ] {
        let error = run(json!({field: text})).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::InvalidArguments, "{field}: {text}");
        assert!(error.message.contains("understood are"), "{text}: {error}");
        assert!(error.message.starts_with(&format!("/{field}: ")), "{error}");
    }
}
