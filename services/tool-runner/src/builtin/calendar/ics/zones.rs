//! Time zones as calendar files name them: by IANA name, by one with a vendor's prefix, by a name of Windows, by distance
//! from Greenwich, or by rules of their own.

use std::collections::HashMap;
use std::str::FromStr as _;

use calcard::common::timezone::Tz;
use jiff::tz::{Offset, TimeZone};

use super::components::ComponentList;
use super::{observances, values};

/// Longest name that is looked up, in bytes.
const MAX_NAME_BYTES: usize = 300;

/// The zones of a file, each looked up once.
pub struct ZoneCache<'a> {
    lines: &'a ComponentList,
    known: HashMap<String, Option<TimeZone>>,
}

impl<'a> ZoneCache<'a> {
    pub fn new(lines: &'a ComponentList) -> Self {
        Self { lines, known: HashMap::new() }
    }

    /// The zone that `name` means in this file; none when it cannot be found out.
    pub fn find(&mut self, name: &str) -> Option<TimeZone> {
        if let Some(zone) = self.known.get(name) {
            return zone.clone();
        }
        let zone = resolve_zone(name, self.lines);
        self.known.insert(name.to_owned(), zone.clone());
        zone
    }
}

fn resolve_zone(name: &str, lines: &ComponentList) -> Option<TimeZone> {
    let trimmed = name.trim().trim_matches('/');
    if trimmed.len() > MAX_NAME_BYTES {
        return None;
    }
    let is_named =
        |own: &&_| observances::zone_name_of(own).is_some_and(|own| own == name || own.trim_matches('/') == trimmed);
    let own =
        lines.components.iter().enumerate().filter(|(_, one)| one.kind == "VTIMEZONE").find(|(_, one)| is_named(one));
    // Names before rules: the rules in files are often cut down to those of one year.
    by_name(trimmed)
        .or_else(|| by_end_of_path(trimmed))
        .or_else(|| by_windows_name(trimmed))
        .or_else(|| by_name(&own?.1.text("X-LIC-LOCATION").or_else(|| own?.1.text("TZID-ALIAS-OF"))?))
        .or_else(|| observances::build_zone(lines, own?.0))
        .or_else(|| by_city(trimmed))
        .or_else(|| by_distance(trimmed))
        .or_else(|| to_iana_zone(Tz::from_str(name).ok()?))
}

fn by_name(name: &str) -> Option<TimeZone> {
    TimeZone::get(name).or_else(|_| TimeZone::get(&name.replace(' ', "_"))).ok()
}

/// "mozilla.org/20050126_1/Europe/Berlin", "tzone://Microsoft/Utc": the longest end that is a name.
fn by_end_of_path(name: &str) -> Option<TimeZone> {
    let slashes = name.match_indices('/').take(20);
    slashes.filter_map(|(at, _)| name.get(at + 1..)).find_map(by_name)
}

/// "W. Europe Standard Time"; not a distance in brackets, for which the file may have rules.
fn by_windows_name(name: &str) -> Option<TimeZone> {
    if name.starts_with('(') { None } else { to_iana_zone(Tz::from_str(name).ok()?) }
}

fn to_iana_zone(zone: Tz) -> Option<TimeZone> {
    by_name(&zone.name()?)
}

/// "(UTC+01:00) Amsterdam, Berlin, Rome": the zone of the first city that has one.
fn by_city(name: &str) -> Option<TimeZone> {
    let cities = name.strip_prefix('(')?.split_once(')')?.1;
    let names: Vec<String> = jiff::tz::db().available().map(|name| name.as_str().to_owned()).collect();
    cities.split([',', '&']).map(|city| city.trim().replace(' ', "_")).filter(|city| !city.is_empty()).find_map(
        |city| {
            let is_city =
                |name: &&String| name.rsplit_once('/').is_some_and(|(_, last)| last.eq_ignore_ascii_case(&city));
            by_name(names.iter().find(is_city)?)
        },
    )
}

