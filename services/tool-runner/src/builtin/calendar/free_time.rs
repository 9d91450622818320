//! Free time: what busy time leaves of a stretch.

use jiff::civil::Time;
use jiff::{ToSpan as _, Zoned};

use crate::builtin::workspace::TimeSpan;

/// From which time of the day until which.
pub type DayHours = (Time, Time);

/// The stretches of `within`, and of the `hours` of its days, that none of the `busy` ones touches, if they are at
/// least `minutes` long. In order.
pub fn find_free_spans(within: &TimeSpan, busy: &[TimeSpan], hours: Option<DayHours>, minutes: i64) -> Vec<TimeSpan> {
    let mut busy: Vec<&TimeSpan> = busy.iter().filter(|busy| busy.start < busy.end).collect();
    busy.sort_by(|a, b| a.start.cmp(&b.start));
    let mut found = Vec::new();
    for window in day_windows(within, hours) {
        let mut from = window.start.clone();
        for busy in &busy {
            if busy.start >= window.end {
                break;
            }
            if busy.start > from {
                found.push(TimeSpan::new(from.clone(), in_zone_of(&busy.start, &from)));
            }
            if busy.end > from {
                from = in_zone_of(&busy.end, &from);
            }
        }
        if from < window.end {
            found.push(TimeSpan::new(from, window.end));
        }
    }
    found.retain(|free| whole_minutes(free) >= minutes.max(1));
    found
}

/// Whole minutes of a stretch.
pub fn whole_minutes(span: &TimeSpan) -> i64 {
    (span.end.timestamp().as_second() - span.start.timestamp().as_second()) / 60
}

fn in_zone_of(moment: &Zoned, like: &Zoned) -> Zoned {
    moment.with_time_zone(like.time_zone().clone())
}

/// The part of each day that counts.
fn day_windows(within: &TimeSpan, hours: Option<DayHours>) -> Vec<TimeSpan> {
    let Some((from, until)) = hours else {
        return vec![within.clone()];
    };
    let at = |date: jiff::civil::Date, time: Time| {
        date.to_datetime(time).to_zoned(within.start.time_zone().clone()).unwrap_or_else(|_| within.end.clone())
    };
    let days = within.start.date().series(1.day()).take_while(|day| *day <= within.end.date());
    days.map(|day| TimeSpan::new(at(day, from).max(within.start.clone()), at(day, until).min(within.end.clone())))
        .filter(|window| window.start < window.end)
        .collect()
}

#[cfg(test)]
mod tests {
    use jiff::civil::time;
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Zoned {
        format!("2026-03-{text}[Europe/Berlin]").parse().unwrap()
    }

    fn span(start: &str, end: &str) -> TimeSpan {
        TimeSpan::new(at(start), at(end))
    }

    fn span_texts(free: &[TimeSpan]) -> Vec<String> {
        let one = |span: &TimeSpan| format!("{}-{}", span.start.strftime("%dT%H:%M"), span.end.strftime("%dT%H:%M"));
        free.iter().map(one).collect()
    }

    #[test]
    fn what_busy_time_leaves_of_working_hours() {
        let busy = [
            span("02T09:00", "02T10:00"),
            span("02T09:30", "02T11:00"),
            span("02T16:00", "03T09:30"),
            span("03T12:00", "03T12:00"),
        ];
        let hours = Some((time(9, 0, 0, 0), time(17, 0, 0, 0)));
        let found = find_free_spans(&span("02T00:00", "03T11:00"), &busy, hours, 30);
        assert_eq!(span_texts(&found), ["02T11:00-02T16:00", "03T09:30-03T11:00"]);
        assert_eq!(span_texts(&find_free_spans(&span("02T10:30", "02T11:20"), &busy, None, 30)), Vec::<String>::new());
    }

    #[test]
    fn the_night_the_clock_changes_is_an_hour_shorter() {
        let found = find_free_spans(&span("29T00:00", "29T06:00"), &[], None, 1);
        assert_eq!(whole_minutes(&found[0]), 5 * 60);
    }

    proptest! {
        #[test]
        fn free_and_busy_time_never_meet_and_leave_nothing_out(
            busy in proptest::collection::vec((0_i64..3000, 0_i64..600), 0..20),
            least in 1_i64..90,
        ) {
            let within = span("28T00:00", "30T00:00");
            let minute = |minute: i64| within.start.checked_add(minute.minutes()).unwrap();
            let busy: Vec<TimeSpan> =
                busy.into_iter().map(|(start, length)| TimeSpan::new(minute(start), minute(start + length))).collect();
            let found = find_free_spans(&within, &busy, None, least);
            for free in &found {
                prop_assert!(whole_minutes(free) >= least);
                prop_assert!(busy.iter().all(|busy| busy.start == busy.end || busy.end <= free.start || busy.start >= free.end));
            }
            let all = find_free_spans(&within, &busy, None, 1);
            let is_in = |spans: &[TimeSpan], moment: &Zoned| spans.iter().any(|s| s.start <= *moment && *moment < s.end);
            for moment in (0..2820).step_by(7).map(minute) {
                prop_assert!(is_in(&all, &moment) != is_in(&busy, &moment), "{}", moment);
            }
        }
    }
}
