//! Live pieces that arrive before their owner is known, since they may be faster than the log. They are kept until it
//! is known, and then shown in order. Pure.

use std::collections::{HashSet, VecDeque};

use crate::visibility::{EventOrigin, Visibility};

/// A bounded queue of the newest pieces. The bound is needed for turns without an owner, which are never settled.
pub struct EarlyPieces<T> {
    kept: VecDeque<(EventOrigin, T)>,
    most: usize,
}

impl<T> EarlyPieces<T> {
    pub fn new(most: usize) -> Self {
        Self { kept: VecDeque::new(), most }
    }

    /// Appends a piece, and drops the oldest if the queue is full.
    pub fn push(&mut self, at: EventOrigin, piece: T) {
        if self.kept.len() >= self.most {
            self.kept.pop_front();
        }
        self.kept.push_back((at, piece));
    }

    /// Returns the turns and threads of the kept pieces, each once.
    pub fn origins(&self) -> HashSet<EventOrigin> {
        self.kept.iter().map(|(at, _)| at.clone()).collect()
    }

    /// Returns the pieces now known to concern the user. Drops those that do not, and keeps those still unknown.
    pub fn take_settled(&mut self, concern: impl Fn(&EventOrigin) -> Visibility) -> Vec<T> {
        let mut theirs = Vec::new();
        for (at, piece) in std::mem::take(&mut self.kept) {
            match concern(&at) {
                Visibility::Theirs => theirs.push(piece),
                Visibility::NotTheirs => {}
                Visibility::Unknown => self.kept.push_back((at, piece)),
            }
        }
        theirs
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn turn(number: u128) -> EventOrigin {
        EventOrigin { turn: Uuid::from_u128(number), thread: None }
    }

    #[test]
    fn what_is_known_later_is_shown_in_its_order_and_what_is_anothers_never() {
        let mut early = EarlyPieces::new(9);
        for (at, piece) in [(1, "a"), (2, "x"), (1, "b"), (3, "u"), (1, "c")] {
            early.push(turn(at), piece);
        }
        let by_now = |at: &EventOrigin| match at.turn.as_u128() {
            1 => Visibility::Theirs,
            2 => Visibility::NotTheirs,
            _ => Visibility::Unknown,
        };
        assert_eq!(early.take_settled(by_now), ["a", "b", "c"]);
        assert_eq!(early.origins(), HashSet::from([turn(3)]));
        assert_eq!(early.take_settled(|_| Visibility::Theirs), ["u"]);
        assert!(early.take_settled(|_| Visibility::Theirs).is_empty());
    }

    #[test]
    fn of_more_than_are_kept_the_oldest_go() {
        let mut early = EarlyPieces::new(2);
        for piece in 1..=3 {
            early.push(turn(1), piece);
        }
        assert_eq!(early.take_settled(|_| Visibility::Unknown), Vec::<i32>::new());
        assert_eq!(early.take_settled(|_| Visibility::Theirs), [2, 3]);
    }
}
