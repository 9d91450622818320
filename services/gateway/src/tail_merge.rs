//! Merges the tail of a running process or model call with its live pieces, so that a late listener receives each
//! piece once and in order. Pure.
//!
//! The two sources, live pieces and the requested tail, overlap and arrive in any order. The pieces of a writer (a
//! process or a model call) are numbered from 0. Until the wait for the tail is over, a live piece that an earlier one
//! may still precede is held back.

use std::collections::{BTreeMap, HashMap};

/// The most writers tracked while the tail may come; pieces of further writers are dropped until that wait is over.
const MAX_WRITERS: usize = 1_024;
/// The most pieces held back; further ones are dropped, as for a slow client.
const MAX_HELD: usize = 1_024;

/// The source of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceSource {
    Live,
    /// The requested tail: pieces before it are gone, or came already.
    Tail,
}

/// The state of the merge, for all writers.
#[derive(Debug)]
pub struct TailMerge<P> {
    /// True while the tail may still come.
    waiting: bool,
    writers: HashMap<String, WriterState<P>>,
    /// The number of pieces held back, over all writers.
    held: usize,
}

#[derive(Debug)]
struct WriterState<P> {
    /// The sequence of the next piece to show; none until the first was shown.
    due: Option<u64>,
    held: BTreeMap<u64, P>,
}

impl<P> TailMerge<P> {
    /// Creates a merge; `waiting` is true if a tail was requested.
    pub fn new(waiting: bool) -> Self {
        Self { waiting, writers: HashMap::new(), held: 0 }
    }

    /// Takes the writer's piece of this sequence and returns the pieces to show now, in order.
    pub fn accept_piece(&mut self, writer: &str, sequence: u64, source: PieceSource, piece: P) -> Vec<P> {
        if !self.writers.contains_key(writer) {
            // When the tail has had its time nothing can come twice from a writer of which nothing came before.
            if !self.waiting {
                return vec![piece];
            }
            if self.writers.len() >= MAX_WRITERS {
                return Vec::new();
            }
        }
        let known = self.writers.entry(writer.to_owned()).or_insert(WriterState { due: None, held: BTreeMap::new() });
        let is_due = match known.due {
            Some(due) if sequence < due => return Vec::new(),
            Some(due) => sequence == due,
            None => sequence == 0,
        };
        if is_due || source == PieceSource::Tail || !self.waiting {
            let shown = known.release_from(sequence, piece);
            self.held -= shown.len() - 1;
            return shown;
        }
        if self.held < MAX_HELD && known.held.insert(sequence, piece).is_none() {
            self.held += 1;
        }
        Vec::new()
    }

    /// Ends the wait for the tail and returns the pieces held back, in order per writer.
    pub fn end_tail(&mut self) -> Vec<P> {
        self.waiting = false;
        self.held = 0;
        let release = |writer: &mut WriterState<P>| {
            let held = std::mem::take(&mut writer.held);
            writer.due = held.last_key_value().map(|(last, _)| last + 1).or(writer.due);
            held.into_values()
        };
        self.writers.values_mut().flat_map(release).collect()
    }
}

impl<P> WriterState<P> {
    /// Returns the piece, followed by the held pieces that continue it without a gap.
    fn release_from(&mut self, sequence: u64, piece: P) -> Vec<P> {
        let mut shown = vec![piece];
        let mut due = sequence + 1;
        while let Some(next) = self.held.remove(&due) {
            shown.push(next);
            due += 1;
        }
        self.due = Some(due);
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::{
        PieceSource::{Live, Tail},
        *,
    };

    fn join(pieces: &[(u64, PieceSource)]) -> (TailMerge<u64>, Vec<u64>) {
        let mut join = TailMerge::new(true);
        let shown = pieces
            .iter()
            .flat_map(|(sequence, source)| join.accept_piece("p", *sequence, *source, *sequence))
            .collect();
        (join, shown)
    }

    #[test]
    fn the_tail_comes_before_what_is_live_however_they_arrive() {
        let orders: [&[(u64, PieceSource)]; 5] = [
            &[(3, Tail), (4, Tail), (5, Live), (6, Live)],
            &[(4, Live), (5, Live), (3, Tail), (4, Tail), (6, Live)],
            &[(5, Live), (3, Tail), (4, Tail), (5, Tail), (6, Live)],
            &[(5, Live), (6, Live), (3, Tail), (4, Tail)],
            &[(3, Tail), (5, Live), (4, Tail), (5, Tail), (6, Tail), (6, Live)],
        ];
        for order in orders {
            assert_eq!(join(order).1, [3, 4, 5, 6], "{order:?}");
        }
    }

    #[test]
    fn a_process_that_begins_is_shown_at_once() {
        assert_eq!(join(&[(0, Live), (1, Live), (0, Tail), (1, Tail), (2, Live)]).1, [0, 1, 2]);
        assert_eq!(join(&[(0, Tail), (0, Live), (1, Live)]).1, [0, 1]);
    }

    #[test]
    fn what_is_missing_for_good_is_waited_for_until_the_tail_has_had_its_time() {
        let (mut late, shown) = join(&[(0, Live), (2, Live), (3, Live)]);
        assert_eq!(shown, [0]);
        assert_eq!(late.end_tail(), [2, 3]);
        assert_eq!(late.accept_piece("p", 3, Live, 3), [0; 0]);
        assert_eq!(late.accept_piece("p", 5, Live, 5), [5]);
        assert_eq!(late.accept_piece("other", 9, Live, 9), [9]);
        // A supervisor keeps a piece of which it could not tell anybody.
        assert_eq!(join(&[(2, Tail), (4, Tail), (5, Live)]).1, [2, 4, 5]);
    }

    #[test]
    fn where_there_is_no_tail_everything_is_shown() {
        let mut late = TailMerge::new(false);
        assert_eq!(late.accept_piece("p", 7, Live, 7), [7]);
        assert!(late.writers.is_empty());
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut late = TailMerge::new(true);
        for sequence in 1..=2 * MAX_HELD as u64 {
            assert!(late.accept_piece("p", sequence, Live, sequence).is_empty());
        }
        for writer in 0..2 * MAX_WRITERS {
            late.accept_piece(&writer.to_string(), 0, Live, 0);
        }
        assert_eq!((late.held, late.writers.len()), (MAX_HELD, MAX_WRITERS));
        assert_eq!(late.accept_piece("p", 0, Live, 0).len(), 1 + MAX_HELD);
        assert_eq!(late.held, 0);
    }
}
