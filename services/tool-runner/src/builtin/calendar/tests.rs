//! Files as real programs write them, and rules against what they mean.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use proptest::prelude::*;

use super::entry::Guest;
use super::entry_draft::{EntryDraft, parse_rule};
use super::ics::{self, IcsCalendar};
use super::recurrence::{Occurrence, expand_occurrences};
use crate::builtin::workspace::TimeSpan;

/// As Outlook exports it: zones by Windows names, an exception by date and time in that zone, a moved occurrence.
const OUTLOOK: &str = "BEGIN:VCALENDAR\r\nPRODID:-//Microsoft Corporation//Outlook 16.0 MIMEDIR//EN\r\nVERSION:2.0\r\n\
METHOD:PUBLISH\r\nX-MS-OLK-FORCEINSPECTOROPEN:TRUE\r\nBEGIN:VTIMEZONE\r\nTZID:W. Europe Standard Time\r\n\
BEGIN:STANDARD\r\nDTSTART:16011028T030000\r\nRRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10\r\nTZOFFSETFROM:+0200\r\n\
TZOFFSETTO:+0100\r\nEND:STANDARD\r\nBEGIN:DAYLIGHT\r\nDTSTART:16010325T020000\r\n\
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3\r\nTZOFFSETFROM:+0100\r\nTZOFFSETTO:+0200\r\nEND:DAYLIGHT\r\nEND:VTIMEZONE\r\n\
BEGIN:VEVENT\r\nCLASS:PUBLIC\r\nUID:040000008200E00074C5B7101A82E008\r\nDTSTAMP:20260201T080000Z\r\n\
DTSTART;TZID=\"W. Europe Standard Time\":20260316T090000\r\nDTEND;TZID=\"W. Europe Standard Time\":20260316T093000\r\n\
RRULE:FREQ=WEEKLY;COUNT=4;BYDAY=MO\r\nEXDATE;TZID=\"W. Europe Standard Time\":20260323T090000\r\n\
SUMMARY;LANGUAGE=de:Standup\\, kurz\r\nLOCATION:Raum 1\r\n\
ORGANIZER;CN=\"Müller, Jürgen\":mailto:j.mueller@acme.example\r\n\
ATTENDEE;CN=Sarah Lee;RSVP=TRUE:mailto:sarah@acme.example\r\nX-MICROSOFT-CDO-BUSYSTATUS:BUSY\r\n\
BEGIN:VALARM\r\nTRIGGER:-PT15M\r\nACTION:DISPLAY\r\nDESCRIPTION:Reminder\r\nEND:VALARM\r\nEND:VEVENT\r\n\
BEGIN:VEVENT\r\nUID:040000008200E00074C5B7101A82E008\r\n\
RECURRENCE-ID;TZID=\"W. Europe Standard Time\":20260330T090000\r\n\
DTSTART;TZID=\"W. Europe Standard Time\":20260331T110000\r\nDTEND;TZID=\"W. Europe Standard Time\":20260331T120000\r\n\
SUMMARY:Standup moved\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";

/// As Google exports it: an all-day entry over two days, one in UTC, a canceled occurrence, one that takes no time.
const GOOGLE: &str = "BEGIN:VCALENDAR\nPRODID:-//Google Inc//Google Calendar 70.9054//EN\nVERSION:2.0\nCALSCALE:GREGORIAN\n\
X-WR-CALNAME:Ann\nX-WR-TIMEZONE:America/New_York\n\
BEGIN:VEVENT\nDTSTART;VALUE=DATE:20260328\nDTEND;VALUE=DATE:20260330\nUID:trip@google.com\nSUMMARY:Trip\n\
TRANSP:TRANSPARENT\nEND:VEVENT\n\
BEGIN:VEVENT\nDTSTART:20260327T140000Z\nDTEND:20260327T150000Z\nUID:call@google.com\nSUMMARY:Call\n\
DESCRIPTION:Bring the <b>numbers</b>\\nand\n  a pen\nSTATUS:TENTATIVE\nEND:VEVENT\n\
BEGIN:VEVENT\nDTSTART;TZID=America/New_York:20260326T083000\nDURATION:PT45M\n\
RRULE:FREQ=DAILY;UNTIL=20260328T123000Z\nUID:run@google.com\nSUMMARY:Run\nEND:VEVENT\n\
BEGIN:VEVENT\nDTSTART;TZID=America/New_York:20260327T083000\nDURATION:PT45M\n\
RECURRENCE-ID:20260327T123000Z\nSTATUS:CANCELLED\nUID:run@google.com\nSUMMARY:Run\nEND:VEVENT\nEND:VCALENDAR\n";

