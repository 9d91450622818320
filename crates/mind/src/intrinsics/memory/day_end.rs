//! The date of the day that ends, in the agent's zone.

use jiff::{
    SignedDuration, Timestamp,
    civil::{Date, Time},
    tz::TimeZone,
};

/// A day that ends in the small hours is called by the date before. An end that is dealt with later than this after its
/// hour is taken for one that somebody ordered before the next.
const HALF_A_DAY: SignedDuration = SignedDuration::from_hours(12);

/// The end of a day that is dealt with at `now`: the last one, or the next where the last is more than half a day ago.
pub(super) fn nearest(now: Timestamp, at: Time, zone: &TimeZone) -> Timestamp {
    let today = now.to_zoned(zone.clone()).date();
    let end_on = |date: Date| date.to_datetime(at).to_zoned(zone.clone()).ok().map(|end| end.timestamp());
    let days = [today.yesterday().ok(), Some(today), today.tomorrow().ok()];
    let ends: Vec<Timestamp> = days.into_iter().flatten().filter_map(end_on).collect();
    let last = ends.iter().rfind(|end| **end <= now && now.duration_since(**end) <= HALF_A_DAY);
    last.or_else(|| ends.iter().find(|end| **end > now)).copied().unwrap_or(now)
}

/// The date of the day that ends then.
pub(super) fn date_of(end: Timestamp, zone: &TimeZone) -> Result<Date, String> {
    let before = end.checked_sub(HALF_A_DAY).map_err(|error| format!("day: {error}"))?;
    Ok(before.to_zoned(zone.clone()).date())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_called_by_the_date_that_most_of_it_has() {
        let zone = TimeZone::get("Asia/Dubai").unwrap();
        for (ends_at, now, day) in [
            // On time, late, and ordered in the morning before.
            ("18:00", "2026-11-28T18:00:00+04", "2026-11-28"),
            ("18:00", "2026-11-29T05:59:00+04", "2026-11-28"),
            ("18:00", "2026-11-28T08:40:00+04", "2026-11-28"),
            ("18:00", "2026-11-28T17:59:00+04", "2026-11-28"),
            // The night belongs to the day before it.
            ("02:00", "2026-11-29T02:00:00+04", "2026-11-28"),
            ("02:00", "2026-11-29T01:00:00+04", "2026-11-28"),
            ("02:00", "2026-11-28T15:00:00+04", "2026-11-28"),
            ("23:59", "2026-11-28T23:59:00+04", "2026-11-28"),
            ("23:59", "2026-11-29T00:10:00+04", "2026-11-28"),
            ("23:59", "2026-11-28T13:00:00+04", "2026-11-28"),
            ("12:00", "2026-11-28T12:00:00+04", "2026-11-28"),
        ] {
            let now: Timestamp = now.parse().unwrap();
            let end = nearest(now, ends_at.parse().unwrap(), &zone);
            assert_eq!(date_of(end, &zone).unwrap().to_string(), day, "{ends_at}, {now}");
            assert!(date_of(end, &zone).unwrap() <= now.to_zoned(zone.clone()).date());
        }
    }
}
