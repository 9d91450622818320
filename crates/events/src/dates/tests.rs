//! Tables: what is written, and what is meant. "Now" is Thursday, 5 March 2026, 10:00 in Berlin.

use jiff::Zoned;

use super::*;

fn now() -> Zoned {
    "2026-03-05T10:00[Europe/Berlin]".parse().unwrap()
}

/// "date" or "first..last" of what was found.
fn days(text: &str) -> String {
    let found = parse_extent(text, &now()).unwrap_or_else(|error| panic!("{text}: {error}"));
    let (start, _, last) = bounds(&found).unwrap();
    if start.date() == last { last.to_string() } else { format!("{}..{last}", start.date()) }
}

fn start(text: &str) -> String {
    let (start, _) = parse_range(text, &now()).unwrap_or_else(|error| panic!("{text}: {error}"));
    start.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
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
        assert_eq!(days(find), expected, "{find}");
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
        assert_eq!(start(find), expected, "{find}");
    }
}

#[test]
fn iso_moments() {
    for (text, expected) in [
        ("2026-06-01 17:00", "2026-06-01T17:00:00+02:00"),
        ("2026-06-01T17:00", "2026-06-01T17:00:00+02:00"),
        ("2026-06-01T17:00:00Z", "2026-06-01T19:00:00+02:00"),
        ("2026-06-01", "2026-06-01T00:00:00+02:00"),
        // Berlin skips 02:00 to 03:00 on that day.
        ("2026-03-29 at 02:30", "2026-03-29T03:30:00+02:00"),
    ] {
        assert_eq!(start(text), expected, "{text}");
    }
}

#[test]
fn what_does_not_exist_is_refused() {
    for text in ["2026-02-29", "30 february", "fifth monday of april", "in 99999999999 weeks", "next week at 17:00"] {
        assert!(matches!(parse_range(text, &now()), Err(DateError::Calendar(_))), "{text}");
    }
    for text in ["someday", "next", "friday friday", "15", "32nd", "q5", "tomorrow at 25:00", "at", "", "2026-3-4-5"] {
        assert!(matches!(parse_range(text, &now()), Err(DateError::NotUnderstood(_))), "{text}");
    }
}
