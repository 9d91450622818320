//! Tells the effect of a change on a decision from the noise of the model.

use serde::{Deserialize, Serialize};

/// The number of answered samples, and of those among them that do the same as recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    pub same: usize,
    pub of: usize,
}

/// The verdict on the candidate's samples, compared with the control's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneVerdict {
    /// Each sample of the candidate does the same as recorded.
    Same,
    /// The candidate does the same as recorded as often as the control, or more often.
    Noise,
    /// It does so less often, but so few samples may do that by chance; or the control itself never does what was recorded.
    Unclear,
    /// It does so less often, by more than chance.
    Differs,
    /// A lane has no sample that was answered.
    NotAsked,
}

/// The highest probability of a gap by chance at which it counts as a difference.
const BY_CHANCE: f64 = 0.05;
/// Samples of each lane from which on it counts that all of one and none of the other do the same.
const ENOUGH: usize = 2;

impl LaneVerdict {
    /// All there are, from what needs no look to what needs one most.
    pub const ALL: [Self; 5] = [Self::Same, Self::Noise, Self::NotAsked, Self::Unclear, Self::Differs];

    pub fn from_rates(control: Rate, candidate: Rate) -> Self {
        if control.of == 0 || candidate.of == 0 {
            return Self::NotAsked;
        }
        if candidate.same == candidate.of {
            return Self::Same;
        }
        if control.same == 0 {
            return Self::Unclear;
        }
        if candidate.same * control.of >= control.same * candidate.of {
            return Self::Noise;
        }
        let is_all_and_none = control.same == control.of && candidate.same == 0;
        let are_enough = control.of.min(candidate.of) >= ENOUGH;
        match is_all_and_none && are_enough || fisher_p_value(control, candidate) <= BY_CHANCE {
            true => Self::Differs,
            false => Self::Unclear,
        }
    }

    /// Returns true if the decision needs no review.
    pub fn is_acceptable(self) -> bool {
        matches!(self, Self::Same | Self::Noise)
    }
}

impl std::fmt::Display for LaneVerdict {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Same => "the same",
            Self::Noise => "noise",
            Self::Unclear => "unclear",
            Self::Differs => "differs",
            Self::NotAsked => "not asked",
        })
    }
}

/// Returns the probability that the candidate does the same as recorded this seldom, or more seldom, if both lanes
/// were one: Fisher's exact test, one-sided (R. A. Fisher, The Design of Experiments, 1935).
pub fn fisher_p_value(control: Rate, candidate: Rate) -> f64 {
    let same = control.same + candidate.same;
    let of = control.of + candidate.of;
    // The ways to choose the candidate's samples among all, with so many that do the same.
    let ways = |hits: usize| binomial(same, hits) * binomial(of - same, candidate.of - hits);
    let fewest = candidate.of.saturating_sub(of - same);
    let seldom = fewest..=candidate.same;
    let all = fewest..=candidate.of.min(same);
    let sum = |range: std::ops::RangeInclusive<usize>| range.map(ways).sum::<f64>();
    (sum(seldom) / sum(all).max(f64::MIN_POSITIVE)).min(1.0)
}

/// Returns the number of ways to choose `take` of `of`.
fn binomial(of: usize, take: usize) -> f64 {
    if take > of {
        return 0.0;
    }
    (0..take).fold(1.0, |ways, at| ways * (of - at) as f64 / (at + 1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(same: usize, of: usize) -> Rate {
        Rate { same, of }
    }

    #[test]
    fn chance_is_that_of_fishers_test() {
        // The lady tasting tea: three of four.
        let tea = fisher_p_value(rate(3, 4), rate(1, 4));
        assert!((tea - 17.0 / 70.0).abs() < 1e-9, "{tea}");
        assert!((fisher_p_value(rate(3, 3), rate(0, 3)) - 0.05).abs() < 1e-9);
        assert!((fisher_p_value(rate(1, 1), rate(1, 1)) - 1.0).abs() < 1e-9);
        assert!((fisher_p_value(rate(0, 2), rate(0, 2)) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_model_that_is_as_noisy_without_the_change_is_no_regression() {
        for (control, candidate, expected) in [
            (rate(3, 3), rate(3, 3), LaneVerdict::Same),
            (rate(0, 3), rate(3, 3), LaneVerdict::Same),
            (rate(2, 4), rate(2, 4), LaneVerdict::Noise),
            (rate(1, 4), rate(3, 4), LaneVerdict::Noise),
            (rate(3, 4), rate(2, 4), LaneVerdict::Unclear),
            (rate(1, 1), rate(0, 1), LaneVerdict::Unclear),
            (rate(0, 4), rate(0, 4), LaneVerdict::Unclear),
            (rate(2, 2), rate(0, 2), LaneVerdict::Differs),
            (rate(9, 10), rate(2, 10), LaneVerdict::Differs),
            (rate(0, 0), rate(2, 2), LaneVerdict::NotAsked),
            (rate(2, 2), rate(0, 0), LaneVerdict::NotAsked),
        ] {
            assert_eq!(LaneVerdict::from_rates(control, candidate), expected, "{control:?} {candidate:?}");
        }
    }
}