fn berlin() -> TimeZone {
    TimeZone::get("Europe/Berlin").unwrap()
}

fn at(text: &str) -> Zoned {
    format!("{text}[Europe/Berlin]").parse().unwrap()
}

fn read(text: &str, name: &str, zone: &TimeZone) -> IcsCalendar {
    ics::read(text, name, zone, &|| true)
}

fn march() -> TimeSpan {
    TimeSpan::new(at("2026-03-01T00:00"), at("2026-05-01T00:00"))
}

fn expand(calendar: &IcsCalendar, within: &TimeSpan) -> Vec<Occurrence> {
    let mut all: Vec<Occurrence> =
        calendar.entries.iter().flat_map(|entry| expand_occurrences(entry, within, 1000).0).collect();
    all.sort_by(|a, b| a.start.cmp(&b.start));
    all
}

fn entry_lines(text: &str, within: &TimeSpan) -> Vec<String> {
    let calendar = read(text, "file", &berlin());
    assert!(!calendar.broken && calendar.unknown_zones.is_empty(), "{calendar:?}");
    let time = |time: &Zoned| time.with_time_zone(berlin()).strftime("%m-%dT%H:%M").to_string();
    let one = |one: &Occurrence| format!("{} {} {}", time(&one.start), time(&one.end), one.details.title);
    expand(&calendar, within).iter().map(one).collect()
}

/// "0,1,2 …" below a number.
fn every(below: u8) -> String {
    (0..below).map(|number| number.to_string()).collect::<Vec<_>>().join(",")
}

