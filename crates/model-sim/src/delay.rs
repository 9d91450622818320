//! The time the model thinks before an answer, beside what the scenario says.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Longer than this is a mistyped number rather than a slow model. In milliseconds.
const LONGEST_MS: u64 = 600_000;

/// Milliseconds before the first byte of an answer: a number, or a range from which each is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delay {
    least_ms: u64,
    most_ms: u64,
}

/// A text that is not a [`Delay`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected milliseconds, such as 2000, or a range of them, such as 0-5000, up to {LONGEST_MS}; found {0:?}")]
pub struct NotADelay(String);

impl Delay {
    /// That of one answer: for the same seed and number always the same.
    #[must_use]
    pub fn draw(self, seed: u64, number: u64) -> u64 {
        self.least_ms + mix_bits(seed ^ mix_bits(number)) % (self.most_ms - self.least_ms + 1)
    }

    /// The middle of the range.
    #[must_use]
    pub fn average(self) -> Duration {
        Duration::from_millis(self.least_ms.midpoint(self.most_ms))
    }
}

impl FromStr for Delay {
    type Err = NotADelay;

    fn from_str(text: &str) -> Result<Self, NotADelay> {
        let (least, most) = text.split_once('-').unwrap_or((text, text));
        match (least.parse(), most.parse()) {
            (Ok(least_ms), Ok(most_ms)) if least_ms <= most_ms && most_ms <= LONGEST_MS => {
                Ok(Self { least_ms, most_ms })
            }
            _ => Err(NotADelay(text.to_owned())),
        }
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.least_ms == self.most_ms {
            true => write!(f, "{}", self.least_ms),
            false => write!(f, "{}-{}", self.least_ms, self.most_ms),
        }
    }
}

/// A step of SplitMix64 (Steele, Lea, Flood 2014).
pub(crate) fn mix_bits(number: u64) -> u64 {
    let mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_itself_and_a_range_is_drawn_from_whole() {
        let delay = |text: &str| text.parse::<Delay>().expect("it is a delay");
        assert_eq!((delay("2000").draw(1, 7), delay("0").draw(1, 7)), (2_000, 0));
        let drawn: Vec<u64> = (0..1_000).map(|number| delay("3-5").draw(9, number)).collect();
        assert!((3..=5).all(|delay| drawn.contains(&delay)));
        assert!(drawn.iter().all(|delay| (3..=5).contains(delay)));
        let again: Vec<u64> = (0..1_000).map(|number| delay("3-5").draw(9, number)).collect();
        assert_eq!(drawn, again);
        let other: Vec<u64> = (0..1_000).map(|number| delay("3-5").draw(10, number)).collect();
        assert_ne!(drawn, other);
    }

    #[test]
    fn what_is_no_delay_is_refused_and_what_is_one_is_shown_as_it_was_given() {
        for wrong in ["", "-", "5-", "-5", "5-3", "1s", "600001", "0-600001", "1-2-3"] {
            assert!(wrong.parse::<Delay>().is_err(), "{wrong:?}");
        }
        for right in ["0", "2000", "0-5000"] {
            assert_eq!(right.parse::<Delay>().expect("it is a delay").to_string(), right);
        }
    }
}
