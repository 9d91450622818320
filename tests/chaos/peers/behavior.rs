//! The behavior of peers: well, or in one of the ways in which real ones were seen to misbehave. Pure.

use std::time::Duration;

use super::Peer;
use crate::chaos::random::Random;

/// The limit of calls of peers, in milliseconds.
pub const LIMIT_MS: u64 = 2_000;
/// Later than the limit of a call and the grace after it (`cancel_grace_ms`), in milliseconds.
const LATE_MS: (u64, u64) = (3_600, 6_000);
/// The longest time until a usual answer, in milliseconds.
const QUICK_MS: u64 = 500;
const WHOLE: u64 = 1_000_000;

/// The behavior of a peer in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Behavior {
    /// The effect, and an answer.
    Well,
    /// The answer says that nothing was done, and nothing was.
    Refusal,
    /// The effect at once, and the answer after the limit.
    LateAnswer,
    /// The effect and the answer after the limit.
    LateEffect,
    /// The effect, and never an answer.
    Silence,
    /// The effect, and the connection or the process is gone.
    Loss,
    /// No effect, and the connection or the process is gone.
    LossBefore,
    /// The effect, and a page of a gateway that lost the server behind it (502).
    BadGateway,
    /// The effect, and a page of a gateway that waited in vain (504).
    GatewayTimeout,
    /// The effect, and text that is none of the protocol.
    Text,
    /// The answer has a block of an unknown kind.
    UnknownBlock,
    /// The result has no content.
    NoContent,
    /// The result has another shape.
    OtherShape,
    /// The result is null.
    NullResult,
    /// The answer is not UTF-8.
    BadUtf8,
    /// The answer holds half a surrogate.
    HalfSurrogate,
    /// Text that is no message stands before the answer.
    Noise,
    /// A stream of events ends before the answer.
    StreamEnd,
}

/// The ways to misbehave that each kind of peer knows.
const MCP: [Behavior; 12] = [
    Behavior::Refusal,
    Behavior::LateAnswer,
    Behavior::LateEffect,
    Behavior::Silence,
    Behavior::Loss,
    Behavior::UnknownBlock,
    Behavior::NoContent,
    Behavior::OtherShape,
    Behavior::NullResult,
    Behavior::BadUtf8,
    Behavior::HalfSurrogate,
    Behavior::Noise,
];
const HTTP: [Behavior; 5] =
    [Behavior::BadGateway, Behavior::GatewayTimeout, Behavior::Text, Behavior::StreamEnd, Behavior::LossBefore];
const WEB: [Behavior; 8] = [
    Behavior::Refusal,
    Behavior::LateAnswer,
    Behavior::LateEffect,
    Behavior::Silence,
    Behavior::Loss,
    Behavior::LossBefore,
    Behavior::BadGateway,
    Behavior::GatewayTimeout,
];
const WORKER: [Behavior; 6] = [
    Behavior::Refusal,
    Behavior::LateAnswer,
    Behavior::LateEffect,
    Behavior::Silence,
    Behavior::Loss,
    Behavior::LossBefore,
];

/// The share of calls that go wrong, in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share(u64);

impl Share {
    /// From 0 to 1.
    pub fn new(share: f64) -> Self {
        // Rounding is what is wanted.
        Self((share.clamp(0.0, 1.0) * WHOLE as f64).round() as u64)
    }

    /// As a text that [`Share::new`] takes as a number.
    pub fn text(self) -> String {
        (self.0 as f64 / WHOLE as f64).to_string()
    }
}

impl Behavior {
    /// Draws the behavior of `peer` in a call for `effect`: the same for the same seed.
    pub fn draw(seed: u64, share: Share, peer: Peer, effect: &str) -> Self {
        let mut random = Random::new(seed, &format!("{}/{effect}", peer.name()));
        if random.below(WHOLE) >= share.0 {
            return Self::Well;
        }
        let ways: Vec<Self> = match peer {
            Peer::Shop => [&MCP[..], &HTTP[..]].concat(),
            Peer::Desk => MCP.to_vec(),
            Peer::Bank => WEB.to_vec(),
            Peer::Clerk => WORKER.to_vec(),
        };
        ways.get(random.index(ways.len())).copied().unwrap_or(Self::Well)
    }

    pub fn has_effect(self) -> bool {
        !matches!(self, Self::Refusal | Self::LossBefore)
    }

    /// Returns true if the answer can be read and leaves nothing open about the outcome of the call.
    pub fn is_answered(self) -> bool {
        matches!(
            self,
            Self::Well | Self::Refusal | Self::LateAnswer | Self::LateEffect | Self::UnknownBlock | Self::Noise
        )
    }

    /// Returns the time from the call to the effect, and from the effect to the answer.
    pub fn times(self, seed: u64, effect: &str) -> (Duration, Duration) {
        let mut random = Random::new(seed, &format!("times/{effect}"));
        let quick = Duration::from_millis(random.below(QUICK_MS));
        let late = Duration::from_millis(random.between(LATE_MS.0, LATE_MS.1));
        match self {
            Self::LateAnswer => (Duration::ZERO, late),
            Self::LateEffect => (late, Duration::ZERO),
            _ => (Duration::ZERO, quick),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_peer_misbehaves_in_every_way_it_knows_and_only_as_often_as_wanted() {
        for (peer, ways) in [(Peer::Shop, 17), (Peer::Desk, 12), (Peer::Bank, 8), (Peer::Clerk, 6)] {
            let draws = |share: f64| {
                (0..3_000).map(move |number| Behavior::draw(7, Share::new(share), peer, &format!("m{number}")))
            };
            assert_eq!(draws(1.0).collect::<HashSet<_>>().len(), ways, "{peer:?}");
            assert!(draws(0.0).all(|behavior| behavior == Behavior::Well));
            let bad = draws(0.2).filter(|behavior| *behavior != Behavior::Well).count();
            assert!((450..750).contains(&bad), "{peer:?}: {bad}");
        }
    }

    #[test]
    fn what_is_late_comes_after_the_limit_and_its_grace() {
        for number in 0..100 {
            let effect = format!("m{number}");
            for behavior in [Behavior::LateAnswer, Behavior::LateEffect] {
                let (until, then) = behavior.times(1, &effect);
                assert!(until + then > Duration::from_millis(LIMIT_MS + 1_500), "{behavior:?}");
            }
            assert!(Behavior::Well.times(1, &effect).1 < Duration::from_millis(LIMIT_MS / 2));
        }
    }
}
