//! Builds schedules from the arguments of a model or a user: `at`, `delay`, `interval`, `every`, `cron`, `rrule`.
//!
//! Input that is not understood, past, too far ahead or too frequent is refused by name: a reminder at a wrong time is
//! worse than none.

mod phrases;

use jiff::{
    Span, SpanRound, Timestamp, ToSpan as _, Unit, Zoned,
    civil::{DateTime, Time},
    tz::TimeZone,
};
use kairo_events::dates::{
    DateError,
    calendar::{self, DateExtent},
    grammar,
};
use kairo_proto::{v1, words::TaskTiming};
use serde_json::{Map, Value};

use super::{DEFAULT_HOUR, MOST_YEARS, SHORTEST_SECONDS, Schedule, ScheduleRule, parse_cron, wall_to_timestamp};

/// Occurrences looked at to learn how close a cron expression has them.
const CLOSENESS_SEEN: usize = 70;
/// Longest of the texts, in characters.
const LONGEST: usize = 500;

/// The arguments as given, each none if it is missing or empty.
#[derive(Default)]
struct ScheduleArguments {
    kind: Option<String>,
    at: Option<String>,
    delay: Option<String>,
    interval: Option<String>,
    every: Option<String>,
    cron: Option<String>,
    rrule: Option<String>,
}

/// Makes a task's schedule from parameters: a task with type, at, interval, cron, rrule, time zone, next time and
/// occurrence set. `zone` is where the parameters name none.
pub fn build_task(params: &Map<String, Value>, now: Timestamp, zone: &str) -> Result<v1::Task, String> {
    let name = text_argument(params, &["time_zone"])?.unwrap_or_else(|| zone.to_owned());
    let zone = parse_time_zone(&name)?;
    let asked = ScheduleArguments {
        kind: text_argument(params, &["type"])?,
        at: text_argument(params, &["at"])?,
        delay: text_argument(params, &["delay", "in"])?,
        interval: text_argument(params, &["interval"])?,
        every: text_argument(params, &["every"])?,
        cron: text_argument(params, &["cron"])?,
        rrule: text_argument(params, &["rrule"])?,
    };
    let now = now.to_zoned(zone);
    let (timing, schedule) = asked.build_schedule(&now, &name)?;
    let next =
        schedule.next_after(now.timestamp()).ok_or("nothing is due: the schedule has no time that is still to come")?;
    if next > latest_due_time(&now)? {
        return Err(format!("{next} is more than {MOST_YEARS} years ahead, which is as far as tasks are scheduled"));
    }
    let mut task = v1::Task {
        r#type: timing.text(),
        time_zone: name,
        next_at: next.to_string(),
        occurrence: 1,
        ..v1::Task::default()
    };
    schedule.write_to(&mut task);
    if timing == TaskTiming::Delay {
        task.interval = asked.delay.or(asked.interval).unwrap_or_default();
    }
    Ok(task)
}

/// The zone of this IANA name.
pub fn parse_time_zone(name: &str) -> Result<TimeZone, String> {
    TimeZone::get(name)
        .map_err(|_| format!("time_zone: {name:?} is no IANA time zone; write one such as Europe/Berlin or UTC"))
}

/// A parameter's text. Chains fill in what earlier steps returned, which may be a whole result of `tools.now` or
/// `tools.date_calc`.
fn text_argument(params: &Map<String, Value>, names: &[&str]) -> Result<Option<String>, String> {
    let Some((name, value)) = names.iter().find_map(|name| Some((name, params.get(*name)?))) else { return Ok(None) };
    let within = |map: &Map<String, Value>| ["start", "now", "date"].iter().find_map(|key| map.get(*key).cloned());
    let value = match value {
        Value::Object(map) if *name == "at" => within(map).unwrap_or_else(|| value.clone()),
        value => value.clone(),
    };
    match value {
        Value::Null => Ok(None),
        Value::String(text) if text.chars().count() > LONGEST => {
            Err(format!("{name}: expected at most {LONGEST} characters"))
        }
        Value::String(text) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
        _ => Err(format!("{name}: expected a text")),
    }
}

