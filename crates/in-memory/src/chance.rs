//! The server's source of chance.

/// A source of random decisions.
pub trait Chance {
    /// True so many times in a thousand.
    fn permille(&mut self, rate: u64) -> bool;

    /// One of 0 to `count` - 1; `count` is not 0.
    fn below(&mut self, count: usize) -> usize;
}

/// Nothing happens by chance: what may go wrong does not, and the first is chosen.
#[derive(Clone, Copy, Debug)]
pub struct Calm;

impl Chance for Calm {
    fn permille(&mut self, _rate: u64) -> bool {
        false
    }

    fn below(&mut self, _count: usize) -> usize {
        0
    }
}
