//! Progress of a partition towards the end that the log had when reading began. Nothing is decided before that: an
//! agent that does not know all its messages yet would request answers twice. Pure.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatchUpProgress {
    /// Nobody knows yet how much is there.
    Opening,
    /// Number of messages still to read of those present when reading began.
    Behind(u64),
    Done,
    /// Number of messages still to read of those present when reading began once more.
    BehindAgain(u64),
}

impl CatchUpProgress {
    /// Reading began, or began once more, with so many messages to come.
    pub fn begin(&mut self, pending: u64) {
        *self = match self {
            Self::Opening | Self::Behind(_) => Self::Behind(pending),
            Self::Done | Self::BehindAgain(_) => Self::BehindAgain(pending),
        };
    }

    /// Messages were read.
    pub fn read(&mut self, count: usize) {
        if let Self::Behind(left) | Self::BehindAgain(left) = self {
            *left = left.saturating_sub(count as u64);
        }
    }

    /// Returns true once, when the last of the messages was read.
    pub fn end_if_caught_up(&mut self) -> bool {
        let ends = matches!(self, Self::Behind(0) | Self::BehindAgain(0));
        if ends {
            *self = Self::Done;
        }
        ends
    }

    pub fn is_done(self) -> bool {
        self == Self::Done
    }

    /// Returns true if the partition has never caught up, so that nothing was decided yet.
    pub fn is_first_pass(self) -> bool {
        matches!(self, Self::Opening | Self::Behind(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_done_when_all_was_read_that_was_there_and_not_before_that_is_known() {
        let mut catching_up = CatchUpProgress::Opening;
        catching_up.read(3);
        assert!(!catching_up.end_if_caught_up() && !catching_up.is_done(), "nobody knows yet how much is there");
        catching_up.begin(3);
        catching_up.read(2);
        assert!(!catching_up.end_if_caught_up() && !catching_up.is_done());
        catching_up.read(2);
        assert!(catching_up.end_if_caught_up() && catching_up.is_done() && !catching_up.end_if_caught_up());
        let mut nothing_there = CatchUpProgress::Opening;
        nothing_there.begin(0);
        assert!(nothing_there.end_if_caught_up());
    }

    #[test]
    fn it_was_caught_up_before_where_reading_begins_once_more() {
        let mut catching_up = CatchUpProgress::Opening;
        catching_up.begin(2);
        catching_up.begin(1);
        assert!(catching_up.is_first_pass(), "reading began twice, and came to no end");
        catching_up.read(1);
        assert!(catching_up.end_if_caught_up() && !catching_up.is_first_pass());
        for _ in 0..2 {
            catching_up.begin(1);
            assert!(!catching_up.is_done() && !catching_up.is_first_pass(), "{catching_up:?}");
        }
        catching_up.read(1);
        assert!(catching_up.end_if_caught_up() && catching_up.is_done());
    }
}
