//! The room left in the log. Pure.

use std::fmt;

/// The fill level from which the log needs more room soon, in percent of its limit.
pub const FILLING: u64 = 70;
/// The fill level from which it is urgent, in percent of its limit.
pub const ALMOST_FULL: u64 = 85;

/// The fill level of the log, in percent if operators should know it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogRoom {
    /// There is enough, or nobody knows how much it may take.
    #[default]
    Enough,
    Filling(u64),
    AlmostFull(u64),
}

impl LogRoom {
    /// Returns the room of a log that holds `bytes` of at most `limit` bytes.
    pub fn from_usage(bytes: u64, limit: Option<u64>) -> Self {
        let percent = limit.filter(|limit| *limit > 0).map(|limit| {
            let percent = u128::from(bytes) * 100 / u128::from(limit);
            u64::try_from(percent).unwrap_or(u64::MAX)
        });
        match percent {
            Some(percent) if percent >= ALMOST_FULL => Self::AlmostFull(percent),
            Some(percent) if percent >= FILLING => Self::Filling(percent),
            _ => Self::Enough,
        }
    }

    /// Returns true if the level is at another mark than `before`.
    pub fn is_different_level(self, before: Self) -> bool {
        std::mem::discriminant(&self) != std::mem::discriminant(&before)
    }
}

/// The warning for operators; empty if there is enough room.
impl fmt::Display for LogRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enough => Ok(()),
            Self::Filling(percent) => {
                write!(f, "the log takes {percent}% of what it may: give it more room, or plan to")
            }
            Self::AlmostFull(percent) => {
                write!(
                    f,
                    "the log takes {percent}% of what it may: give it more room now, at its limit nothing is written any more"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_from_70_and_from_85_percent_on() {
        let of = |bytes| LogRoom::from_usage(bytes, Some(1_000));
        assert_eq!((of(699), of(700)), (LogRoom::Enough, LogRoom::Filling(70)));
        assert_eq!((of(849), of(850)), (LogRoom::Filling(84), LogRoom::AlmostFull(85)));
        assert_eq!(of(2_000), LogRoom::AlmostFull(200));
        assert_eq!(LogRoom::from_usage(u64::MAX, Some(u64::MAX)), LogRoom::AlmostFull(100));
        assert_eq!(
            (LogRoom::from_usage(9, None), LogRoom::from_usage(9, Some(0))),
            (LogRoom::Enough, LogRoom::Enough),
            "nobody knows"
        );
        assert!(
            of(700).is_different_level(of(1))
                && of(900).is_different_level(of(800))
                && !of(800).is_different_level(of(700))
        );
    }
}
