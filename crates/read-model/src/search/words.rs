//! The words of a search, and what fits them.

use std::collections::BTreeSet;

use super::folding::{fold_text, is_word_letter};

/// Words of a search that are looked for, and the letters of one. The search engine looks for no more than ten.
const WORDS: usize = 10;
const LETTERS: usize = 64;
/// Letters that a word must have for one of them to be wrong, and for two.
const ONE_TYPO: usize = 5;
const TWO_TYPOS: usize = 9;

/// A word that is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchWord {
    /// The word as it is compared ([`fold_text`]).
    pub text: String,
    /// True if more letters may follow: only for the last word, which the user may still be typing.
    pub begins: bool,
}

/// The words of a search, each once.
pub fn parse_words(query: &str) -> Vec<SearchWord> {
    let mut seen = BTreeSet::new();
    let mut words: Vec<SearchWord> = tokens(&fold_text(query))
        .map(|(_, word)| word.chars().take(LETTERS).collect::<String>())
        .filter(|word| seen.insert(word.clone()))
        .take(WORDS)
        .map(|text| SearchWord { text, begins: false })
        .collect();
    if let Some(last) = words.last_mut() {
        last.begins = true;
    }
    words
}

/// The runs of letters, with their marks, and digits of a text, and where they begin.
pub fn tokens(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split(|letter| !is_word_letter(letter))
        .filter(|token| token.contains(char::is_alphanumeric))
        .map(|token| (token.as_ptr() as usize - text.as_ptr() as usize, token))
}

/// The traces of a word: a text with a misspelling of the word has at least one of them.
#[derive(Debug, PartialEq, Eq)]
pub struct WordTraces {
    /// Beginnings of words.
    pub beginnings: BTreeSet<String>,
    /// Parts of words, of three letters at least, so that an index of trigrams finds them.
    pub parts: BTreeSet<String>,
}

impl SearchWord {
    /// Returns the number of letters that may be wrong; the first one counts twice, as it does for Meilisearch. In
    /// scripts without spaces, none.
    pub fn max_typos(&self) -> usize {
        match self.text.chars().count() {
            _ if self.is_unspaced() => 0,
            TWO_TYPOS.. => 2,
            ONE_TYPO.. => 1,
            _ => 0,
        }
    }

    /// Returns true for a script without spaces, where a word is a part of a longer run.
    pub fn is_unspaced(&self) -> bool {
        self.text.chars().any(is_unspaced)
    }

    /// Returns true if a run of letters and digits is this word, begins with it, or is a misspelling of it.
    pub fn matches_token(&self, token: &str) -> bool {
        let token: Vec<char> = fold_text(token).chars().take(2 * LETTERS).collect();
        let word: Vec<char> = self.text.chars().collect();
        if token == word || self.begins && token.starts_with(&word) {
            return true;
        }
        let most = self.max_typos().saturating_sub(usize::from(token.first() != word.first()));
        if most == 0 {
            return false;
        }
        let beginnings = (word.len() - most..=word.len() + most).filter_map(|length| token.get(..length));
        edit_distance(&word, &token) <= most
            || self.begins && beginnings.into_iter().any(|token| edit_distance(&word, token) <= most)
    }

    /// Returns the parts that misspellings leave unchanged: one of two parts, or one of three. Swapping the two
    /// letters where parts meet changes both parts, so the word is also cut with these letters swapped.
    pub fn misspelling_traces(&self) -> WordTraces {
        let letters: Vec<char> = self.text.chars().collect();
        let errors = self.max_typos();
        let cuts: Vec<usize> = (1..=errors).map(|part| part * letters.len() / (errors + 1)).collect();
        let mut traces = WordTraces { beginnings: BTreeSet::new(), parts: BTreeSet::new() };
        for swaps in 0..1_usize << cuts.len() {
            let mut letters = letters.clone();
            cuts.iter()
                .enumerate()
                .filter(|(bit, _)| swaps & (1 << bit) != 0)
                .for_each(|(_, cut)| letters.swap(cut - 1, *cut));
            let mut begin = 0;
            for end in cuts.iter().copied().chain([letters.len()]) {
                let part = letters.get(begin..end).unwrap_or_default().iter().collect();
                // A single error leaves the first letter as it is, and so whatever is before it.
                let into = if errors == 1 && begin == 0 { &mut traces.beginnings } else { &mut traces.parts };
                into.insert(part);
                begin = end;
            }
        }
        traces
    }
}

/// Returns true if a letter is of a script without spaces.
pub fn is_unspaced(letter: char) -> bool {
    matches!(letter, '\u{0e00}'..='\u{0eff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}')
}