/// "GMT+0100", "UTC-3", "(UTC+05:30) Somewhere", "+01:00".
fn by_distance(name: &str) -> Option<TimeZone> {
    let name = match name.strip_prefix('(') {
        Some(rest) => rest.split_once(')')?.0,
        None => name,
    };
    let upper = name.trim().to_ascii_uppercase();
    let text = ["GMT", "UTC"].into_iter().find_map(|prefix| upper.strip_prefix(prefix)).unwrap_or(&upper).trim();
    if !text.starts_with(['+', '-', '\u{2212}']) {
        return None;
    }
    let seconds = values::parse_offset(text)?;
    Offset::from_seconds(seconds).ok().map(|offset| if seconds == 0 { TimeZone::UTC } else { TimeZone::fixed(offset) })
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
        TZOFFSETFROM:-0330\r\nTZOFFSETTO:-0330\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\n\
        BEGIN:VTIMEZONE\r\nTZID:Listed\r\n\
        BEGIN:STANDARD\r\nDTSTART:20251026T030000\r\nRDATE:20261025T030000,20271031T030000\r\n\
        TZOFFSETFROM:+0200\r\nTZOFFSETTO:+0100\r\nEND:STANDARD\r\n\
        BEGIN:DAYLIGHT\r\nDTSTART:20260329T020000\r\nTZOFFSETFROM:+0100\r\nTZOFFSETTO:+0200\r\nEND:DAYLIGHT\r\nEND:VTIMEZONE\r\n\
        BEGIN:VTIMEZONE\r\nTZID:Alias\r\nX-LIC-LOCATION:Europe/Rome\r\nEND:VTIMEZONE\r\nEND:VCALENDAR\r\n";

    fn offsets(name: &str) -> Option<(i32, i32)> {
        let zone = resolve_zone(name, &ComponentList::parse(OWN_RULES))?;
        let at = |month| date(2026, month, 15).at(12, 0, 0, 0).to_zoned(zone.clone()).unwrap().offset().seconds();
        Some((at(1), at(7)))
    }

    #[test]
    fn names_of_every_kind() {
        for name in [
            "Europe/Berlin",
            "europe/berlin",
            "W. Europe Standard Time",
            "/freeassociation.sourceforge.net/Tzfile/Europe/Berlin",
            "/freeassociation.sourceforge.net/Europe/Berlin",
            "/mozilla.org/20050126_1/Europe/Berlin",
            "/softwarestudio.org/Olson_20011030_5/Europe/Berlin",
            "vendor/Europe/Berlin",
            "(UTC+01:00) Amsterdam, Berlin, Bern, Rome, Stockholm, Vienna",
            "(UTC+01:00) Nowhere, Rome",
            "Customized Time Zone",
            "Listed",
            "Alias",
        ] {
            assert_eq!(offsets(name), Some((3600, 7200)), "{name}");
        }
        for (name, seconds) in [
            ("Mine", -12_600),
            ("GMT+0100", 3600),
            ("GMT-03:30", -12_600),
            ("UTC+5", 18_000),
            ("+0200", 7200),
            ("(UTC+05:45) Nowhere", 20_700),
            ("tzone://Microsoft/Utc", 0),
            ("GMT", 0),
        ] {
            assert_eq!(offsets(name), Some((seconds, seconds)), "{name}");
        }
        for name in ["Nowhere/At All", "", "(", "GMT+99", "Moon"] {
            assert_eq!(offsets(name), None, "{name}");
        }
        assert_eq!(offsets("/x/America/Argentina/Buenos_Aires"), Some((-10_800, -10_800)));
    }

    #[test]
    fn rules_change_the_clock_on_the_right_day() {
        for name in ["Customized Time Zone", "Listed"] {
            let zone = resolve_zone(name, &ComponentList::parse(OWN_RULES)).unwrap();
            let at = |hour| date(2026, 3, 29).at(hour, 59, 0, 0).to_zoned(zone.clone()).unwrap().offset().seconds();
            assert_eq!((at(1), at(3)), (3600, 7200), "{name}");
            let autumn = date(2026, 10, 25).at(3, 0, 0, 0).to_zoned(zone.clone()).unwrap().offset().seconds();
            assert_eq!(autumn, 3600, "{name}");
        }
    }
}
