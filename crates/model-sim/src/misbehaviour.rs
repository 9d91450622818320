//! Misbehaviour of real endpoints: [`form`]s in which they give an answer, [`raw`] bytes, [`demand`]s that they make of
//! requests, and [`presets`] of all that; and here misbehaviour at random: which answers come in another form, by a
//! seed. Pure.

pub mod demand;
pub mod form;
pub mod presets;
pub mod raw;

use std::{fmt, str::FromStr};

use self::form::WireForm;
use crate::delay::mix_bits;

/// Failures allowed in one turn of a conversation, so that a client that retries comes through.
pub const FAILURES: u32 = 2;
const WHOLE: u64 = 1_000_000;

/// The share of answers that come in another form, in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misbehaviour(u32);

/// A text that is not a [`Misbehaviour`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a share from 0 to 1, such as 0.2; found {0:?}")]
pub struct NotAShare(String);

impl Misbehaviour {
    /// The form of one answer: for the same seed and number always the same. None: as it is.
    #[must_use]
    pub fn draw(self, seed: u64, number: u64) -> Option<WireForm> {
        let drawn = mix_bits(mix_bits(seed ^ 0x6d69_7362_6568_6176) ^ number);
        if drawn % WHOLE >= u64::from(self.0) {
            return None;
        }
        let forms = WireForm::ALL;
        let at = usize::try_from(mix_bits(drawn) % forms.len() as u64).unwrap_or_default();
        forms.get(at).copied()
    }
}

impl FromStr for Misbehaviour {
    type Err = NotAShare;

    fn from_str(text: &str) -> Result<Self, NotAShare> {
        let share: f64 = text.parse().map_err(|_| NotAShare(text.to_owned()))?;
        if !(0.0..=1.0).contains(&share) {
            return Err(NotAShare(text.to_owned()));
        }
        // Rounding is what is wanted, and the range was checked.
        Ok(Self((share * WHOLE as f64).round() as u32))
    }
}

impl fmt::Display for Misbehaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", f64::from(self.0) / WHOLE as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_kept_and_every_form_is_drawn() {
        let share: Misbehaviour = "0.2".parse().expect("it is a share");
        let drawn: Vec<Option<WireForm>> = (0..50_000).map(|number| share.draw(7, number)).collect();
        let count = drawn.iter().flatten().count();
        assert!((9_000..11_000).contains(&count), "{count}");
        assert!(WireForm::ALL.iter().all(|form| drawn.contains(&Some(*form))));
        assert_eq!(drawn, (0..50_000).map(|number| share.draw(7, number)).collect::<Vec<_>>());
        assert!((0..1_000).all(|number| Misbehaviour::default().draw(7, number).is_none()));
    }

    #[test]
    fn what_is_no_share_is_refused() {
        for wrong in ["", "-0.1", "1.1", "20%", "NaN"] {
            assert!(wrong.parse::<Misbehaviour>().is_err(), "{wrong:?}");
        }
        assert_eq!("0.25".parse::<Misbehaviour>().expect("it is a share").to_string(), "0.25");
    }
}
