//! The form in which texts and words are compared: without case, width and accents, and each letter written in one part.
//!
//! Postgres does the same to what it stores, by the function `folded` of the migrations; Meilisearch does it by itself. The marks and
//! letters listed here stand there, too.

use std::ops::Range;

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// A text as it is compared, and where its letters come from.
pub struct FoldedText {
    pub text: String,
    /// For each letter of `text`, in order: where it begins there, and which bytes of the text it was made of.
    letters: Vec<(usize, Range<usize>)>,
}

/// A text as it is compared. Case, width, accents of Latin and Greek letters, points of Hebrew and Arabic ones, tone marks of Thai ones
/// and invisible letters make no difference; letters of compatibility are those that they stand for.
pub fn fold_text(text: &str) -> String {
    let mut on_letter = false;
    text.nfkd()
        .filter(|letter| !is_dropped(*letter))
        .filter(|letter| !is_accent(*letter, &mut on_letter))
        .flat_map(char::to_lowercase)
        .flat_map(unify_spelling)
        .nfc()
        .collect()
}

/// Folds a text and keeps the place of each letter. Marks stand with the letter before them.
pub fn fold_with_offsets(text: &str) -> FoldedText {
    let mut folding = FoldedText { text: String::new(), letters: Vec::new() };
    let mut places = text.char_indices().peekable();
    while let Some((begin, letter)) = places.next() {
        let mut end = begin + letter.len_utf8();
        while let Some((at, mark)) = places.next_if(|(_, next)| is_joined(*next)) {
            end = at + mark.len_utf8();
        }
        for letter in fold_text(text.get(begin..end).unwrap_or_default()).chars() {
            folding.letters.push((folding.text.len(), begin..end));
            folding.text.push(letter);
        }
    }
    folding
}

impl FoldedText {
    /// The bytes of the text that a part of the folded one was made of; none for an empty part.
    pub fn source_range(&self, part: Range<usize>) -> Option<Range<usize>> {
        let mut letters = self.letters.iter().filter(|(at, _)| part.contains(at)).map(|(_, origin)| origin);
        let first = letters.next()?;
        Some(first.start..letters.next_back().unwrap_or(first).end)
    }
}

/// Returns true if a letter belongs to a word: marks and invisible letters do, too.
pub fn is_word_letter(letter: char) -> bool {
    letter.is_alphanumeric() || is_joined(letter)
}

/// Returns true if a letter joins the one before it. Vowels and finals of Hangul that are letters of their own do,
/// too.
fn is_joined(letter: char) -> bool {
    is_combining_mark(letter)
        || is_dropped(letter)
        || matches!(letter, '\u{1160}'..='\u{11ff}' | '\u{ff9e}' | '\u{ff9f}')
}

/// Returns true if a letter makes no difference to any word: points, tone marks, variants, the Arabic stretch, and
/// invisible letters.
fn is_dropped(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{591}'..='\u{5bd}' | '\u{5bf}' | '\u{5c1}' | '\u{5c2}' | '\u{5c4}' | '\u{5c5}' | '\u{5c7}'
        | '\u{610}'..='\u{61a}' | '\u{640}' | '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{6d6}'..='\u{6dc}'
        | '\u{6df}'..='\u{6e4}' | '\u{6e7}' | '\u{6e8}' | '\u{6ea}'..='\u{6ed}'
        | '\u{e31}' | '\u{e34}'..='\u{e3a}' | '\u{e47}'..='\u{e4e}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{20d0}'..='\u{20f0}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

/// Returns true for an accent on a Latin or Greek letter. On letters of other scripts these make other letters, as in
/// й.
fn is_accent(letter: char, on_letter: &mut bool) -> bool {
    let is_mark = matches!(letter, '\u{300}'..='\u{36f}');
    if !is_mark {
        *on_letter = matches!(letter, 'A'..='Z' | 'a'..='z' | '\u{c0}'..='\u{2af}' | '\u{370}'..='\u{3ff}' | '\u{1e00}'..='\u{1fff}');
    }
    is_mark && *on_letter
}

/// Letters that are written in several ways.
fn unify_spelling(letter: char) -> impl Iterator<Item = char> {
    let [first, second] = match letter {
        'ς' => ['σ', '\0'],
        'ı' => ['i', '\0'],
        'ى' => ['ي', '\0'],
        'ة' => ['ه', '\0'],
        'ٱ' => ['ا', '\0'],
        'æ' => ['a', 'e'],
        'œ' => ['o', 'e'],
        other => [other, '\0'],
    };
    [Some(first), (second != '\0').then_some(second)].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_alike_is_the_same() {
        for (one, other) in [
            ("Jörg", "Jo\u{308}rg"),
            ("Jörg", "JORG"),
            ("Ｔｏｋｙｏ ２０２６", "tokyo 2026"),
            ("ﬁnance", "Finance"),
            ("ｶﾞｽ", "ガス"),
            ("カ\u{3099}ス", "ガス"),
            ("\u{1112}\u{1161}\u{11ab}국", "한국"),
            ("مُنَى", "مني"),
            ("אֱמֶת", "אמת"),
            ("ง่าย", "งาย"),
            ("Œuvre", "oeuvre"),
            ("ΟΔΟΣ", "οδός"),
            ("so\u{ad}ft", "soft"),
            ("İstanbul", "istanbul"),
            ("и\u{306}од", "йод"),
        ] {
            assert_eq!(fold_text(one), fold_text(other));
        }
        for (one, other) in [("йод", "иод"), ("ガス", "カス"), ("für", "fuer"), ("हिन्दी", "हनद"), ("7", "٧")]
        {
            assert_ne!(fold_text(one), fold_text(other));
        }
    }

    #[test]
    fn folding_again_changes_nothing() {
        for text in ["Jo\u{308}rg ﬁ Œ İ ½ ㎏ ｶﾞ ᄒ\u{1161}\u{11ab} مُنَى ง่าย и\u{306} हिन्दी", "\u{308}a\u{ad}\u{308}"]
        {
            assert_eq!(fold_text(&fold_text(text)), fold_text(text));
            assert_eq!(fold_with_offsets(text).text, fold_text(text));
        }
    }

    #[test]
    fn a_part_knows_what_it_was_made_of() {
        let text = "Jo\u{308}rg ㎏";
        let placed = fold_with_offsets(text);
        assert_eq!(placed.text, "jorg kg");
        assert_eq!(placed.source_range(1..2).map(|origin| &text[origin]), Some("o\u{308}"));
        assert_eq!(placed.source_range(5..6).map(|origin| &text[origin]), Some("㎏"));
        assert_eq!(placed.source_range(0..4).map(|origin| &text[origin]), Some("Jo\u{308}rg"));
        assert_eq!(placed.source_range(2..2), None);
    }
}
