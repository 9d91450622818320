//! When a task is due, and when again: once, after a delay, at an interval, by cron or by a recurrence rule, in a time
//! zone with its daylight saving.
//!
//! * `ask`: what a model or a user asks for, made into a schedule
//! * `rule`: recurrence rules of RFC 5545
//!
//! A time that the clocks skip is due at the first moment after the gap; one that comes twice is due the first time.

pub mod arguments;
mod rule;
#[cfg(test)]
mod tests;

use jiff::{
    Timestamp, ToSpan as _,
    civil::{DateTime, Time},
    tz::{AmbiguousOffset, TimeZone},
};
use kairo_proto::{v1, words::TaskTiming};
use serde::{Deserialize, Serialize};

use self::rule::ScheduleRule;

/// Shortest time between two occurrences, in seconds.
pub const SHORTEST_SECONDS: i64 = 10;
/// Maximum distance of a scheduled time, in years.
pub const MOST_YEARS: i16 = 5;
/// Hour of the day at which something is due if only its day is known.
pub const DEFAULT_HOUR: i8 = 9;

/// When a task is due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Schedule {
    /// Also what comes of a delay.
    Once(Timestamp),
    /// At `anchor`, and every so many seconds after it, however the clocks change.
    Interval { seconds: i64, anchor: Timestamp },
    /// Five fields, or six with the seconds in front.
    Cron { expr: String, zone: String },
    /// A rule of RFC 5545 that begins at `start`, on the wall clock of the zone.
    Rule { rule: String, start: DateTime, zone: String },
    /// Every day at this time on the wall clock.
    DaysAt { at: Time, zone: String },
}

impl Schedule {
    /// The first time behind `after`; none when there is no more.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Once(at) => (*at > after).then_some(*at),
            Self::Interval { seconds, anchor } => next_interval(*anchor, *seconds, after),
            Self::Cron { expr, zone } => {
                let after = after.to_zoned(TimeZone::get(zone).ok()?);
                let next = parse_cron(expr).ok()?.find_next_occurrence(&after, false).ok()?.timestamp();
                // Whoever looks behind a fraction of a second must not find the second it lies in.
                Some(next).filter(|next| *next > after.timestamp())
            }
            Self::Rule { rule, start, zone } => {
                ScheduleRule::parse(rule).ok()?.next_after(*start, &TimeZone::get(zone).ok()?, after)
            }
            Self::DaysAt { at, zone } => {
                let zone = TimeZone::get(zone).ok()?;
                let yesterday = after.to_zoned(zone.clone()).date().yesterday().ok()?;
                // Somewhere a whole day was skipped once.
                let days = (0..5).filter_map(|days| yesterday.checked_add(days.days()).ok());
                days.filter_map(|day| wall_to_timestamp(day.to_datetime(*at), &zone)).find(|moment| *moment > after)
            }
        }
    }

    /// As a task in the log says it; it is the same for everybody who reads the log. A task that says it in no way known
    /// here is due once.
    pub fn from_task(task: &v1::Task) -> Option<Self> {
        let zone = if task.time_zone.is_empty() { "UTC" } else { &task.time_zone };
        let zone = zone.to_owned();
        if !task.cron.is_empty() {
            return Some(Self::Cron { expr: task.cron.clone(), zone });
        }
        if !task.rrule.is_empty() {
            return Some(Self::Rule { rule: task.rrule.clone(), start: task.at.parse().ok()?, zone });
        }
        let repeats = task.type_word() == TaskTiming::Repeat;
        if repeats && !task.interval.is_empty() {
            let seconds = task.interval.strip_suffix('s')?.parse().ok()?;
            return Some(Self::Interval { seconds, anchor: task.at.parse().ok()? });
        }
        if repeats {
            return Some(Self::DaysAt { at: task.at.parse().ok()?, zone });
        }
        task.next_at.parse().ok().map(Self::Once)
    }

    /// Writes it into a task, for the log.
    pub fn write_to(&self, task: &mut v1::Task) {
        match self {
            Self::Once(at) => task.at = at.to_string(),
            Self::Interval { seconds, anchor } => {
                task.interval = format!("{seconds}s");
                task.at = anchor.to_string();
            }
            Self::Cron { expr, zone } => {
                task.cron.clone_from(expr);
                task.time_zone.clone_from(zone);
            }
            Self::Rule { rule, start, zone } => {
                task.rrule.clone_from(rule);
                task.at = start.to_string();
                task.time_zone.clone_from(zone);
            }
            Self::DaysAt { at, zone } => {
                task.at = at.strftime("%H:%M").to_string();
                task.time_zone.clone_from(zone);
            }
        }
    }

    /// Returns true if the schedule may be due more than once.
    pub fn repeats(&self) -> bool {
        !matches!(self, Self::Once(_))
    }
}

/// The first of `anchor`, `anchor` + `seconds`, … behind `after`.
fn next_interval(anchor: Timestamp, seconds: i64, after: Timestamp) -> Option<Timestamp> {
    if anchor > after {
        return Some(anchor);
    }
    let seconds = i128::from(seconds.max(SHORTEST_SECONDS)) * 1_000_000_000;
    let gone = (after.as_nanosecond() - anchor.as_nanosecond()) / seconds;
    Timestamp::from_nanosecond(anchor.as_nanosecond() + (gone + 1) * seconds).ok()
}

/// When a clock on the wall of `zone` shows this, the first time; or the first moment after the gap, if it never does.
fn wall_to_timestamp(wall: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    let moment = zone.to_ambiguous_timestamp(wall);
    match moment.offset() {
        AmbiguousOffset::Gap { before, .. } => {
            let behind = before.to_timestamp(wall).ok()?.checked_add(1.nanosecond()).ok()?;
            zone.preceding(behind).next().map(|change| change.timestamp())
        }
        AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => moment.compatible().ok(),
    }
}

/// Reads a cron expression of five or six fields.
fn parse_cron(expr: &str) -> Result<croner::Cron, String> {
    /// Longest expression, in bytes.
    const LONGEST: usize = 200;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b" \t*/,-?#".contains(&byte);
    let fields = expr.split_whitespace().count();
    if expr.len() > LONGEST || !expr.bytes().all(allowed) || !(5..=6).contains(&fields) {
        return Err(format!(
            "cron: expected five fields (minute hour day month weekday), or six with seconds in front, found {:?}",
            expr.chars().take(LONGEST).collect::<String>()
        ));
    }
    expr.parse().map_err(|error| format!("cron: {error}"))
}
