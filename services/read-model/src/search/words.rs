//! The words of a search, and what fits them.

use std::collections::BTreeSet;

/// Words of a search that are looked for, and the letters of one. The search engine looks for no more than ten.
const WORDS: usize = 10;
const LETTERS: usize = 64;
/// Letters that a word must have for one of them to be wrong, and for two.
const ONE_TYPO: usize = 5;
const TWO_TYPOS: usize = 9;

/// A word that is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// In small letters.
    pub text: String,
    /// Whether more may follow it: that goes for the last one, which may be still being written.
    pub begins: bool,
}

/// The words of a search, each once.
pub fn words(query: &str) -> Vec<Word> {
    let mut seen = BTreeSet::new();
    let mut words: Vec<Word> = tokens(query)
        .map(|(_, word)| word.chars().take(LETTERS).collect::<String>().to_lowercase())
        .filter(|word| seen.insert(word.clone()))
        .take(WORDS)
        .map(|text| Word { text, begins: false })
        .collect();
    if let Some(last) = words.last_mut() {
        last.begins = true;
    }
    words
}

/// The runs of letters and digits of a text, and where they begin.
pub fn tokens(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|token| !token.is_empty())
        .map(|token| (token.as_ptr() as usize - text.as_ptr() as usize, token))
}

impl Word {
    /// Whether a letter of it may be wrong.
    pub fn may_differ(&self) -> bool {
        self.text.chars().count() >= ONE_TYPO
    }

    /// Whether it is of a script without spaces, where a word is a part of a longer run.
    pub fn is_unspaced(&self) -> bool {
        self.text.chars().any(is_unspaced)
    }

    /// Whether a run of letters and digits is this word, begins with it, or is a misspelling of it.
    pub fn fits(&self, token: &str) -> bool {
        let token: Vec<char> = token.to_lowercase().chars().take(2 * LETTERS).collect();
        let word: Vec<char> = self.text.chars().collect();
        if token == word || self.begins && token.starts_with(&word) {
            return true;
        }
        let most = match word.len() {
            TWO_TYPOS.. => 2,
            ONE_TYPO.. => 1,
            _ => return false,
        };
        let beginnings = (word.len() - most..=word.len() + most).filter_map(|length| token.get(..length));
        distance(&word, &token) <= most
            || self.begins && beginnings.into_iter().any(|token| distance(&word, token) <= most)
    }
}

/// Whether a letter is of a script without spaces.
pub fn is_unspaced(letter: char) -> bool {
    matches!(letter, '\u{0e00}'..='\u{0eff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}')
}

/// Letters to change, add, leave out or swap with the next one to make one of the other.
fn distance(one: &[char], other: &[char]) -> usize {
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
        words(query).into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn words_are_letters_and_digits_each_once_and_not_too_many() {
        assert_eq!(texts("Q2 budget: the BUDGET (Sarah's)"), ["q2", "budget", "the", "sarah", "s"]);
        assert_eq!(texts("预算 会议"), ["预算", "会议"]);
        assert_eq!(texts("' | & ! :* \\ \0"), Vec::<String>::new());
        let many: String = (0..1_000).map(|number| format!("w{number} ")).collect();
        assert_eq!(texts(&many).len(), WORDS);
        assert_eq!(texts(&"x".repeat(100_000))[0].len(), LETTERS);
        let begins: Vec<bool> = words("budget rev").into_iter().map(|word| word.begins).collect();
        assert_eq!(begins, [false, true]);
    }

    #[test]
    fn letters_are_counted_that_are_wrong() {
        let distance =
            |one: &str, other: &str| distance(&one.chars().collect::<Vec<_>>(), &other.chars().collect::<Vec<_>>());
        assert_eq!(distance("budget", "budget"), 0);
        for other in ["bugdet", "budgt", "budgets", "butget", "xbudget"] {
            assert_eq!(distance("budget", other), 1, "{other}");
        }
        assert_eq!((distance("", "ab"), distance("ab", ""), distance("abc", "xyz")), (2, 2, 3));
    }

    #[test]
    fn short_words_are_exact_and_long_ones_may_be_misspelt() {
        let word = |text: &str, begins| Word { text: text.into(), begins };
        assert!(word("bob", false).fits("Bob") && !word("bob", false).fits("bab"));
        assert!(word("sarha", false).fits("Sarah") && !word("sahra", false).fits("Zebra"));
        assert!(word("marketting", false).fits("marketing") && !word("markt", false).fits("marketing"));
        assert!(word("mark", true).fits("marketing") && !word("mark", false).fits("marketing"));
        assert!(word("markat", true).fits("marketing") && !word("markat", false).fits("marketing"));
    }

    #[test]
    fn a_token_knows_where_it_begins() {
        assert_eq!(tokens("a, ünd c").collect::<Vec<_>>(), [(0, "a"), (3, "ünd"), (8, "c")]);
    }
}
