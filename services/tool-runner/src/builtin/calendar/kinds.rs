//! Tests each kind of content found in real files: its meaning, and the note on what is not understood.

use jiff::Zoned;
use jiff::tz::TimeZone;

use super::ics::{self, IcsCalendar};
use super::recurrence::expand_occurrences;
use crate::builtin::workspace::TimeSpan;

fn berlin() -> TimeZone {
    TimeZone::get("Europe/Berlin").unwrap()
}

fn at(text: &str) -> Zoned {
    format!("{text}[Europe/Berlin]").parse().unwrap()
}

fn calendar(head: &str, events: &[&str]) -> IcsCalendar {
    let events: String =
        events.iter().map(|lines| format!("BEGIN:VEVENT\r\nSUMMARY:x\r\n{lines}\r\nEND:VEVENT\r\n")).collect();
    ics::read(&format!("BEGIN:VCALENDAR\r\n{head}{events}END:VCALENDAR\r\n"), "file", &berlin(), &|| true)
}

/// Starts and ends in March and April of 2026.
fn render(calendar: &IcsCalendar) -> Vec<String> {
    let within = TimeSpan::new(at("2026-03-01T00:00"), at("2026-05-01T00:00"));
    let mut all: Vec<_> =
        calendar.entries.iter().flat_map(|entry| expand_occurrences(entry, &within, 1000).0).collect();
    all.sort_by(|a, b| (&a.start, &a.details.title).cmp(&(&b.start, &b.details.title)));
    let time = |time: &Zoned| time.with_time_zone(berlin()).strftime("%m-%dT%H:%M").to_string();
    all.iter().map(|one| format!("{} {}", time(&one.start), time(&one.end))).collect()
}

#[test]
fn the_newest_version_of_an_event_and_of_each_change_counts() {
    let version = |sequence: u8, stamp: &str, hour: u8| {
        format!(
            "UID:1\r\nSEQUENCE:{sequence}\r\nDTSTAMP:2026010{stamp}T000000Z\r\nDTSTART:20260302T{hour:02}0000Z\r\nRRULE:FREQ=WEEKLY;COUNT=2"
        )
    };
    let change = |sequence: u8, stamp: &str, hour: u8| {
        format!(
            "UID:1\r\nSEQUENCE:{sequence}\r\nDTSTAMP:2026010{stamp}T000000Z\r\nRECURRENCE-ID:20260309T080000Z\r\nDTSTART:20260309T{hour:02}0000Z"
        )
    };
    for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 4, 0, 3, 1]] {
        let events =
            [version(1, "1", 7), version(2, "1", 9), version(2, "2", 8), change(2, "2", 10), change(3, "1", 11)];
        let events: Vec<&str> = order.iter().map(|at| events[*at].as_str()).collect();
        let found = calendar("", &events);
        assert_eq!(render(&found), ["03-02T09:00 03-02T09:00", "03-09T12:00 03-09T12:00"], "{order:?}");
        assert_eq!(found.notes.first(), None);
    }
}

#[test]
fn events_that_only_share_their_uid_are_all_shown_and_it_is_said() {
    let found = calendar("", &["UID:1\r\nDTSTART:20260302T090000Z", "UID:1\r\nSUMMARY:y\r\nDTSTART:20260303T090000Z"]);
    assert_eq!(render(&found).len(), 1, "of two with one title the first counts");
    assert!(found.notes.first().unwrap().contains(": UID: "), "{:?}", found.notes);
    let other = "BEGIN:VEVENT\r\nUID:1\r\nSUMMARY:other\r\nDTSTART:20260303T090000Z\r\nEND:VEVENT\r\n";
    let found = calendar(other, &["UID:1\r\nDTSTART:20260302T090000Z"]);
    assert_eq!(render(&found).len(), 2);
    assert!(found.notes.first().unwrap().contains(": UID: "), "{:?}", found.notes);
}