/// Letters to change, add, leave out or swap with the next one to make one of the other.
fn edit_distance(one: &[char], other: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=other.len()).collect();
    for (row, letter) in one.iter().enumerate() {
        let mut line = vec![row + 1];
        for (column, theirs) in other.iter().enumerate() {
            let at = |line: &[usize], index: usize| line.get(index).copied().unwrap_or(usize::MAX - 1);
            let changed = at(&above, column) + usize::from(letter != theirs);
            let mut least = changed.min(at(&above, column + 1) + 1).min(at(&line, column) + 1);
            let crossed =
                row > 0 && column > 0 && one.get(row - 1) == Some(theirs) && other.get(column - 1) == Some(letter);
            if crossed {
                least = least.min(at(&before, column - 1) + 1);
            }
            line.push(least);
        }
        before = std::mem::replace(&mut above, line);
    }
    above.last().copied().unwrap_or(one.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(query: &str) -> Vec<String> {
        parse_words(query).into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn words_are_letters_and_digits_each_once_and_not_too_many() {
        assert_eq!(texts("Q2 budget: the BUDGET (Sarah's)"), ["q2", "budget", "the", "sarah", "s"]);
        assert_eq!(texts("预算 会议"), ["预算", "会议"]);
        assert_eq!(texts("' | & ! :* \\ \0"), Vec::<String>::new());
        let many: String = (0..1_000).map(|number| format!("w{number} ")).collect();
        assert_eq!(texts(&many).len(), WORDS);
        assert_eq!(texts(&"x".repeat(100_000))[0].len(), LETTERS);
        let begins: Vec<bool> = parse_words("budget rev").into_iter().map(|word| word.begins).collect();
        assert_eq!(begins, [false, true]);
    }

    #[test]
    fn letters_are_counted_that_are_wrong() {
        let distance = |one: &str, other: &str| {
            edit_distance(&one.chars().collect::<Vec<_>>(), &other.chars().collect::<Vec<_>>())
        };
        assert_eq!(distance("budget", "budget"), 0);
        for other in ["bugdet", "budgt", "budgets", "butget", "xbudget"] {
            assert_eq!(distance("budget", other), 1, "{other}");
        }
        assert_eq!((distance("", "ab"), distance("ab", ""), distance("abc", "xyz")), (2, 2, 3));
    }

    /// Every way to change, add, leave out or swap a letter.
    fn misspelt(word: &str) -> BTreeSet<String> {
        let letters: Vec<char> = word.chars().collect();
        let mut all = BTreeSet::new();
        for at in 0..=letters.len() {
            let (head, tail) = letters.split_at(at);
            let mut add = |parts: &[&[char]]| all.insert(parts.concat().iter().collect());
            add(&[head, &['x'], tail]);
            if let [first, rest @ ..] = tail {
                add(&[head, rest]);
                add(&[head, &['x'], rest]);
                if let [second, rest @ ..] = rest {
                    add(&[head, &[*second, *first], rest]);
                }
            }
        }
        all.remove(word);
        all
    }

    #[test]
    fn whatever_is_misspelt_leaves_a_trace() {
        for text in ["crane", "budget", "harbour", "invoices", "marketing", "procurement", "собака"] {
            for begins in [false, true] {
                let word = SearchWord { text: text.into(), begins };
                let traces = word.misspelling_traces();
                assert!(traces.parts.iter().all(|part| part.chars().count() >= 3), "{traces:?}");
                let more = |one: &String| if word.max_typos() == 2 { misspelt(one) } else { BTreeSet::new() };
                let once = misspelt(text);
                let all: BTreeSet<String> = once.iter().flat_map(more).chain(once.clone()).collect();
                let fitting: Vec<String> = all.into_iter().filter(|other| word.matches_token(other)).collect();
                assert!(
                    once.iter()
                        .filter(|one| one.chars().next() == text.chars().next())
                        .all(|one| fitting.contains(one))
                );
                for other in fitting {
                    let is_traced = traces.beginnings.iter().any(|part| other.starts_with(part))
                        || traces.parts.iter().any(|part| other.contains(part));
                    assert!(is_traced, "{other} for {text}: {traces:?}");
                }
            }
        }
    }

    #[test]
    fn a_wrong_first_letter_counts_twice() {
        let word = |text: &str| SearchWord { text: text.into(), begins: false };
        assert!(
            !word("budget").matches_token("dudget")
                && !word("budget").matches_token("ubdget")
                && !word("budget").matches_token("udget")
        );
        assert!(word("marketing").matches_token("narketing") && !word("marketing").matches_token("narketimg"));
    }

    #[test]
    fn letters_in_several_parts_are_letters() {
        assert_eq!(texts("Jo\u{308}rg Weiß, हिन्दी ง่าย"), ["jorg", "weiß", "हिन्दी", "งาย"]);
        assert_eq!(texts("½ ㎏ ＡＢＣ"), ["1", "2", "kg", "abc"]);
        assert!(parse_words("jörg")[0].matches_token("JO\u{308}RG"));
        assert_eq!(tokens("Jo\u{308}rg\u{200d}, \u{200d} x").map(|(at, _)| at).collect::<Vec<_>>(), [0, 15]);
    }

    #[test]
    fn short_words_are_exact_and_long_ones_may_be_misspelt() {
        let word = |text: &str, begins| SearchWord { text: text.into(), begins };
        assert!(word("bob", false).matches_token("Bob") && !word("bob", false).matches_token("bab"));
        assert!(word("sarha", false).matches_token("Sarah") && !word("sahra", false).matches_token("Zebra"));
        assert!(!word("预算会议室", false).matches_token("预算会议厅"));
        assert!(
            word("marketting", false).matches_token("marketing") && !word("markt", false).matches_token("marketing")
        );
        assert!(word("mark", true).matches_token("marketing") && !word("mark", false).matches_token("marketing"));
        assert!(word("markat", true).matches_token("marketing") && !word("markat", false).matches_token("marketing"));
    }

    #[test]
    fn a_token_knows_where_it_begins() {
        assert_eq!(tokens("a, ünd c").collect::<Vec<_>>(), [(0, "a"), (3, "ünd"), (8, "c")]);
    }
}
