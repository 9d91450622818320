//! Decides the next transition of a generation. Pure: the state in the registry in, one transition out, so that the
//! replica that takes over after a crash continues with the same one.

use kairo_proto::words::GenerationState;

use crate::partition_progress::PartitionPosition;

/// As the registry names them; see its migration for what they mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildState {
    Asked,
    Filling,
    Indexing,
    Comparing,
    Differing,
    Ready,
    Live,
    Kept,
    Failed,
    Dropping,
}

impl BuildState {
    /// None for what a newer version may have written.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match GenerationState::from(name) {
            GenerationState::Asked => Self::Asked,
            GenerationState::Filling => Self::Filling,
            GenerationState::Indexing => Self::Indexing,
            GenerationState::Comparing => Self::Comparing,
            GenerationState::Differing => Self::Differing,
            GenerationState::Ready => Self::Ready,
            GenerationState::Live => Self::Live,
            GenerationState::Kept => Self::Kept,
            GenerationState::Failed => Self::Failed,
            GenerationState::Dropping => Self::Dropping,
            GenerationState::Unknown(_) => return None,
        })
    }

    /// Returns true if the log is read for it.
    pub fn is_followed(self) -> bool {
        use BuildState::{Comparing, Differing, Filling, Indexing, Live, Ready};
        matches!(self, Filling | Indexing | Comparing | Differing | Ready | Live)
    }

    /// Returns true if it is live or on its way to be.
    pub fn is_wanted(self) -> bool {
        self == Self::Asked || self.is_followed()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transition {
    Wait,
    /// Make its tables.
    Begin,
    /// See that nothing is missing.
    Check,
    /// Make its indexes.
    Index,
    /// Take the digests of the live one, and have this one read up to there.
    Measure,
    /// Take its own digests.
    Compare,
    /// Take it as it is, for this reason.
    Accept(String),
    /// Make it the live one.
    Swap,
    /// Remove it.
    Drop,
}

/// The facts that a transition depends on beside the state.
#[derive(Clone, Debug, Default)]
pub struct TransitionFacts {
    /// The positions of its partitions.
    pub own: Vec<PartitionPosition>,
    /// The positions of the live generation, if there is one.
    pub live: Option<Vec<PartitionPosition>>,
    /// The end of the log.
    pub end: u64,
    /// True if the live generation was measured to compare this one with.
    pub measured: bool,
    /// The largest lag, in messages, at which a swap is tried: the live generation waits until it is caught up.
    pub near: u64,
}

pub fn next_transition(state: BuildState, facts: &TransitionFacts) -> Transition {
    match state {
        BuildState::Asked => Transition::Begin,
        BuildState::Filling if all_arrived(&facts.own) => Transition::Check,
        BuildState::Indexing => Transition::Index,
        BuildState::Comparing => next_comparison_step(facts),
        BuildState::Ready => match &facts.live {
            Some(live) if !is_foreign(live, facts.end) && !is_level(&facts.own, live, facts.near) => Transition::Wait,
            _ => Transition::Swap,
        },
        BuildState::Dropping => Transition::Drop,
        BuildState::Filling | BuildState::Differing | BuildState::Live | BuildState::Kept | BuildState::Failed => {
            Transition::Wait
        }
    }
}

fn next_comparison_step(facts: &TransitionFacts) -> Transition {
    let Some(live) = &facts.live else { return Transition::Accept(String::new()) };
    if is_foreign(live, facts.end) {
        return Transition::Accept("not compared: the live one was made from another log".to_owned());
    }
    if live.len() != facts.own.len() {
        return Transition::Accept(format!("not compared: the live one has {} partitions", live.len()));
    }
    if facts.measured {
        return if all_arrived(&facts.own) { Transition::Compare } else { Transition::Wait };
    }
    // It cannot go back to where the live one is.
    if is_level(live, &facts.own, 0) { Transition::Measure } else { Transition::Wait }
}

fn all_arrived(positions: &[PartitionPosition]) -> bool {
    positions.iter().all(|position| position.has_arrived())
}

/// Returns true if `one` is at most `near` messages behind `other` in every partition. If their numbers of partitions
/// differ, each partition of `one` must reach all of `other`.
pub fn is_level(one: &[PartitionPosition], other: &[PartitionPosition], near: u64) -> bool {
    let reaches =
        |one: &PartitionPosition, other: &PartitionPosition| one.sequence.saturating_add(near) >= other.sequence;
    match one.len() == other.len() {
        true => one.iter().zip(other).all(|(one, other)| reaches(one, other)),
        false => one.iter().all(|one| other.iter().all(|other| reaches(one, other))),
    }
}

/// Returns true if it was made from a log that went further than this one.
pub fn is_foreign(positions: &[PartitionPosition], end: u64) -> bool {
    positions.iter().any(|position| position.sequence > end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(sequences: &[u64], stop_at: Option<u64>) -> Vec<PartitionPosition> {
        sequences.iter().map(|&sequence| PartitionPosition { sequence, stop_at }).collect()
    }

    fn facts(own: Vec<PartitionPosition>, live: Option<&[u64]>) -> TransitionFacts {
        TransitionFacts { own, live: live.map(|live| positions(live, None)), end: 100, measured: false, near: 0 }
    }

    #[test]
    fn it_is_filled_up_to_where_the_log_ended() {
        assert_eq!(next_transition(BuildState::Asked, &TransitionFacts::default()), Transition::Begin);
        assert_eq!(next_transition(BuildState::Filling, &facts(positions(&[9, 8], Some(9)), None)), Transition::Wait);
        assert_eq!(next_transition(BuildState::Filling, &facts(positions(&[9, 9], Some(9)), None)), Transition::Check);
        assert_eq!(next_transition(BuildState::Indexing, &facts(positions(&[9, 9], Some(9)), None)), Transition::Index);
    }

    #[test]
    fn it_is_compared_with_the_live_one_where_that_can_be_done() {
        let own = || positions(&[9, 9], Some(9));
        assert_eq!(next_transition(BuildState::Comparing, &facts(own(), None)), Transition::Accept(String::new()));
        assert!(matches!(next_transition(BuildState::Comparing, &facts(own(), Some(&[50]))), Transition::Accept(_)));
        assert!(matches!(
            next_transition(BuildState::Comparing, &facts(own(), Some(&[101, 50]))),
            Transition::Accept(_)
        ));
        assert_eq!(next_transition(BuildState::Comparing, &facts(own(), Some(&[8, 50]))), Transition::Wait);
        assert_eq!(next_transition(BuildState::Comparing, &facts(own(), Some(&[9, 50]))), Transition::Measure);
        let measured = |own| TransitionFacts { measured: true, ..facts(own, Some(&[60, 60])) };
        assert_eq!(next_transition(BuildState::Comparing, &measured(positions(&[50, 49], Some(50)))), Transition::Wait);
        assert_eq!(
            next_transition(BuildState::Comparing, &measured(positions(&[50, 50], Some(50)))),
            Transition::Compare
        );
    }

    #[test]
    fn it_is_swapped_in_when_it_has_nearly_caught_up() {
        assert_eq!(next_transition(BuildState::Ready, &facts(positions(&[5], None), None)), Transition::Swap);
        assert_eq!(
            next_transition(BuildState::Ready, &facts(positions(&[5, 5], None), Some(&[6, 5]))),
            Transition::Wait
        );
        let near = TransitionFacts { near: 1, ..facts(positions(&[5, 5], None), Some(&[6, 5])) };
        assert_eq!(next_transition(BuildState::Ready, &near), Transition::Swap);
        // Otherwise parted.
        assert_eq!(next_transition(BuildState::Ready, &facts(positions(&[5, 5], None), Some(&[5]))), Transition::Swap);
        assert_eq!(next_transition(BuildState::Ready, &facts(positions(&[5, 4], None), Some(&[5]))), Transition::Wait);
        // The live one is of another log.
        assert_eq!(next_transition(BuildState::Ready, &facts(positions(&[5], None), Some(&[101]))), Transition::Swap);
    }

    #[test]
    fn the_rest_is_for_somebody_to_decide() {
        for state in [BuildState::Differing, BuildState::Live, BuildState::Kept, BuildState::Failed] {
            assert_eq!(next_transition(state, &facts(positions(&[9], Some(9)), Some(&[9]))), Transition::Wait);
        }
        assert_eq!(next_transition(BuildState::Dropping, &TransitionFacts::default()), Transition::Drop);
    }
}
