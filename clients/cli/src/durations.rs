//! Durations and progress in few characters. Pure.

use jiff::Timestamp;

use crate::event_lines::printable;

/// A length of time in its two largest units, such as `1h 5m`.
pub fn format_seconds(seconds: u64) -> String {
    match (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0, seconds) => format!("{seconds}s"),
        (0, 0, minutes, seconds) => format!("{minutes}m {seconds}s"),
        (0, hours, minutes, _) => format!("{hours}h {minutes}m"),
        (days, hours, ..) => format!("{days}d {hours}h"),
    }
}

/// The time from one moment to another; none if that is before it, as another machine's clock may say.
pub fn format_between(from: Timestamp, to: Timestamp) -> String {
    format_seconds(u64::try_from(to.as_second().saturating_sub(from.as_second())).unwrap_or(0))
}

/// Formats reported progress, such as `42% the third of seven`; empty if nothing is reported.
pub fn format_progress(fraction: Option<f64>, message: &str) -> String {
    let percent = fraction.map(|fraction| format!("{:.0}%", fraction.clamp(0.0, 1.0) * 100.0));
    [percent.unwrap_or_default(), printable(message)].join(" ").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let shown: Vec<_> = [5, 65, 3_700, 90_000].map(format_seconds).into();
        assert_eq!(shown, ["5s", "1m 5s", "1h 1m", "1d 1h"]);
        let from = Timestamp::from_second(100).unwrap();
        let to = Timestamp::from_second(161).unwrap();
        assert_eq!((format_between(from, to).as_str(), format_between(to, from).as_str()), ("1m 1s", "0s"));
    }

    #[test]
    fn progress_may_say_either_both_or_nothing() {
        assert_eq!(format_progress(Some(0.425), "of five"), "42% of five");
        assert_eq!((format_progress(Some(7.0), "").as_str(), format_progress(None, "warm").as_str()), ("100%", "warm"));
        assert_eq!(format_progress(None, ""), "");
    }
}
