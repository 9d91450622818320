//! Two texts side by side, with the words in which they differ. Pure.

use kairo_replay::report::DecisionDifference;
use serde::Serialize;
use similar::{ChangeTag, TextDiff};

/// Most words of a text that is compared word by word: comparing takes the product of both.
const WORDS: usize = 5_000;

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DiffPiece {
    pub text: String,
    /// True if the other text has something else there, or nothing.
    pub differs: bool,
}

/// A place at which two decisions differ, word by word.
#[derive(Debug, Serialize)]
pub struct MarkedPlace<'p> {
    at: &'p str,
    both: [Vec<DiffPiece>; 2],
}

impl<'p> From<&'p DecisionDifference> for MarkedPlace<'p> {
    fn from(DecisionDifference { at, recorded, made }: &'p DecisionDifference) -> Self {
        Self { at, both: mark_differences(recorded, made) }
    }
}

/// Both texts in pieces, which together are the whole. Of texts that are too long, or of one alone, nothing is marked.
pub fn mark_differences(before: &str, after: &str) -> [Vec<DiffPiece>; 2] {
    let is_long = |text: &str| text.split_whitespace().nth(WORDS).is_some();
    if before.is_empty() || after.is_empty() || is_long(before) || is_long(after) {
        return [before, after].map(|text| vec![DiffPiece { text: text.to_owned(), differs: false }]);
    }
    let diff = TextDiff::from_words(before, after);
    let mut old = Vec::new();
    let mut new = Vec::new();
    for change in diff.iter_all_changes() {
        match change.tag() {
            ChangeTag::Equal => {
                [&mut old, &mut new].into_iter().for_each(|pieces| push_piece(pieces, change.value(), false))
            }
            ChangeTag::Delete => push_piece(&mut old, change.value(), true),
            ChangeTag::Insert => push_piece(&mut new, change.value(), true),
        }
    }
    [old, new]
}

/// Appends a text to the last piece if `differs` is the same there, else as a new piece.
fn push_piece(pieces: &mut Vec<DiffPiece>, text: &str, differs: bool) {
    match pieces.last_mut() {
        Some(last) if last.differs == differs => last.text.push_str(text),
        _ => pieces.push(DiffPiece { text: text.to_owned(), differs }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark_pieces(pieces: &[DiffPiece]) -> String {
        pieces.iter().map(|it| if it.differs { format!("[{}]", it.text) } else { it.text.clone() }).collect()
    }

    #[test]
    fn the_words_that_differ_are_marked_in_both() {
        let [before, after] = mark_differences("It is 2 o'clock,\n  sir.", "It is 3 o'clock,\n  dear sir.");
        assert_eq!(mark_pieces(&before), "It is [2] o'clock,\n  sir.");
        assert_eq!(mark_pieces(&after), "It is [3] o'clock,\n  [dear ]sir.");
    }

    #[test]
    fn of_one_text_alone_and_of_very_long_ones_nothing_is_marked() {
        let long = "word ".repeat(WORDS + 1);
        for (before, after) in [("", "new"), ("old", ""), (long.as_str(), "short"), ("short", long.as_str())] {
            let pieces = mark_differences(before, after);
            assert_eq!(pieces.each_ref().map(|it| mark_pieces(it)), [before, after]);
        }
    }
}