/// One entry in Berlin with these further lines.
fn event(start: &str, lines: &str) -> String {
    format!(
        "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:x\r\nSUMMARY:x\r\nDTSTART;TZID=Europe/Berlin:{start}\r\n{lines}\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    )
}

#[test]
fn outlooks_series_with_an_exception_and_a_moved_occurrence() {
    assert_eq!(
        entry_lines(OUTLOOK, &march()),
        [
            "03-16T09:00 03-16T09:30 Standup, kurz",
            // The clock went forward in between: nine stays nine.
            "03-31T11:00 03-31T12:00 Standup moved",
            "04-06T09:00 04-06T09:30 Standup, kurz",
        ]
    );
    let calendar = read(OUTLOOK, "file", &berlin());
    let details = &calendar.entries[0].details;
    assert_eq!(details.location.as_deref(), Some("Raum 1"));
    assert_eq!(details.organizer.as_ref().unwrap().name.as_deref(), Some("Müller, Jürgen"));
    assert!(
        details.busy && details.involves_any(&["SARAH@acme.example".into()]) && details.involves_any(&["sarah".into()])
    );
    assert!(!details.involves_any(&["bob".into()]));
}

#[test]
fn googles_days_utc_and_canceled_occurrences() {
    assert_eq!(
        entry_lines(GOOGLE, &march()),
        [
            "03-26T13:30 03-26T14:15 Run",
            "03-27T15:00 03-27T16:00 Call",
            "03-28T00:00 03-30T00:00 Trip",
            "03-28T13:30 03-28T14:15 Run",
        ]
    );
    let calendar = read(GOOGLE, "file", &berlin());
    let call = expand(&calendar, &march()).into_iter().find(|one| one.details.title == "Call").unwrap();
    assert!(call.details.tentative && call.details.busy && call.details.matches_query("numbers pen ann"));
    assert!(calendar.entries.iter().any(|entry| entry.details.title == "Trip" && !entry.details.busy));
}

#[test]
fn only_what_lies_within_is_found_also_years_later() {
    let day = |day: &str| TimeSpan::new(at(&format!("{day}T00:00")), at(&format!("{day}T23:59")));
    let daily = event("20000103T233000", "DURATION:PT1H\r\nRRULE:FREQ=DAILY");
    // The end of the night before, and this night's.
    assert_eq!(entry_lines(&daily, &day("2026-07-01")).len(), 2);
    let fortnightly = event("20000103T090000", "DURATION:PT1H\r\nRRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE");
    let found = entry_lines(&fortnightly, &TimeSpan::new(at("2026-03-01T00:00"), at("2026-04-01T00:00")));
    // Counted by hand from 3 January 2000: the weeks of 9 and 23 March.
    let days: Vec<&str> = found.iter().map(|one| &one[..5]).collect();
    assert_eq!(days, ["03-09", "03-11", "03-23", "03-25"]);
    assert!(entry_lines(&daily, &day("1999-12-31")).is_empty());
}

#[test]
fn rules_of_many_kinds() {
    for (rule, expected) in [
        // An entry is always the first of its series.
        ("FREQ=MONTHLY;BYDAY=-1FR;COUNT=2", vec!["03-02", "03-27", "04-24"]),
        ("FREQ=MONTHLY;BYMONTHDAY=31", vec!["03-02", "03-31"]),
        ("FREQ=WEEKLY;UNTIL=20260310", vec!["03-02", "03-09"]),
        ("FREQ=WEEKLY;UNTIL=20260309T080000Z", vec!["03-02", "03-09"]),
        ("FREQ=WEEKLY;UNTIL=20260309T075959Z", vec!["03-02"]),
        ("FREQ=WEEKLY;UNTIL=20200101", vec![]),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", vec!["03-02"]),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;COUNT=2", vec!["03-02", "03-31", "04-30"]),
    ] {
        let found = entry_lines(&event("20260302T090000", &format!("DURATION:PT1H\r\nRRULE:{rule}")), &march());
        let days: Vec<&str> = found.iter().map(|one| &one[..5]).collect();
        assert_eq!(days, expected, "{rule}");
    }
}

#[test]
fn days_that_recur_until_a_time() {
    let new_york = TimeZone::get("America/New_York").unwrap();
    let text = event("20260301", "RRULE:FREQ=DAILY;UNTIL=20260303T000000Z")
        .replace("DTSTART;TZID=Europe/Berlin", "DTSTART;VALUE=DATE");
    let calendar = read(&text, "file", &new_york);
    assert_eq!(expand(&calendar, &march()).len(), 3);
}

#[test]
fn times_the_clock_skips_or_shows_twice() {
    // At half past two on 29 March the clock goes from two to three; on 25 October it shows it twice.
    let daily = event("20260328T023000", "DURATION:PT30M\r\nRRULE:FREQ=DAILY;COUNT=2");
    assert_eq!(entry_lines(&daily, &march()), ["03-28T02:30 03-28T03:00 x", "03-29T03:30 03-29T04:00 x"]);
    let twice = read(&event("20261025T023000", "DURATION:PT2H"), "file", &berlin());
    let year = TimeSpan::new(at("2026-01-01T00:00"), at("2027-01-01T00:00"));
    let one = &expand(&twice, &year)[0];
    assert_eq!(
        (one.start.to_string(), one.end.to_string()),
        ("2026-10-25T02:30:00+02:00[Europe/Berlin]".to_owned(), "2026-10-25T03:30:00+01:00[Europe/Berlin]".to_owned(),)
    );
}

