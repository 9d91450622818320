//! Time zones as calendar files name them: by IANA name, by a name of Windows, or by rules of their own.

use std::str::FromStr as _;

use calcard::common::PartialDateTime;
use calcard::common::timezone::Tz;
use calcard::icalendar::{
    ICalendar, ICalendarComponent, ICalendarComponentType, ICalendarFrequency, ICalendarProperty, ICalendarValue,
    ICalendarWeekday,
};
use jiff::tz::TimeZone;

use super::ics::{first, recurrence};

/// The zone that `name` means in this file; none when it cannot be told.
pub fn resolve(name: &str, file: &ICalendar) -> Option<TimeZone> {
    let own = file
        .timezones()
        .find(|zone| first(zone, &ICalendarProperty::Tzid).and_then(ICalendarValue::as_text) == Some(name));
    // Names before rules: the rules in files are often cut down to those of one year.
    by_name(name)
        .or_else(|| known(own?.timezone()?.1))
        .or_else(|| known(Tz::from_str(name).ok()?))
        .or_else(|| by_rules(file, own?))
}

fn by_name(name: &str) -> Option<TimeZone> {
    TimeZone::get(name).ok()
}

/// What calcard makes of names that are not IANA's.
fn known(zone: Tz) -> Option<TimeZone> {
    by_name(&zone.name()?)
}

/// The zone that the newest rules of a `VTIMEZONE` describe, taken to have been in force for ever.
fn by_rules(file: &ICalendar, zone: &ICalendarComponent) -> Option<TimeZone> {
    let parts = || zone.component_ids.iter().filter_map(|id| file.component_by_id(*id));
    let newest = |kind: ICalendarComponentType| {
        parts().filter(|part| part.component_type == kind).max_by_key(|part| year_of(part))
    };
    let standard = newest(ICalendarComponentType::Standard).or_else(|| newest(ICalendarComponentType::Daylight))?;
    let fixed = format!("<STD>{}", posix_offset(offset(standard)?));
    let text = newest(ICalendarComponentType::Daylight)
        .and_then(|daylight| {
            let (begins, ends) = (posix_rule(daylight)?, posix_rule(standard)?);
            Some(format!("{fixed}<DST>{},{begins},{ends}", posix_offset(offset(daylight)?)))
        })
        .unwrap_or(fixed);
    TimeZone::posix(&text).ok()
}

fn year_of(part: &ICalendarComponent) -> Option<u16> {
    date_of(part)?.year
}

fn date_of(part: &ICalendarComponent) -> Option<&PartialDateTime> {
    first(part, &ICalendarProperty::Dtstart)?.as_partial_date_time()
}

/// Seconds east of Greenwich while the rule is in force.
fn offset(part: &ICalendarComponent) -> Option<i32> {
    let offset = first(part, &ICalendarProperty::Tzoffsetto)?.as_partial_date_time()?;
    let seconds = i32::from(offset.tz_hour?) * 3600 + i32::from(offset.tz_minute.unwrap_or(0)) * 60;
    Some(if offset.tz_minus { -seconds } else { seconds })
}

/// POSIX counts west of Greenwich.
fn posix_offset(east: i32) -> String {
    let sign = if east > 0 { "-" } else { "" };
    format!("{sign}{}:{:02}", east.abs() / 3600, east.abs() % 3600 / 60)
}

/// "M3.5.0/2:00": the last Sunday of March at two.
fn posix_rule(part: &ICalendarComponent) -> Option<String> {
    let rule = recurrence(part)?;
    let (day, month) = (rule.byday.first()?, rule.bymonth.first()?);
    let week = match day.ordwk? {
        -1 => 5,
        week @ 1..=4 => week,
        _ => return None,
    };
    if rule.freq != ICalendarFrequency::Yearly || rule.byday.len() != 1 || rule.bymonth.len() != 1 {
        return None;
    }
    let begins = date_of(part)?;
    let (hour, minute) = (begins.hour.unwrap_or(0), begins.minute.unwrap_or(0));
    Some(format!("M{}.{week}.{}/{hour}:{minute:02}", month.month(), weekday(day.weekday)))
}

fn weekday(day: ICalendarWeekday) -> u8 {
    match day {
        ICalendarWeekday::Sunday => 0,
        ICalendarWeekday::Monday => 1,
        ICalendarWeekday::Tuesday => 2,
        ICalendarWeekday::Wednesday => 3,
        ICalendarWeekday::Thursday => 4,
        ICalendarWeekday::Friday => 5,
        ICalendarWeekday::Saturday => 6,
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    const OWN_RULES: &str = "BEGIN:VCALENDAR\r\nBEGIN:VTIMEZONE\r\nTZID:Customized Time Zone\r\n\
        BEGIN:STANDARD\r\nDTSTART:16011028T030000\r\nRRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10\r\n\
        TZOFFSETFROM:+0200\r\nTZOFFSETTO:+0100\r\nEND:STANDARD\r\n\
        BEGIN:DAYLIGHT\r\nDTSTART:16010325T020000\r\nRRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3\r\n\
        TZOFFSETFROM:+0100\r\nTZOFFSETTO:+0200\r\nEND:DAYLIGHT\r\nEND:VTIMEZONE\r\n\
        BEGIN:VTIMEZONE\r\nTZID:Mine\r\nBEGIN:STANDARD\r\nDTSTART:20000101T000000\r\n\
        TZOFFSETFROM:-0330\r\nTZOFFSETTO:-0330\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\nEND:VCALENDAR\r\n";

    fn offsets(name: &str) -> Option<(i32, i32)> {
        let zone = resolve(name, &ICalendar::parse(OWN_RULES).unwrap())?;
        let at = |month| date(2026, month, 15).at(12, 0, 0, 0).to_zoned(zone.clone()).unwrap().offset().seconds();
        Some((at(1), at(7)))
    }

    #[test]
    fn names_of_every_kind() {
        for name in [
            "Europe/Berlin",
            "W. Europe Standard Time",
            "/freeassociation.sourceforge.net/Tzfile/Europe/Berlin",
            "Customized Time Zone",
        ] {
            assert_eq!(offsets(name), Some((3600, 7200)), "{name}");
        }
        assert_eq!(offsets("Mine"), Some((-12_600, -12_600)));
        assert_eq!(offsets("Nowhere/At All"), None);
    }

    #[test]
    fn rules_change_the_clock_on_the_right_day() {
        let zone = resolve("Customized Time Zone", &ICalendar::parse(OWN_RULES).unwrap()).unwrap();
        let at = |day| date(2026, 3, day).at(12, 0, 0, 0).to_zoned(zone.clone()).unwrap().offset().seconds();
        assert_eq!((at(28), at(29)), (3600, 7200));
    }
}
