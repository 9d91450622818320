//! Templates of an example's files: dates in them are counted from today, so that an example never grows old.
//!
//! `{{ zone }}` is the zone in which the example takes place. `day(n)` is the day n days from today, `weekday(name, n)`
//! the day of that name in the week n weeks from this one (weeks begin on Monday). Both take a format as of strftime
//! (default `%Y-%m-%d`), a time of day there (default `00:00`) and a zone to write it in (default the example's):
//! `{{ day(1, "%Y%m%dT%H%M%S", "14:00", "Asia/Tokyo") }}`.

use jiff::{
    Span, Timestamp, Zoned,
    civil::{Date, Time, Weekday},
    fmt::strtime,
};
use minijinja::{Environment, Error as TemplateError, ErrorKind, UndefinedBehavior, context};

use crate::Error;

/// One zone for each hour or so, of which one always has a morning.
const ZONES: [&str; 22] = [
    "Pacific/Honolulu",
    "America/Anchorage",
    "America/Los_Angeles",
    "America/Denver",
    "America/Chicago",
    "America/New_York",
    "America/Halifax",
    "America/Sao_Paulo",
    "Atlantic/Azores",
    "Europe/London",
    "Europe/Berlin",
    "Europe/Athens",
    "Asia/Dubai",
    "Asia/Karachi",
    "Asia/Dhaka",
    "Asia/Bangkok",
    "Asia/Shanghai",
    "Asia/Tokyo",
    "Australia/Brisbane",
    "Pacific/Noumea",
    "Pacific/Auckland",
    "Pacific/Kiritimati",
];
/// The time of day that examples take place at, as nearly as there is a zone for it, in minutes after midnight.
const MORNING: i32 = 8 * 60 + 30;

/// Now, in a zone where it is morning: "this afternoon" is then still to come, whenever an example is run.
pub fn morning(now: Timestamp) -> Zoned {
    let zoned = ZONES.iter().filter_map(|zone| now.in_tz(zone).ok());
    let from_morning = |here: &Zoned| (i32::from(here.hour()) * 60 + i32::from(here.minute()) - MORNING).abs();
    zoned.min_by_key(from_morning).unwrap_or_else(|| now.to_zoned(jiff::tz::TimeZone::UTC))
}

/// The text of a file with its dates filled in; `name` is for the message when it cannot be.
pub fn render(name: &str, text: &str, now: &Zoned) -> Result<String, Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    let today = now.clone();
    environment.add_function(
        "day",
        move |days: i64, format: Option<String>, time: Option<String>, zone: Option<String>| {
            let date = later(today.date(), days)?;
            format_moment(&today, date, format, time, zone)
        },
    );
    let today = now.clone();
    environment.add_function(
        "weekday",
        move |name: String, weeks: i64, format: Option<String>, time: Option<String>, zone: Option<String>| {
            let date = weekday(today.date(), &name, weeks)?;
            format_moment(&today, date, format, time, zone)
        },
    );
    let zone = now.time_zone().iana_name().unwrap_or("UTC");
    let rendered = environment.render_named_str(name, text, context! { zone });
    let mut filled_in =
        rendered.map_err(|error| Error::Advice(format!("the example's file {name} cannot be filled in: {error:#}")))?;
    // The template engine drops the last one.
    if text.ends_with('\n') {
        filled_in.push('\n');
    }
    Ok(filled_in)
}

fn weekday(today: Date, name: &str, weeks: i64) -> Result<Date, TemplateError> {
    let names = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let index = names.iter().position(|day| day.eq_ignore_ascii_case(name));
    let index = index.and_then(|index| i64::try_from(index).ok()).ok_or_else(|| unusable("no such day of the week"))?;
    let since_monday = i64::from(today.weekday().since(Weekday::Monday));
    let days = weeks.checked_mul(7).ok_or_else(|| unusable("too many weeks"))? + index - since_monday;
    later(today, days)
}

fn later(date: Date, days: i64) -> Result<Date, TemplateError> {
    date.checked_add(Span::new().try_days(days).map_err(unusable)?).map_err(unusable)
}

fn format_moment(
    now: &Zoned,
    date: Date,
    format: Option<String>,
    time: Option<String>,
    zone: Option<String>,
) -> Result<String, TemplateError> {
    let time: Time = time.as_deref().unwrap_or("00:00").parse().map_err(unusable)?;
    let mut moment = date.to_datetime(time).to_zoned(now.time_zone().clone()).map_err(unusable)?;
    if let Some(zone) = zone {
        moment = moment.in_tz(&zone).map_err(unusable)?;
    }
    strtime::format(format.as_deref().unwrap_or("%Y-%m-%d"), &moment).map_err(unusable)
}

fn unusable(error: impl std::fmt::Display) -> TemplateError {
    TemplateError::new(ErrorKind::InvalidOperation, error.to_string())
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan;

    use super::*;

    fn now() -> Zoned {
        // A Saturday.
        "2026-11-21T09:00:00+01:00[Europe/Berlin]".parse().unwrap()
    }

    #[test]
    fn days_are_counted_from_today() {
        let said = |text: &str| render("x", text, &now()).unwrap();
        assert_eq!(said("{{ day(0) }} {{ day(-1, '%a, %d %b %Y') }}\n"), "2026-11-21 Fri, 20 Nov 2026\n");
        assert_eq!(said("{{ weekday('monday', 0) }} {{ weekday('Wednesday', 1) }}"), "2026-11-16 2026-11-25");
        assert_eq!(said("{{ day(1, '%Y%m%dT%H%M%S', '20:00', 'Asia/Tokyo') }}"), "20261123T040000");
        assert_eq!(said("{{ zone }}"), "Europe/Berlin");
    }

    #[test]
    fn what_cannot_be_filled_in_names_the_file() {
        for wrong in ["{{ today }}", "{{ day(1, '%') }}", "{{ day(99999999) }}", "{{ day(0, '%F', '25:00') }}"] {
            let error = render("agent.yaml", wrong, &now()).unwrap_err().to_string();
            assert!(error.contains("agent.yaml"), "{error}");
        }
    }

    #[test]
    fn there_is_always_a_morning() {
        let midnight: Timestamp = "2026-11-21T00:00:00Z".parse().unwrap();
        for hour in 0..24 {
            let here = morning(midnight + hour.hours());
            assert!((6..=11).contains(&here.hour()), "{here}");
        }
    }
}