#[test]
fn what_is_not_understood_is_said_and_the_rest_is_shown() {
    for (lines, property, occurrences) in [
        ("DTSTART:20260302T090000Z\r\nRRULE:", "RRULE", 1),
        ("DTSTART:20260302T090000Z\r\nRRULE:FREQ=DAILY;COUNT=0", "RRULE", 1),
        ("DTSTART:20260430T090000Z\r\nRRULE:FREQ=DAILY;COUNT=-1", "RRULE", 1),
        ("DTSTART:20260302T090000Z\r\nRRULE:FREQ=WEEKLY;RSCALE=HEBREW", "RRULE", 1),
        ("DTSTART:20260302T090000Z\r\nEXRULE:sometimes", "EXRULE", 1),
        ("DTSTART:20260302T090000Z\r\nRDATE:soon,20260303T090000Z", "RDATE", 2),
        ("DTSTART:20260302T090000Z\r\nEXDATE:", "EXDATE", 1),
        ("DTSTART:20260302T090000Z\r\nDTEND:20260302T080000Z", "DTEND", 1),
        ("DTSTART:20260302T090000Z\r\nDURATION:-PT1H", "DURATION", 1),
        ("DTSTART:20260302T090000Z\r\nDURATION:long", "DURATION", 1),
        ("DTSTART;VALUE=DATE:20260302\r\nDTEND:20260303T120000Z", "DTEND", 1),
        ("DTSTART:20260302T090000Z\r\nDTSTART:20260303T090000Z", "DTSTART", 1),
        ("DTSTART:20260230T090000Z", "DTSTART", 0),
        ("UID:1", "DTSTART", 0),
        ("DTSTART:20260302T090000Z\r\nRECURRENCE-ID;RANGE=THISANDPRIOR:20260302T090000Z", "RECURRENCE-ID", 1),
        ("DTSTART:20260302T090000Z\r\nodd line", "lines", 1),
        (
            "DTSTART:20260302T090000Z\r\nEND:VEVENT\r\nBEGIN:VTODO\r\nEND:VTODO\r\nBEGIN:VEVENT\r\nDTSTART:19700101",
            "VTODO",
            1,
        ),
        ("DTSTART:20260302T090000Z\r\nBEGIN:VALARM", "END:VALARM", 1),
    ] {
        let found = calendar("", &[lines]);
        assert_eq!(render(&found).len(), occurrences, "{lines}");
        let notes: Vec<&str> = found.notes.iter().collect();
        assert!(notes.iter().any(|note| note.contains(&format!(": {property}: "))), "{lines}: {notes:?}");
    }
}

#[test]
fn periods_zones_of_calendars_and_changes_of_another_type() {
    for (head, lines, expected) in [
        (
            "",
            vec![
                "DTSTART:20260302T090000Z\r\nDURATION:PT1H\r\nRDATE;VALUE=PERIOD:20260303T090000Z/PT3H,20260304T090000Z/20260304T093000Z",
            ],
            vec!["03-02T10:00 03-02T11:00", "03-03T10:00 03-03T13:00", "03-04T10:00 03-04T10:30"],
        ),
        // On New York's clock, which changes three weeks before Berlin's.
        (
            "X-WR-TIMEZONE:America/New_York\r\n",
            vec!["DTSTART:20260307T090000\r\nRRULE:FREQ=DAILY;COUNT=2"],
            vec!["03-07T15:00 03-07T15:00", "03-08T14:00 03-08T14:00"],
        ),
        (
            "",
            vec![
                "UID:1\r\nDTSTART;VALUE=DATE:20260302\r\nRRULE:FREQ=DAILY;COUNT=2",
                "UID:1\r\nRECURRENCE-ID;TZID=Europe/Berlin:20260303T000000\r\nDTSTART;VALUE=DATE:20260305",
            ],
            vec!["03-02T00:00 03-03T00:00", "03-05T00:00 03-06T00:00"],
        ),
        (
            "",
            vec![
                "UID:1\r\nDTSTART;VALUE=DATE:20260302\r\nRRULE:FREQ=DAILY;COUNT=2",
                "UID:1\r\nRECURRENCE-ID:20260302T230000Z\r\nDTSTART;VALUE=DATE:20260305",
            ],
            vec!["03-02T00:00 03-03T00:00", "03-05T00:00 03-06T00:00"],
        ),
        (
            "",
            vec![
                "UID:1\r\nDTSTART:20260302T090000Z\r\nRRULE:FREQ=DAILY;COUNT=2",
                "UID:1\r\nRECURRENCE-ID;VALUE=DATE:20260303\r\nDTSTART:20260305T090000Z",
            ],
            vec!["03-02T10:00 03-02T10:00", "03-05T10:00 03-05T10:00"],
        ),
    ] {
        let found = calendar(head, &lines);
        assert_eq!(render(&found), expected, "{lines:?}");
        assert!(found.notes.first().is_none() && !found.broken, "{:?}", found.notes);
    }
}
