//! Progress of a partition towards the end that the log had when reading began. Nothing is decided before that: an
//! agent that does not know all its messages yet would request answers twice. Pure.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatchingUp {
    /// Nobody knows yet how much is there.
    Opening,
    /// Number of messages still to read of those present when reading began.
    Behind(u64),
    Done,
    /// Number of messages still to read of those present when reading began once more.
    BehindAgain(u64),
}

impl CatchingUp {
    /// Reading began, or began once more, with so many messages to come.
    pub fn begins(&mut self, pending: u64) {
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
    pub fn ends(&mut self) -> bool {
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
    pub fn is_first(self) -> bool {
        matches!(self, Self::Opening | Self::Behind(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_done_when_all_was_read_that_was_there_and_not_before_that_is_known() {
        let mut catching_up = CatchingUp::Opening;
        catching_up.read(3);
        assert!(!catching_up.ends() && !catching_up.is_done(), "nobody knows yet how much is there");
        catching_up.begins(3);
        catching_up.read(2);
        assert!(!catching_up.ends() && !catching_up.is_done());
        catching_up.read(2);
        assert!(catching_up.ends() && catching_up.is_done() && !catching_up.ends());
        let mut nothing_there = CatchingUp::Opening;
        nothing_there.begins(0);
        assert!(nothing_there.ends());
    }

    #[test]
    fn it_was_caught_up_before_where_reading_begins_once_more() {
        let mut catching_up = CatchingUp::Opening;
        catching_up.begins(2);
        catching_up.begins(1);
        assert!(catching_up.is_first(), "reading began twice, and came to no end");
        catching_up.read(1);
        assert!(catching_up.ends() && !catching_up.is_first());
        for _ in 0..2 {
            catching_up.begins(1);
            assert!(!catching_up.is_done() && !catching_up.is_first(), "{catching_up:?}");
        }
        catching_up.read(1);
        assert!(catching_up.ends() && catching_up.is_done());
    }
}
