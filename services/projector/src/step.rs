//! What is to be done next about a generation. Pure: what the registry says in, one step out, so that whoever comes
//! after a crash goes on with the same step.

use kairo_proto::words::GenerationState;

use crate::partition_progress::Place;

/// As the registry names them; see its migration for what they mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
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

impl State {
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

    /// Whether the log is read for it.
    pub fn is_followed(self) -> bool {
        use State::{Comparing, Differing, Filling, Indexing, Live, Ready};
        matches!(self, Filling | Indexing | Comparing | Differing | Ready | Live)
    }

    /// Whether it is on its way to be the live one, or is it.
    pub fn is_wanted(self) -> bool {
        self == Self::Asked || self.is_followed()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
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

/// What a step depends on beside the state.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Where its partitions are.
    pub own: Vec<Place>,
    /// Where those of the live generation are, if there is one.
    pub live: Option<Vec<Place>>,
    /// Where the log ends.
    pub end: u64,
    /// Whether the live one was measured for this one.
    pub measured: bool,
    /// How far it may be behind, in messages, when swapping is tried: the live one waits for that.
    pub near: u64,
}

pub fn next(state: State, facts: &Facts) -> Step {
    match state {
        State::Asked => Step::Begin,
        State::Filling if arrived(&facts.own) => Step::Check,
        State::Indexing => Step::Index,
        State::Comparing => compare(facts),
        State::Ready => match &facts.live {
            Some(live) if !is_foreign(live, facts.end) && !is_level(&facts.own, live, facts.near) => Step::Wait,
            _ => Step::Swap,
        },
        State::Dropping => Step::Drop,
        State::Filling | State::Differing | State::Live | State::Kept | State::Failed => Step::Wait,
    }
}

fn compare(facts: &Facts) -> Step {
    let Some(live) = &facts.live else { return Step::Accept(String::new()) };
    if is_foreign(live, facts.end) {
        return Step::Accept("not compared: the live one was made from another log".to_owned());
    }
    if live.len() != facts.own.len() {
        return Step::Accept(format!("not compared: the live one has {} partitions", live.len()));
    }
    if facts.measured {
        return if arrived(&facts.own) { Step::Compare } else { Step::Wait };
    }
    // It cannot go back to where the live one is.
    if is_level(live, &facts.own, 0) { Step::Measure } else { Step::Wait }
}

fn arrived(places: &[Place]) -> bool {
    places.iter().all(|place| place.has_arrived())
}

/// Whether the one is as far as the other in every partition, apart from so many messages. Where they are not parted
/// in the same way, all of it must be.
pub fn is_level(one: &[Place], other: &[Place], near: u64) -> bool {
    let reaches = |one: &Place, other: &Place| one.sequence.saturating_add(near) >= other.sequence;
    match one.len() == other.len() {
        true => one.iter().zip(other).all(|(one, other)| reaches(one, other)),
        false => one.iter().all(|one| other.iter().all(|other| reaches(one, other))),
    }
}

/// Whether it was made from a log that went further than this one does.
pub fn is_foreign(places: &[Place], end: u64) -> bool {
    places.iter().any(|place| place.sequence > end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(sequences: &[u64], stop_at: Option<u64>) -> Vec<Place> {
        sequences.iter().map(|&sequence| Place { sequence, stop_at }).collect()
    }

    fn facts(own: Vec<Place>, live: Option<&[u64]>) -> Facts {
        Facts { own, live: live.map(|live| places(live, None)), end: 100, measured: false, near: 0 }
    }

    #[test]
    fn it_is_filled_up_to_where_the_log_ended() {
        assert_eq!(next(State::Asked, &Facts::default()), Step::Begin);
        assert_eq!(next(State::Filling, &facts(places(&[9, 8], Some(9)), None)), Step::Wait);
        assert_eq!(next(State::Filling, &facts(places(&[9, 9], Some(9)), None)), Step::Check);
        assert_eq!(next(State::Indexing, &facts(places(&[9, 9], Some(9)), None)), Step::Index);
    }

    #[test]
    fn it_is_compared_with_the_live_one_where_that_can_be_done() {
        let own = || places(&[9, 9], Some(9));
        assert_eq!(next(State::Comparing, &facts(own(), None)), Step::Accept(String::new()));
        assert!(matches!(next(State::Comparing, &facts(own(), Some(&[50]))), Step::Accept(_)));
        assert!(matches!(next(State::Comparing, &facts(own(), Some(&[101, 50]))), Step::Accept(_)));
        assert_eq!(next(State::Comparing, &facts(own(), Some(&[8, 50]))), Step::Wait);
        assert_eq!(next(State::Comparing, &facts(own(), Some(&[9, 50]))), Step::Measure);
        let measured = |own| Facts { measured: true, ..facts(own, Some(&[60, 60])) };
        assert_eq!(next(State::Comparing, &measured(places(&[50, 49], Some(50)))), Step::Wait);
        assert_eq!(next(State::Comparing, &measured(places(&[50, 50], Some(50)))), Step::Compare);
    }

    #[test]
    fn it_is_swapped_in_when_it_has_nearly_caught_up() {
        assert_eq!(next(State::Ready, &facts(places(&[5], None), None)), Step::Swap);
        assert_eq!(next(State::Ready, &facts(places(&[5, 5], None), Some(&[6, 5]))), Step::Wait);
        let near = Facts { near: 1, ..facts(places(&[5, 5], None), Some(&[6, 5])) };
        assert_eq!(next(State::Ready, &near), Step::Swap);
        // Otherwise parted.
        assert_eq!(next(State::Ready, &facts(places(&[5, 5], None), Some(&[5]))), Step::Swap);
        assert_eq!(next(State::Ready, &facts(places(&[5, 4], None), Some(&[5]))), Step::Wait);
        // The live one is of another log.
        assert_eq!(next(State::Ready, &facts(places(&[5], None), Some(&[101]))), Step::Swap);
    }

    #[test]
    fn the_rest_is_for_somebody_to_decide() {
        for state in [State::Differing, State::Live, State::Kept, State::Failed] {
            assert_eq!(next(state, &facts(places(&[9], Some(9)), Some(&[9]))), Step::Wait);
        }
        assert_eq!(next(State::Dropping, &Facts::default()), Step::Drop);
    }
}