#[test]
fn what_differs_from_now_on_and_what_comes_on_top() {
    let series = format!(
        "{}{}",
        event(
            "20260302T090000",
            "DURATION:PT1H\r\nRRULE:FREQ=WEEKLY;COUNT=4\r\nRDATE;TZID=Europe/Berlin:20260304T120000"
        )
        .trim_end_matches("END:VCALENDAR\r\n"),
        "BEGIN:VEVENT\r\nUID:x\r\nSUMMARY:later\r\nRECURRENCE-ID;RANGE=THISANDFUTURE;TZID=Europe/Berlin:20260316T090000\r\n\
         DTSTART;TZID=Europe/Berlin:20260316T100000\r\nDURATION:PT30M\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    );
    assert_eq!(
        entry_lines(&series, &march()),
        [
            "03-02T09:00 03-02T10:00 x",
            "03-04T12:00 03-04T13:00 x",
            "03-09T09:00 03-09T10:00 x",
            "03-16T10:00 03-16T10:30 later",
            "03-23T10:00 03-23T10:30 later",
        ]
    );
}

#[test]
fn what_makes_no_sense_is_said_and_the_rest_is_kept() {
    for text in [
        "".to_owned(),
        "hello".to_owned(),
        "\u{0}\u{1}".to_owned(),
        event("20260230T090000", ""),
        event("20260302T250000", ""),
        event("20260302T090000", "RRULE:FREQ=SOMETIMES;BYSETPOS=999"),
        // Far too often in one year.
        event("20260302T090000", &format!("RRULE:FREQ=YEARLY;BYDAY=MO;BYMINUTE={0};BYSECOND={0}", every(60))),
        "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:no date\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n".to_owned(),
    ] {
        let calendar = read(&text, "file", &berlin());
        assert!(calendar.broken, "{text:?}");
    }
    let half = read(&format!("{GOOGLE}{}", event("20260230T090000", "")), "file", &berlin());
    assert!(half.broken && half.entries.len() == 3);
    let nowhere = read(&event("20260302T090000", "").replace("Europe/Berlin", "Moon/Base"), "file", &berlin());
    assert!(!nowhere.broken && nowhere.unknown_zones.contains("Moon/Base"));
    assert_eq!(expand(&nowhere, &march())[0].start, at("2026-03-02T09:00"));
}

#[test]
fn nobody_goes_on_with_a_file_that_nobody_waits_for() {
    let calendar = ics::read(GOOGLE, "file", &berlin(), &|| false);
    assert!(calendar.entries.is_empty());
}

#[test]
fn a_rule_that_never_ends_is_cut_off() {
    let calendar = read(&event("20260302T090000", "RRULE:FREQ=SECONDLY"), "file", &berlin());
    let (found, more) = expand_occurrences(&calendar.entries[0], &march(), 100);
    assert!(more && found.len() <= 100);
}

#[test]
fn what_is_written_can_be_read() {
    let draft = EntryDraft {
        uid: "1@kairo".into(),
        title: "Budget; \"Q2\", final\nround".into(),
        start: at("2026-03-27T14:00"),
        end: at("2026-03-27T15:00"),
        all_day: false,
        location: Some("Raum 1".into()),
        description: Some("ä".repeat(200)),
        category: Some("meeting".into()),
        guests: vec![
            Guest { name: Some("Lee, Sarah".into()), email: Some("s@example.org".into()) },
            Guest { name: Some("Bob".into()), email: None },
        ],
        rule: parse_rule("weekly"),
    };
    let text = draft.to_ics(Timestamp::UNIX_EPOCH);
    assert!(text.contains("TZID=Europe/Berlin") && text.contains("BEGIN:VTIMEZONE"), "{text}");
    assert!(text.lines().all(|line| line.len() <= 75), "{text}");
    assert_eq!(text, draft.to_ics(Timestamp::UNIX_EPOCH));
    let calendar = read(&text, "file", &TimeZone::UTC);
    assert!(!calendar.broken, "{text}");
    let details = &calendar.entries[0].details;
    assert_eq!(
        (&details.title, &details.guests, &details.description),
        (&draft.title, &draft.guests, &draft.description)
    );
    let found = expand(&calendar, &TimeSpan::new(draft.start.clone(), at("2026-04-04T00:00")));
    let starts: Vec<Zoned> = found.iter().map(|one| one.start.clone()).collect();
    assert_eq!(starts, [at("2026-03-27T14:00"), at("2026-04-03T14:00")]);
}

#[test]
fn rules_of_words_and_what_is_none() {
    for good in ["daily", "Weekdays", "RRULE:FREQ=WEEKLY;BYDAY=MO", "freq=monthly;bymonthday=1"] {
        assert!(parse_rule(good).is_some(), "{good}");
    }
    for bad in ["", "sometimes", "BYDAY=MO", "FREQ=NEVER", "FREQ=DAILY\r\nATTACH:x", "FREQ=DAILY;", "FREQ=DAILY;COUNT"]
    {
        assert!(parse_rule(bad).is_none(), "{bad}");
    }
}

#[test]
fn fuzz_calendars() {
    kairo_fuzz::Corpus::named("calendars").one_in(20).fuzz_text(|text| {
        expand(&read(text, "file", &berlin()), &march());
    });
}

proptest! {
    #[test]
    fn no_text_brings_it_down(
        text in "((BEGIN|END):(VCALENDAR|VEVENT|VTIMEZONE|STANDARD)\n|(DTSTART|DTEND|RRULE|EXDATE|RDATE|DURATION|TZID|RECURRENCE-ID)(;TZID=[A-Z]{1,3}|;VALUE=DATE)?:(FREQ=[A-Z]{3,8};?|[0-9T]{0,16}Z?|P[0-9]{1,9}[WDTHMS])\n|\\PC{0,9}\n){0,25}",
    ) {
        expand(&read(&text, "file", &berlin()), &march());
    }

    #[test]
    fn no_rule_brings_it_down(
        start in "(19|20|99|00)[0-9]{2}(0[1-9]|1[0-2])([0-2][0-9]|3[01])T([01][0-9]|2[0-3])[0-5][0-9][0-5][0-9]",
        rule in "FREQ=(YEAR|MONTH|WEEK|DAI|HOUR|MINUTE|SECOND)LY(;(COUNT|INTERVAL|BYSECOND|BYMINUTE|BYHOUR|BYMONTHDAY|BYYEARDAY|BYWEEKNO|BYMONTH|BYSETPOS)=-?[0-9]{1,3}(,-?[0-9]{1,2})?|;BYDAY=-?[0-9]{0,2}(MO|SU)(,FR)?|;WKST=SU|;UNTIL=[0-9]{8}(T[0-9]{6}Z)?){0,4}",
        length in prop_oneof![Just(""), Just("\r\nDURATION:P40000000W"), Just("\r\nDURATION:PT99999999H")],
    ) {
        expand(&read(&event(&start, &format!("RRULE:{rule}{length}")), "file", &berlin()), &march());
    }

    #[test]
    fn going_through_the_years_before_finds_the_same(
        freq in prop_oneof![Just("DAILY"), Just("WEEKLY"), Just("HOURLY")],
        interval in 1_u16..40,
        first in 1_i8..28,
        by in prop_oneof![
            Just(""), Just(";BYDAY=MO,TH"), Just(";BYMONTH=3,7"), Just(";BYDAY=MO,WE,FR;BYSETPOS=2"), Just(";BYDAY=TU,SU;BYSETPOS=-1"),
        ],
        week in prop_oneof![Just(""), Just(";WKST=SU"), Just(";WKST=WE")],
    ) {
        let by = if freq == "HOURLY" { "" } else { by };
        // Sets of days are taken from weeks.
        let (interval, week) = if by.contains("BYSETPOS") { (interval % 4 + 1, week) } else { (interval, "") };
        let freq = if by.contains("BYSETPOS") { "WEEKLY" } else { freq };
        let rule = format!("RRULE:FREQ={freq};INTERVAL={interval}{by}{week}");
        let text = event(&format!("202508{first:02}T100000"), &rule);
        let calendar = read(&text, "file", &TimeZone::UTC);
        let late = TimeSpan::new(at("2026-03-10T00:00"), at("2026-03-24T00:00"));
        let whole = TimeSpan::new(at("2025-08-01T00:00"), late.end.clone());
        let (all, more) = expand_occurrences(&calendar.entries[0], &whole, 50_000);
        prop_assert!(!more);
        let expected: Vec<_> = all.into_iter().filter(|one| one.start >= late.start).collect();
        prop_assert_eq!(expand_occurrences(&calendar.entries[0], &late, 50_000).0, expected);
    }
}
