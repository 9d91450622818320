//! Tables: arguments, and what comes out. "Now" is Thursday, 5 March 2026, 10:00 in Berlin.

use serde_json::{Value, json};

use super::{Args, calculate};
use crate::tool::{CallResult, ToolErrorKind};

fn run(args: Value) -> CallResult {
    let args: Args = serde_json::from_value(args).unwrap();
    calculate(&args, "2026-03-05T09:00:00Z".parse().unwrap(), "Europe/Berlin")
}

/// "date" or "first..last" of what was found.
fn dates(args: Value) -> String {
    let shown = args.to_string();
    let found = run(args).unwrap_or_else(|error| panic!("{shown}: {error}"));
    let (first, last) = (&found["date"], &found["last_date"]);
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
fn finds_days_and_ranges() {
    for (find, expected) in [
        ("today", "2026-03-05"),
        ("Tomorrow", "2026-03-06"),
        ("yesterday", "2026-03-04"),
        ("the day after tomorrow", "2026-03-07"),
        ("day before yesterday", "2026-03-03"),
        ("in 3 days", "2026-03-08"),
        ("in a week", "2026-03-12"),
        ("in one month and two days", "2026-04-07"),
        ("3 days ago", "2026-03-02"),
        ("a fortnight ago", "2026-02-19"),
        ("2 weeks from now", "2026-03-19"),
        // Weekdays, seen from a Thursday.
        ("thursday", "2026-03-05"),
        ("next thursday", "2026-03-12"),
        ("last thursday", "2026-02-26"),
        ("this thursday", "2026-03-05"),
        ("friday", "2026-03-06"),
        ("next friday", "2026-03-06"),
        ("last Tuesday", "2026-03-03"),
        ("this monday", "2026-03-02"),
        ("this sun", "2026-03-08"),
        ("previous wed", "2026-03-04"),
        ("tuesday next week", "2026-03-10"),
        ("next week tuesday", "2026-03-10"),
        ("sunday of last week", "2026-03-01"),
        ("weekend", "2026-03-07..2026-03-08"),
        ("this weekend", "2026-03-07..2026-03-08"),
        ("next weekend", "2026-03-14..2026-03-15"),
        ("last weekend", "2026-02-28..2026-03-01"),
        // Periods.
        ("this week", "2026-03-02..2026-03-08"),
        ("next week", "2026-03-09..2026-03-15"),
        ("last week", "2026-02-23..2026-03-01"),
        ("this month", "2026-03-01..2026-03-31"),
        ("next month", "2026-04-01..2026-04-30"),
        ("last month", "2026-02-01..2026-02-28"),
        ("this quarter", "2026-01-01..2026-03-31"),
        ("next quarter", "2026-04-01..2026-06-30"),
        ("last quarter", "2025-10-01..2025-12-31"),
        ("q3", "2026-07-01..2026-09-30"),
        ("q4 2024", "2024-10-01..2024-12-31"),
        ("next year", "2027-01-01..2027-12-31"),
        ("2028", "2028-01-01..2028-12-31"),
        ("march", "2026-03-01..2026-03-31"),
        ("next march", "2027-03-01..2027-03-31"),
        ("last march", "2025-03-01..2025-03-31"),
        ("february", "2027-02-01..2027-02-28"),
        ("last february", "2026-02-01..2026-02-28"),
        ("in december", "2026-12-01..2026-12-31"),
        ("feb 2028", "2028-02-01..2028-02-29"),
        // Edges and counted weekdays.
        ("end of month", "2026-03-31"),
        ("end of the week", "2026-03-08"),
        ("start of next month", "2026-04-01"),
        ("beginning of this quarter", "2026-01-01"),
        ("last day of february 2028", "2028-02-29"),
        ("first day of next year", "2027-01-01"),
        ("first monday of next month", "2026-04-06"),
        ("second monday of next month", "2026-04-13"),
        ("first sunday of march", "2026-03-01"),
        ("last friday of the month", "2026-03-27"),
        ("last tuesday of march", "2026-03-31"),
        ("5th sunday of march", "2026-03-29"),
        ("third thursday in november 2026", "2026-11-19"),
        // Days of months.
        ("2026-12-24", "2026-12-24"),
        ("15 march", "2026-03-15"),
        ("march 15th, 2027", "2027-03-15"),
        ("15th of March", "2026-03-15"),
        ("4 march", "2027-03-04"),
        ("5 march", "2026-03-05"),
        ("the 5th", "2026-03-05"),
        ("the 4th", "2026-04-04"),
        ("29 february", "2028-02-29"),
        ("1 jan 2000", "2000-01-01"),
    ] {
        assert_eq!(dates(json!({"find": find})), expected, "{find}");
    }
}

#[test]
fn finds_moments() {
    for (find, expected) in [
        ("now", "2026-03-05T10:00:00+01:00"),
        ("in 2 hours", "2026-03-05T12:00:00+01:00"),
        ("90 minutes ago", "2026-03-05T08:30:00+01:00"),
        ("tomorrow at 17:00", "2026-03-06T17:00:00+01:00"),
        ("friday 5pm", "2026-03-06T17:00:00+01:00"),
        ("next monday at 9:30 am", "2026-03-09T09:30:00+01:00"),
        ("tomorrow at noon", "2026-03-06T12:00:00+01:00"),
        ("today 12am", "2026-03-05T00:00:00+01:00"),
        ("12:30 pm", "2026-03-05T12:30:00+01:00"),
        ("at 18:00", "2026-03-05T18:00:00+01:00"),
        ("end of month at 23:59:59", "2026-03-31T23:59:59+02:00"),
        ("last 24 hours", "2026-03-04T10:00:00+01:00"),
        ("past week", "2026-02-23T00:00:00+01:00"),
        ("last 7 days", "2026-02-26T10:00:00+01:00"),
        ("next 2 weeks", "2026-03-05T10:00:00+01:00"),
        ("next hour", "2026-03-05T10:00:00+01:00"),
    ] {
        assert_eq!(start(json!({"find": find})), expected, "{find}");
    }
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
