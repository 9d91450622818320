//! Lenient reading: ignores keys unknown to an older build while builds of two versions share one configuration.

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use serde::{Deserialize, Serialize};

use super::{
    mistake::{Mistake, Validate},
    sources::ConfigSetting,
};

const SECTION: &str = "config";
const KEY: &str = "lenient_until";

/// The configuration of reading the configuration.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReadingConfig {
    /// Time until which keys unknown to this build are ignored and named in the log: the end of a day in UTC, such as
    /// 2026-12-31, or a time of RFC 3339. For rollouts; afterwards, and by default, they are refused.
    pub lenient_until: String,
}

impl Validate for ReadingConfig {
    fn mistakes(&self) -> Vec<Mistake> {
        match self.lenient_until.is_empty() || parse_end(&self.lenient_until).is_some() {
            true => Vec::new(),
            false => vec![Mistake::new(KEY, "expected a date such as 2026-12-31, or a time of RFC 3339", "correct it")],
        }
    }
}

/// The treatment of unknown keys, from `config.lenient_until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leniency {
    Never,
    InForce,
    Over(Timestamp),
}

impl Leniency {
    /// Reads the leniency from the settings; the last one wins.
    pub fn from_settings(settings: &[ConfigSetting], now: Timestamp) -> Self {
        let last = settings.iter().rfind(|setting| setting.path == [SECTION, KEY]);
        let said = last.and_then(|setting| setting.readings.iter().find_map(|reading| reading.as_str()));
        match said.and_then(parse_end) {
            None => Self::Never,
            Some(end) if now < end => Self::InForce,
            Some(end) => Self::Over(end),
        }
    }

    /// Splits mistakes into those that are ignored and those that are refused.
    pub fn split_mistakes(self, mistakes: Vec<Mistake>) -> (Vec<Mistake>, Vec<Mistake>) {
        match self {
            Self::Never => (Vec::new(), mistakes),
            Self::InForce => mistakes.into_iter().partition(|mistake| mistake.is_unknown),
            Self::Over(end) => {
                let told = |mistake: Mistake| match mistake.is_unknown {
                    true => {
                        let advice = format!("{} ({SECTION}.{KEY} was over at {end})", mistake.advice);
                        Mistake { advice, ..mistake }
                    }
                    false => mistake,
                };
                (Vec::new(), mistakes.into_iter().map(told).collect())
            }
        }
    }
}

/// When it is over: a day, with its end.
fn parse_end(text: &str) -> Option<Timestamp> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time);
    }
    let day: Date = text.parse().ok()?;
    let next = day.tomorrow().ok()?;
    next.to_zoned(TimeZone::UTC).ok().map(|midnight| midnight.timestamp())
}