impl ScheduleArguments {
    /// Its type, and when it is due.
    fn build_schedule(&self, now: &Zoned, zone: &str) -> Result<(TaskTiming, Schedule), String> {
        let timing = match self.kind.as_deref().map(TaskTiming::from) {
            // Some say "once" of what is due once after a delay.
            Some(TaskTiming::Once | TaskTiming::Delay) if self.at.is_none() => TaskTiming::Delay,
            Some(TaskTiming::Once | TaskTiming::Delay) => TaskTiming::Once,
            Some(TaskTiming::Repeat) => TaskTiming::Repeat,
            Some(TaskTiming::Unknown(other)) => {
                return Err(format!("type: expected once, delay or repeat, found {other:?}"));
            }
            None if self.every.is_some() || self.interval.is_some() || self.cron.is_some() || self.rrule.is_some() => {
                TaskTiming::Repeat
            }
            None if self.at.is_some() => TaskTiming::Once,
            None => TaskTiming::Delay,
        };
        match timing {
            TaskTiming::Repeat => Ok((timing, self.build_repeated(now, zone)?)),
            _ if self.cron.is_some() || self.rrule.is_some() || self.every.is_some() => {
                Err("cron, rrule and every go with type repeat only".to_owned())
            }
            TaskTiming::Once if self.delay.is_some() => Err("expected at or delay, found both".to_owned()),
            TaskTiming::Once => Ok((timing, self.build_once(now)?)),
            TaskTiming::Delay | TaskTiming::Unknown(_) => Ok((timing, self.build_delayed(now)?)),
        }
    }

    fn build_once(&self, now: &Zoned) -> Result<Schedule, String> {
        let text = self.at.as_deref().unwrap_or_default();
        let at = parse_moment("at", text, now)?;
        if at <= now.timestamp() {
            let at = format_wall_time(at, now);
            let now = format_wall_time(now.timestamp(), now);
            return Err(format!("at: {text:?} is {at}, which is past: it is {now}"));
        }
        Ok(Schedule::Once(at))
    }

    fn build_delayed(&self, now: &Zoned) -> Result<Schedule, String> {
        let Some((name, text)) =
            name_if_given("delay", &self.delay).or_else(|| name_if_given("interval", &self.interval))
        else {
            return Err("expected at (such as \"tomorrow 08:00\"), delay (such as \"30m\"), or for a repeated task interval, every, cron or rrule".to_owned());
        };
        let span = phrases::parse_span(name, text)?;
        let at = now.checked_add(span).map_err(|_| format!("{name}: {text:?} is too far ahead"))?;
        Ok(Schedule::Once(at.timestamp()))
    }

    fn build_repeated(&self, now: &Zoned, zone: &str) -> Result<Schedule, String> {
        // What others call a delay is how long it is until the next time.
        let given = [
            name_if_given("interval", &self.interval),
            name_if_given("every", &self.every),
            name_if_given("cron", &self.cron),
            name_if_given("rrule", &self.rrule),
        ];
        let mut given = given.into_iter().flatten();
        let (Some((name, text)), None) = (given.next(), given.next()) else {
            return Err("a repeated task has exactly one of interval (\"2 hours\"), every (\"monday\"), cron (\"0 8 * * 1-5\") and rrule (\"FREQ=MONTHLY;BYMONTHDAY=1\")".to_owned());
        };
        match name {
            "cron" => self.build_from_cron(text, now, zone),
            "rrule" => self.build_from_rule(text, now, zone),
            _ => match phrases::parse_repetition(text) {
                Some(rule) => self.build_from_rule(&rule, now, zone),
                None => self.build_from_span(name, text, now, zone),
            },
        }
    }

    fn build_from_cron(&self, expr: &str, now: &Zoned, zone: &str) -> Result<Schedule, String> {
        if self.at.is_some() {
            return Err("at does not go with cron, which says the time itself".to_owned());
        }
        parse_cron(expr)?;
        let schedule = Schedule::Cron { expr: expr.to_owned(), zone: zone.to_owned() };
        let mut last = schedule.next_after(now.timestamp()).ok_or_else(|| format!("cron: {expr:?} is never due"))?;
        for _ in 0..CLOSENESS_SEEN {
            let Some(next) = schedule.next_after(last) else { break };
            if next.as_second() - last.as_second() < SHORTEST_SECONDS {
                return Err(format!("cron: {expr:?} is due more often than every {SHORTEST_SECONDS} seconds"));
            }
            last = next;
        }
        Ok(schedule)
    }

    fn build_from_rule(&self, text: &str, now: &Zoned, zone: &str) -> Result<Schedule, String> {
        let rule = ScheduleRule::parse(text)?;
        let whole = now.datetime().with().second(0).subsec_nanosecond(0).build().map_err(|error| error.to_string())?;
        let default = Time::new(DEFAULT_HOUR, 0, 0, 0).map_err(|error| error.to_string())?;
        let start = match &self.at {
            // The hour is said by the rule, or is the usual one.
            None if !rule.is_within_days() || rule.has_hours() => now.date().to_datetime(default),
            None => whole,
            Some(_) => self.anchor_time(now)?.to_zoned(now.time_zone().clone()).datetime(),
        };
        Ok(Schedule::Rule { rule: text.to_owned(), start, zone: zone.to_owned() })
    }

