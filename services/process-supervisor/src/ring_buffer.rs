//! The last pieces of something, for whoever comes late.

use std::collections::VecDeque;

/// Pieces kept of one process, however small they are.
const MAX_PIECES: usize = 512;

/// The newest pieces that together have as many bytes as asked for, or a little more: none is cut.
#[derive(Debug)]
pub struct RingBuffer<P> {
    wanted_bytes: usize,
    bytes: usize,
    pieces: VecDeque<(usize, P)>,
}

impl<P> RingBuffer<P> {
    pub fn new(wanted_bytes: usize) -> Self {
        Self { wanted_bytes, bytes: 0, pieces: VecDeque::new() }
    }

    pub fn push(&mut self, bytes: usize, piece: P) {
        self.bytes += bytes;
        self.pieces.push_back((bytes, piece));
        while let Some((oldest, _)) = self.pieces.front()
            && (self.bytes - oldest >= self.wanted_bytes || self.pieces.len() > MAX_PIECES)
        {
            self.bytes -= oldest;
            self.pieces.pop_front();
        }
    }

    /// Oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &P> {
        self.pieces.iter().map(|(_, piece)| piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(wanted_bytes: usize, sizes: impl IntoIterator<Item = usize>) -> Vec<usize> {
        let mut kept = RingBuffer::new(wanted_bytes);
        sizes.into_iter().enumerate().for_each(|(number, bytes)| kept.push(bytes, number));
        kept.iter().copied().collect()
    }

    #[test]
    fn the_newest_are_kept_whole_and_in_order() {
        assert_eq!(kept(10, [4, 4]), [0, 1]);
        assert_eq!(kept(10, [4, 4, 4]), [0, 1, 2], "without the first it would be less than asked for");
        assert_eq!(kept(10, [4, 4, 4, 4]), [1, 2, 3]);
        assert_eq!(kept(10, [4, 4, 100]), [2]);
    }

    #[test]
    fn nothing_asked_for_is_nothing_kept() {
        assert_eq!(kept(0, [4, 1]), Vec::<usize>::new());
    }

    #[test]
    fn there_is_a_bound_for_the_smallest_pieces_too() {
        assert_eq!(kept(10_000, std::iter::repeat_n(1, 2_000)), (2_000 - MAX_PIECES..2_000).collect::<Vec<_>>());
    }
}
