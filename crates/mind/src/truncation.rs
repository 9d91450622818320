//! Cutting a part out of a text, and the note in its place.

use std::ops::Range;

/// Parts of the note at a cut, around the number of bytes, and the mark before the rest of the text.
const BEFORE_NOTE: &str = "… (";
const BEHIND_NOTE: &str = " bytes left out)";
const BEFORE_REST: &str = " …";

/// The place of an earlier cut, and the number of bytes left out there.
struct CutNote {
    place: Range<usize>,
    left_out: usize,
}

/// Returns the text without this part, with a note of the bytes left out, including those of earlier cuts in the part.
/// An earlier note that overlaps the part is removed whole.
pub fn without_range(text: &str, part: Range<usize>) -> String {
    let mut begin = part.start;
    let mut end = part.end;
    let mut in_notes = 0_usize;
    let mut before = 0_usize;
    for CutNote { place, left_out } in
        cut_notes(text).filter(|note| note.place.start < part.end && note.place.end > part.start)
    {
        (begin, end) = (begin.min(place.start), end.max(place.end));
        in_notes += place.len();
        before = before.saturating_add(left_out);
    }
    let left_out = (end - begin).saturating_sub(in_notes).saturating_add(before);
    let kept = text.get(..begin).unwrap_or_default();
    let rest = text.get(end..).unwrap_or_default();
    let before_rest = if rest.is_empty() { "" } else { BEFORE_REST };
    format!("{kept}{BEFORE_NOTE}{left_out}{BEHIND_NOTE}{before_rest}{rest}")
}

fn cut_notes(text: &str) -> impl Iterator<Item = CutNote> {
    text.match_indices(BEFORE_NOTE).filter_map(|(begin, before)| {
        let (number, rest) = text.get(begin + before.len()..)?.split_once(BEHIND_NOTE)?;
        let left_out = number.parse().ok()?;
        let end = text.len() - rest.strip_prefix(BEFORE_REST).unwrap_or(rest).len();
        Some(CutNote { place: begin..end, left_out })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::thread::cut_to;

    fn is_whole(text: &str, whole: usize) -> bool {
        let (kept, missing) = cut_notes(text)
            .fold((text.len(), 0), |(kept, missing), note| (kept - note.place.len(), missing + note.left_out));
        kept + missing == whole
    }

    proptest! {
        /// However often a text is cut, and wherever, it says how much of it is missing.
        #[test]
        fn what_is_cut_again_says_all_that_is_missing(
            word in "[a-z é预]{1,12}", times in 200..2_000usize, parts in prop::collection::vec((0..100usize, 1..100usize, any::<bool>()), 1..8),
        ) {
            let whole = word.repeat(times);
            let mut text = whole.clone();
            for (from, length, is_end) in parts {
                let begin = text.floor_char_boundary(text.len() * from / 100);
                let end = if is_end { text.len() } else { text.ceil_char_boundary((begin + text.len() * length / 100).min(text.len())) };
                text = if is_end { cut_to(&text, begin.max(8)) } else { without_range(&text, begin..end) };
                prop_assert!(is_whole(&text, whole.len()), "{text}");
            }
            let bytes = text.len() / 2;
            let cut = cut_to(&text, bytes);
            prop_assert_eq!(cut_to(&cut, bytes), cut);
        }
    }

    #[test]
    fn a_note_that_somebody_wrote_does_no_harm() {
        let huge = format!("a… ({} bytes left out) …b… (3 bytes left out)", usize::MAX);
        assert!(without_range(&huge, 1..huge.len()).contains(&usize::MAX.to_string()));
        assert_eq!(without_range("a… (many bytes left out)", 1..4), "a… (3 bytes left out) … (many bytes left out)");
    }
}
