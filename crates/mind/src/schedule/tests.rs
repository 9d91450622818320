//! Asking at Thursday, 5 March 2026, 10:00 in Berlin; clocks change there on 29 March and 25 October.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use kairo_proto::v1;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Schedule, arguments};

const BERLIN: &str = "Europe/Berlin";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn now() -> Timestamp {
    at("2026-03-05T09:00:00Z")
}

fn ask(params: Value) -> Result<v1::Task, String> {
    arguments::build_task(params.as_object().unwrap(), now(), BERLIN)
}

fn wall(moment: Timestamp) -> String {
    moment.to_zoned(TimeZone::get(BERLIN).unwrap()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Type, and the first times on the wall.
fn times(params: Value, count: usize) -> (String, Vec<String>) {
    let shown = params.to_string();
    let task = ask(params).unwrap_or_else(|error| panic!("{shown}: {error}"));
    let schedule = Schedule::from_task(&task).unwrap();
    let first = schedule.next_after(now()).unwrap();
    assert_eq!(first.to_string(), task.next_at, "{shown}");
    let all = std::iter::successors(Some(first), |last| schedule.next_after(*last));
    (task.r#type, all.take(count).map(wall).collect())
}

fn first(params: Value) -> String {
    times(params, 1).1.remove(0)
}

#[test]
fn at_a_time() {
    for (text, expected) in [
        ("2026-03-05 17:00", "2026-03-05 17:00:00"),
        ("2026-03-05T17:00", "2026-03-05 17:00:00"),
        ("2026-03-05T17:00:00Z", "2026-03-05 18:00:00"),
        ("tomorrow 08:00", "2026-03-06 08:00:00"),
        ("tomorrow", "2026-03-06 09:00:00"),
        ("17:00", "2026-03-05 17:00:00"),
        ("next friday at noon", "2026-03-06 12:00:00"),
        ("in 3 days", "2026-03-08 10:00:00"),
        ("in 2 hours", "2026-03-05 12:00:00"),
        ("2026-03-20", "2026-03-20 09:00:00"),
        ("next week", "2026-03-09 09:00:00"),
        // A time that the clocks skip, and one that comes twice.
        ("2026-03-29 02:30", "2026-03-29 03:00:00"),
        ("2026-03-29T02:30", "2026-03-29 03:00:00"),
        ("2026-10-25 02:30", "2026-10-25 02:30:00"),
    ] {
        assert_eq!(times(json!({"at": text}), 3), ("once".to_owned(), vec![expected.to_owned()]), "{text}");
    }
    assert_eq!(ask(json!({"at": "2026-10-25 02:30"})).unwrap().next_at, "2026-10-25T00:30:00Z");
    assert_eq!(
        first(json!({"at": {"start": "2026-03-09T00:00:00+01:00", "date": "2026-03-09"}})),
        "2026-03-09 00:00:00"
    );
    assert_eq!(first(json!({"at": "tomorrow 08:00", "time_zone": "America/New_York"})), "2026-03-06 14:00:00");
}

#[test]
fn after_a_while() {
    for (text, expected) in [
        ("30m", "2026-03-05 10:30:00"),
        ("2 hours", "2026-03-05 12:00:00"),
        ("PT30M", "2026-03-05 10:30:00"),
        ("an hour", "2026-03-05 11:00:00"),
        ("in 90 seconds", "2026-03-05 10:01:30"),
        ("1h 15m", "2026-03-05 11:15:00"),
        ("1 month", "2026-04-05 10:00:00"),
    ] {
        assert_eq!(times(json!({"delay": text}), 2), ("delay".to_owned(), vec![expected.to_owned()]), "{text}");
    }
    assert_eq!(first(json!({"type": "delay", "interval": "30m"})), "2026-03-05 10:30:00");
}

#[test]
fn again_and_again() {
    let all = |params: Value| times(params, 3).1.join(", ");
    for (params, expected) in [
        (json!({"interval": "2 hours"}), "2026-03-05 12:00:00, 2026-03-05 14:00:00, 2026-03-05 16:00:00"),
        (json!({"interval": "hour"}), "2026-03-05 11:00:00, 2026-03-05 12:00:00, 2026-03-05 13:00:00"),
        (json!({"interval": "1 hour", "at": "12:30"}), "2026-03-05 12:30:00, 2026-03-05 13:30:00, 2026-03-05 14:30:00"),
        (json!({"interval": "1 day", "at": "08:00"}), "2026-03-06 08:00:00, 2026-03-07 08:00:00, 2026-03-08 08:00:00"),
        (json!({"interval": "month"}), "2026-04-05 10:00:00, 2026-05-05 10:00:00, 2026-06-05 10:00:00"),
        (
            json!({"interval": "1 month", "at": "2026-03-31 08:00"}),
            "2026-03-31 08:00:00, 2026-04-30 08:00:00, 2026-05-31 08:00:00",
        ),
        (json!({"every": "day", "at": "08:00"}), "2026-03-06 08:00:00, 2026-03-07 08:00:00, 2026-03-08 08:00:00"),
        (json!({"every": "weekday"}), "2026-03-06 09:00:00, 2026-03-09 09:00:00, 2026-03-10 09:00:00"),
        (
            json!({"every": "monday and thursday", "at": "18:00"}),
            "2026-03-05 18:00:00, 2026-03-09 18:00:00, 2026-03-12 18:00:00",
        ),
        (json!({"cron": "0 8 * * 1-5"}), "2026-03-06 08:00:00, 2026-03-09 08:00:00, 2026-03-10 08:00:00"),
        (json!({"cron": "*/20 0 8 * * *"}), "2026-03-06 08:00:00, 2026-03-06 08:00:20, 2026-03-06 08:00:40"),
        (
            json!({"rrule": "FREQ=MONTHLY;BYDAY=1MO;BYHOUR=8"}),
            "2026-04-06 08:00:00, 2026-05-04 08:00:00, 2026-06-01 08:00:00",
        ),
        (
            json!({"rrule": "RRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", "at": "17:00"}),
            "2026-03-31 17:00:00, 2026-04-30 17:00:00, 2026-05-29 17:00:00",
        ),
        (
            json!({"rrule": "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29"}),
            "2028-02-29 09:00:00, 2032-02-29 09:00:00, 2036-02-29 09:00:00",
        ),
        (
            json!({"rrule": "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU", "at": "2026-03-03 12:00"}),
            "2026-03-17 12:00:00, 2026-03-31 12:00:00, 2026-04-14 12:00:00",
        ),
        (json!({"rrule": "FREQ=DAILY;COUNT=2"}), "2026-03-06 09:00:00"),
        (json!({"rrule": "FREQ=DAILY;UNTIL=20260307"}), "2026-03-06 09:00:00, 2026-03-07 09:00:00"),
        (
            json!({"rrule": "FREQ=HOURLY;INTERVAL=2;BYHOUR=8,9,10,11;BYDAY=MO", "at": "08:00"}),
            "2026-03-09 08:00:00, 2026-03-09 10:00:00, 2026-03-16 08:00:00",
        ),
        (json!({"rrule": "FREQ=YEARLY;BYDAY=-1SU"}), "2026-12-27 09:00:00, 2027-12-26 09:00:00, 2028-12-31 09:00:00"),
    ] {
        assert_eq!(all(params.clone()), expected, "{params}");
    }
}

#[test]
fn the_clock_on_the_wall_is_kept_when_the_clocks_change() {
    let daily = |from: &str| Schedule::Rule {
        rule: "FREQ=DAILY".to_owned(),
        start: from.parse().unwrap(),
        zone: BERLIN.to_owned(),
    };
    let days = Schedule::DaysAt { at: "02:30".parse().unwrap(), zone: BERLIN.to_owned() };
    let cron = Schedule::Cron { expr: "30 2 * * *".to_owned(), zone: BERLIN.to_owned() };
    for schedule in [daily("2026-03-01T02:30"), days, cron] {
        let from = |start: &str| {
            let all = std::iter::successors(schedule.next_after(at(start)), |last| schedule.next_after(*last));
            all.take(3).map(wall).collect::<Vec<_>>().join(", ")
        };
        let spring = "2026-03-28 02:30:00, 2026-03-29 03:00:00, 2026-03-30 02:30:00";
        assert_eq!(from("2026-03-27T12:00:00Z"), spring, "{schedule:?}");
        let autumn = "2026-10-24 02:30:00, 2026-10-25 02:30:00, 2026-10-26 02:30:00";
        assert_eq!(from("2026-10-23T12:00:00Z"), autumn, "{schedule:?}");
    }
    let noon = daily("2026-03-28T12:00");
    assert_eq!(noon.next_after(at("2026-03-28T11:00:00Z")), Some(at("2026-03-29T10:00:00Z")));
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    for (params, said) in [
        (json!({"at": "2026-03-05 09:00"}), "past"),
        (json!({"at": "yesterday"}), "past"),
        (json!({"at": "2026-02-30"}), "does not exist"),
        (json!({"at": "someday"}), "not understood"),
        (json!({"at": "2032-01-01"}), "5 years"),
        (json!({"at": "99999-01-01"}), "not understood"),
        (json!({"at": 5}), "at: expected a text"),
        (json!({"delay": "0m"}), "above zero"),
        (json!({"delay": "-5m"}), "above zero"),
        (json!({"delay": "6 years"}), "5 years"),
        (json!({"delay": "99999999999999999999 days"}), "delay: expected"),
        (json!({"delay": "soon"}), "delay: expected"),
        (json!({"at": "tomorrow", "delay": "5m"}), "found both"),
        (json!({}), "expected at"),
        (json!({"type": "sometimes", "at": "tomorrow"}), "type: expected"),
        (json!({"type": "repeat"}), "exactly one"),
        (json!({"interval": "1 day", "cron": "0 8 * * *"}), "exactly one"),
        (json!({"interval": "5s"}), "at least 10 seconds"),
        (json!({"interval": "1 day 2 hours"}), "interval: expected"),
        (json!({"type": "once", "at": "tomorrow", "cron": "0 8 * * *"}), "repeat only"),
        (json!({"cron": "0 8 * *"}), "cron: expected five"),
        (json!({"cron": "99 8 * * *"}), "cron:"),
        (json!({"cron": "ä 8 * * *"}), "cron: expected"),
        (json!({"cron": "0 0 30 2 *"}), "never due"),
        (json!({"cron": "* * * * * *"}), "more often"),
        (json!({"cron": "0,1 0 8 * * *"}), "more often"),
        (json!({"cron": "0 8 * * *", "at": "tomorrow"}), "does not go with cron"),
        (json!({"rrule": "FREQ=SECONDLY"}), "FREQ: expected"),
        (json!({"rrule": "BYDAY=MO"}), "FREQ is missing"),
        (json!({"rrule": "FREQ=DAILY;BYWEEKNO=3"}), "BYWEEKNO"),
        (json!({"rrule": "FREQ=DAILY;FREQ=DAILY"}), "twice"),
        (json!({"rrule": "FREQ=WEEKLY;BYDAY=1MO"}), "MONTHLY or YEARLY"),
        (json!({"rrule": "FREQ=MONTHLY;BYMONTHDAY=0"}), "0 is none"),
        (json!({"rrule": "FREQ=DAILY;UNTIL=20200101"}), "nothing is due"),
        (json!({"rrule": "FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30"}), "nothing is due"),
        (json!({"rrule": "FREQ=MINUTELY;INTERVAL=2;BYMINUTE=7", "at": "08:00"}), "nothing is due"),
        (json!({"rrule": "x".repeat(600)}), "at most 500"),
        (json!({"at": "tomorrow", "time_zone": "Europe/Atlantis"}), "time_zone"),
    ] {
        let error = ask(params.clone()).expect_err(&params.to_string());
        assert!(error.contains(said), "{params}: {error}");
    }
}

#[test]
fn a_task_in_the_log_says_it_again() {
    for params in [
        json!({"at": "tomorrow"}),
        json!({"delay": "1h"}),
        json!({"interval": "1h"}),
        json!({"interval": "3 days", "at": "07:00"}),
        json!({"cron": "0 8 * * *", "time_zone": "Asia/Tokyo"}),
        json!({"rrule": "FREQ=DAILY;COUNT=5", "at": "tomorrow 07:30"}),
    ] {
        let task = ask(params.clone()).unwrap();
        let schedule = Schedule::from_task(&task).unwrap();
        let mut again = v1::Task { r#type: task.r#type.clone(), next_at: task.next_at.clone(), ..Default::default() };
        schedule.write_to(&mut again);
        assert_eq!(Schedule::from_task(&again), Some(schedule), "{params}");
    }
}

fn zones() -> impl Strategy<Value = String> {
    let zones = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Beirut", "Pacific/Apia", "UTC"];
    prop::sample::select(zones.map(str::to_owned).to_vec())
}

fn schedules() -> impl Strategy<Value = Schedule> {
    let rules = [
        "FREQ=DAILY",
        "FREQ=DAILY;BYHOUR=0,1,2,3;BYMINUTE=0,15,30,45",
        "FREQ=WEEKLY;BYDAY=SU",
        "FREQ=MONTHLY;BYDAY=-1SU",
        "FREQ=HOURLY;INTERVAL=5",
        "FREQ=MINUTELY;INTERVAL=45;BYHOUR=1,2,3",
        "FREQ=YEARLY;BYMONTH=3,10;BYDAY=-1SU;BYHOUR=2",
    ];
    let crons = ["30 2 * * *", "0 * * * *", "*/15 0-4 * * *", "0 2 * * SUN", "59 23 L * *"];
    let time = (0_i8..24, 0_i8..60);
    prop_oneof![
        (10_i64..200_000).prop_map(|seconds| Schedule::Interval { seconds, anchor: now() }),
        (prop::sample::select(crons.to_vec()), zones())
            .prop_map(|(expr, zone)| Schedule::Cron { expr: expr.to_owned(), zone }),
        (prop::sample::select(rules.to_vec()), zones(), time.clone()).prop_map(|(rule, zone, (hour, minute))| {
            let start = jiff::civil::date(2026, 3, 5).at(hour, minute, 0, 0);
            Schedule::Rule { rule: rule.to_owned(), start, zone }
        }),
        (zones(), time)
            .prop_map(|(zone, (hour, minute))| Schedule::DaysAt { at: jiff::civil::time(hour, minute, 0, 0), zone }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn times_only_go_forward(schedule in schedules(), ahead in 0_i64..400 * 86_400, fraction in 0_i64..1_000) {
        let mut last = now() + SignedDuration::from_secs(ahead) + SignedDuration::from_millis(fraction);
        for _ in 0..20 {
            let next = schedule.next_after(last);
            prop_assert!(next.is_some_and(|next| next > last), "{schedule:?} behind {last}: {next:?}");
            last = next.unwrap();
        }
    }

    #[test]
    fn a_day_has_its_time_once(zone in zones(), hour in 0_i8..24, minute in 0_i8..60, ahead in 0_i64..400) {
        let schedule = Schedule::DaysAt { at: jiff::civil::time(hour, minute, 0, 0), zone: zone.clone() };
        let zone = TimeZone::get(&zone).unwrap();
        let from = now() + SignedDuration::from_hours(24 * ahead);
        let first = schedule.next_after(from).unwrap();
        let second = schedule.next_after(first).unwrap();
        let days = [first, second].map(|moment| moment.to_zoned(zone.clone()).date());
        prop_assert_eq!(days[0].tomorrow().unwrap(), days[1]);
        // At its time, or at the end of a gap that its time lies in.
        let shown = second.to_zoned(zone.clone()).time();
        let gap = zone.preceding(second + SignedDuration::from_nanos(1)).next().is_some_and(|change| change.timestamp() == second);
        prop_assert!(shown == jiff::civil::time(hour, minute, 0, 0) || gap);
    }

    #[test]
    fn nothing_that_is_asked_for_panics(
        at in ".{0,30}", delay in "[0-9a-zA-Z .-]{0,20}", cron in "[0-9*/,A-Z# -]{0,20}", rrule in "[A-Z=;,0-9-]{0,40}",
    ) {
        for params in [json!({"at": at}), json!({"delay": delay}), json!({"interval": delay}), json!({"cron": cron}),
                       json!({"rrule": rrule}), json!({"rrule": format!("FREQ=MONTHLY;{rrule}")}), json!({"every": at})] {
            let _ = ask(params);
        }
    }
}