    /// Days, weeks, months and years keep the time of the day, whatever the clocks do; hours and less are what passes.
    fn build_from_span(&self, name: &str, text: &str, now: &Zoned, zone: &str) -> Result<Schedule, String> {
        let span = phrases::parse_span(name, text)?;
        let anchor = self.anchor_time(now)?;
        let start = anchor.to_zoned(now.time_zone().clone()).datetime();
        let months = i64::from(span.get_years()) * 12 + i64::from(span.get_months());
        let days = i64::from(span.get_weeks()) * 7 + i64::from(span.get_days());
        let seconds = seconds_of(span);
        let rule = match (months, days, seconds) {
            (0, 0, seconds) if seconds < SHORTEST_SECONDS => {
                return Err(format!("{name}: expected at least {SHORTEST_SECONDS} seconds, found {text:?}"));
            }
            (0, 0, seconds) => return Ok(Schedule::Interval { seconds, anchor }),
            (0, days, 0) => format!("FREQ=DAILY;INTERVAL={days}"),
            (months, 0, 0) if start.day() <= 28 => format!("FREQ=MONTHLY;INTERVAL={months}"),
            // In a month without that day, its last.
            (months, 0, 0) => {
                let days: Vec<String> = (28..=start.day()).map(|day| day.to_string()).collect();
                format!("FREQ=MONTHLY;INTERVAL={months};BYMONTHDAY={};BYSETPOS=-1", days.join(","))
            }
            _ => {
                return Err(format!(
                    "{name}: expected hours and less, or days and weeks, or months and years, found {text:?}"
                ));
            }
        };
        ScheduleRule::parse(&rule).map_err(|_| format!("{name}: {text:?} is too long"))?;
        Ok(Schedule::Rule { rule, start, zone: zone.to_owned() })
    }

    /// From when a repeated task counts: `at`, which may be a time of the day alone, or now.
    fn anchor_time(&self, now: &Zoned) -> Result<Timestamp, String> {
        let Some(text) = &self.at else {
            return Timestamp::from_second(now.timestamp().as_second()).map_err(|error| error.to_string());
        };
        let at = parse_moment("at", text, now)?;
        let earliest = now.checked_sub(i64::from(MOST_YEARS).years()).map_err(|error| error.to_string())?;
        if at < earliest.timestamp() {
            return Err(format!("at: {text:?} is more than {MOST_YEARS} years ago"));
        }
        Ok(at)
    }
}

/// Reads a moment, seen from `now` and in its zone. Of a day that comes without a time it is the usual hour.
fn parse_moment(field: &str, text: &str, now: &Zoned) -> Result<Timestamp, String> {
    let wrong = |error: DateError| format!("{field}: {error}");
    let zone = now.time_zone();
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(moment);
    }
    if let Some(mut find) = grammar::parse_query(text) {
        let time = find.at.take();
        let extent = calendar::resolve(&find, now).map_err(|error| wrong(error.into()))?;
        let wall = match (extent, time) {
            (DateExtent::Days { first, last, .. }, Some(time)) if first == last => first.to_datetime(time),
            (_, Some(_)) => return Err(wrong(calendar::CalendarError::TimeOfManyDays.into())),
            (DateExtent::Days { first, moment, .. }, None) => match calendar::start_of_day(first, now) {
                Ok(start) if start == moment => first.at(DEFAULT_HOUR, 0, 0, 0),
                _ => return Ok(moment.timestamp()),
            },
            (DateExtent::Moment(moment) | DateExtent::Window(moment, _), None) => return Ok(moment.timestamp()),
        };
        return wall_to_timestamp(wall, zone).ok_or_else(|| wrong(calendar::CalendarError::OutOfRange.into()));
    }
    if let Ok(zoned) = text.parse::<Zoned>() {
        return Ok(zoned.timestamp());
    }
    let wall = text.parse::<DateTime>().map_err(|_| wrong(DateError::NotUnderstood(text.to_owned())))?;
    wall_to_timestamp(wall, zone).ok_or_else(|| wrong(calendar::CalendarError::OutOfRange.into()))
}

/// The last moment at which something may be due.
fn latest_due_time(now: &Zoned) -> Result<Timestamp, String> {
    Ok(now.checked_add(i64::from(MOST_YEARS).years()).map_err(|error| error.to_string())?.timestamp())
}

/// As a clock on the wall shows it.
fn format_wall_time(moment: Timestamp, now: &Zoned) -> String {
    moment.to_zoned(now.time_zone().clone()).strftime("%A, %-d %B %Y at %H:%M").to_string()
}

fn name_if_given<'a>(name: &'static str, value: &'a Option<String>) -> Option<(&'static str, &'a str)> {
    value.as_deref().map(|text| (name, text))
}

/// Its hours and less, in whole seconds.
fn seconds_of(span: Span) -> i64 {
    let short = Span::new()
        .try_hours(span.get_hours())
        .and_then(|short| short.try_minutes(span.get_minutes()))
        .and_then(|short| short.try_seconds(span.get_seconds()))
        .and_then(|short| short.round(SpanRound::new().largest(Unit::Second)));
    short.map_or(0, |short| short.get_seconds())
}
