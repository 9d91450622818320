//! Finding things in inner state: by words, and by what is related. Nothing but what is there, so the same answer for ever.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use super::{InnerState, InnerStateEntry};

/// Words of a search that count.
const WORDS: usize = 32;
/// Scores of a word found in a key or in its related keys; a word in a content scores 1.
const IN_KEY: usize = 4;
const IN_RELATED: usize = 2;

/// The relation of a key to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The other one names it.
    Named,
    /// It names the other one.
    Names,
    Both,
}

impl InnerState {
    /// Finds the entries that match these words in a turn of this user: best score first, then the latest. In scripts
    /// without spaces, two adjacent letters are a word.
    pub fn find(&self, user: &str, words: &str) -> Vec<(&str, &InnerStateEntry)> {
        let wanted = search_terms(words);
        let score = |key: &str, entry: &InnerStateEntry| {
            let key = SearchText::from_text(key);
            let related = SearchText::from_text(&entry.related.join(" "));
            let content = SearchText::from_text(&entry.content);
            let worth = |token: &SearchTerm| {
                let key = key.contains_term(token);
                let related = related.contains_term(token);
                usize::from(key) * IN_KEY
                    + usize::from(related) * IN_RELATED
                    + usize::from(content.contains_term(token))
            };
            let worths: Vec<usize> = wanted.iter().map(worth).filter(|worth| *worth > 0).collect();
            (worths.len(), worths.iter().sum::<usize>())
        };
        let scored = self.visible_to(user).into_iter().map(|(key, entry)| (score(key, entry), key, entry));
        let mut found: Vec<_> = scored.filter(|((words, _), ..)| *words > 0).collect();
        found.sort_by_key(|(score, key, entry)| (Reverse(*score), Reverse(entry.updated_at), *key));
        found.into_iter().map(|(_, key, entry)| (key, entry)).collect()
    }

    /// Returns the entries related to a key in either direction that a turn of this user sees, by key.
    pub fn related_entries(&self, user: &str, key: &str) -> Vec<(&str, &InnerStateEntry, Relation)> {
        let seen: BTreeMap<&str, &InnerStateEntry> = self.visible_to(user);
        let named: BTreeSet<&str> =
            seen.get(key).into_iter().flat_map(|entry| entry.related.iter().map(String::as_str)).collect();
        let related = seen.iter().filter(|(other, _)| **other != key).filter_map(|(other, entry)| {
            let names = entry.related.iter().any(|related| related == key);
            let relation = match (named.contains(other), names) {
                (true, true) => Relation::Both,
                (true, false) => Relation::Named,
                (false, true) => Relation::Names,
                (false, false) => return None,
            };
            Some((*other, *entry, relation))
        });
        related.collect()
    }
}

/// A search term.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SearchTerm {
    /// A word, or the beginning of one.
    Word(String),
    /// Letters of a script without spaces that stand together.
    Letters(String),
}

/// Splits a search into its distinct terms, in lower case.
fn search_terms(words: &str) -> BTreeSet<SearchTerm> {
    let mut tokens = BTreeSet::new();
    for run in letter_runs(&words.to_lowercase()) {
        let letters: Vec<char> = run.chars().collect();
        match letters.first().is_some_and(|letter| is_unspaced(*letter)) {
            false => _ = tokens.insert(SearchTerm::Word(run)),
            true if letters.len() == 1 => _ = tokens.insert(SearchTerm::Letters(run)),
            true => tokens.extend(letters.windows(2).map(|pair| SearchTerm::Letters(pair.iter().collect()))),
        }
        if tokens.len() >= WORDS {
            break;
        }
    }
    tokens
}

/// A text that is searched.
struct SearchText {
    small: String,
    words: BTreeSet<String>,
}

impl SearchText {
    fn from_text(text: &str) -> Self {
        let small = text.to_lowercase();
        let words = letter_runs(&small).into_iter().collect();
        Self { small, words }
    }

    fn contains_term(&self, token: &SearchTerm) -> bool {
        match token {
            SearchTerm::Word(word) => {
                self.words.range(word.clone()..).next().is_some_and(|known| known.starts_with(word.as_str()))
            }
            SearchTerm::Letters(letters) => self.small.contains(letters.as_str()),
        }
    }
}

/// Runs of letters and digits, each of scripts with or without spaces.
fn letter_runs(text: &str) -> Vec<String> {
    let mut runs: Vec<String> = Vec::new();
    let mut before: Option<bool> = None;
    for letter in text.chars() {
        let kind = letter.is_alphanumeric().then(|| is_unspaced(letter));
        match (kind, runs.last_mut()) {
            (Some(_), Some(run)) if kind == before => run.push(letter),
            (Some(_), _) => runs.push(letter.to_string()),
            (None, _) => {}
        }
        before = kind;
    }
    runs
}

/// Thai and Lao, Japanese, Chinese.
fn is_unspaced(letter: char) -> bool {
    matches!(letter, '\u{0e00}'..='\u{0eff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}')
}
