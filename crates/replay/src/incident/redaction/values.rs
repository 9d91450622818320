//! The tokens that replace values: each value has one token, wherever it occurs.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

use regex::{Regex, RegexBuilder};

use super::{RedactionError, ValueKind};

/// Largest expression of all values, in bytes: some hundred thousand of them.
const LARGEST: usize = 512 * 1024 * 1024;
/// Parts of a text that are never a part of a value, as they link the events: ids, times, and tokens.
const UUID: &str = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
const TIME: &str = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{5,}(?:Z|[+-][0-9:]{5})?";
const TOKEN: &str = r"⟨[a-z]+-[0-9]+⟩";
/// A secret of fewer bytes is not looked for within words, where it may be a part of anything.
const TELLING: usize = 6;

/// All values that were found, with their tokens.
#[derive(Debug, Default)]
pub(super) struct Values {
    /// By what they are compared with.
    tokens: BTreeMap<String, (ValueKind, String)>,
    counts: BTreeMap<ValueKind, u64>,
    /// Other spellings of a value, and which it is.
    spellings: BTreeMap<String, String>,
}

/// Puts tokens in the place of values.
#[derive(Debug)]
pub(super) struct Replacer {
    values: Values,
    /// Ids that are others, since they were derived from what was replaced.
    pub(super) ids: HashMap<String, String>,
    everywhere: Regex,
    /// All but names of people, which may be names of other things.
    but_names: Regex,
}

impl Values {
    /// Notes a value; the same has the same token.
    pub(super) fn add(&mut self, kind: ValueKind, value: &str) {
        let compared = comparison_key(kind, value);
        let is_known = self.tokens.get(&compared).is_some_and(|(known, _)| known.is_name() || !kind.is_name());
        if compared.trim().is_empty() || is_known || self.is_token(value) {
            return;
        }
        let token = loop {
            let count = self.counts.entry(kind).or_default();
            *count += 1;
            let token = if kind.is_plain() { format!("{kind}-{count}") } else { format!("⟨{kind}-{count}⟩") };
            // Somebody may be called like a token.
            if !self.tokens.contains_key(&token) {
                break token;
            }
        };
        for spelling in json_spellings(value) {
            self.spellings.insert(spelling, compared.clone());
        }
        self.tokens.insert(compared, (kind, token));
    }

    fn is_token(&self, value: &str) -> bool {
        self.tokens.values().any(|(_, token)| token == value)
    }

    /// The token of a value that was noted.
    pub(super) fn token(&self, value: &str) -> Option<&str> {
        let lower = value.to_lowercase();
        let spelt = |value: &str| self.tokens.get(self.spellings.get(value).map_or(value, String::as_str));
        let ignores_case = |found: &&(ValueKind, String)| found.0.ignores_case();
        let found = spelt(value).or_else(|| spelt(&lower).filter(ignores_case));
        found.map(|(_, token)| token.as_str())
    }

    /// Returns the number of values of each kind.
    pub(super) fn counts(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for (kind, _) in self.tokens.values() {
            *counts.entry(kind.to_string()).or_default() += 1;
        }
        counts
    }

    /// All of one kind.
    pub(super) fn tokens_of_kind(&self, kind: ValueKind) -> impl Iterator<Item = (&str, &str)> {
        self.tokens
            .iter()
            .filter(move |(_, (of, _))| *of == kind)
            .map(|(value, (_, token))| (value.as_str(), token.as_str()))
    }

    fn expression(
        &self,
        ids: &HashMap<String, String>,
        is_wanted: impl Fn(ValueKind) -> bool,
    ) -> Result<Regex, RedactionError> {
        let is_of =
            |compared: &str| self.tokens.get(compared).filter(|(kind, _)| is_wanted(*kind)).map(|(kind, _)| *kind);
        let values =
            self.tokens.iter().filter(|(_, (kind, _))| is_wanted(*kind)).map(|(value, (kind, _))| (value, *kind));
        let spelt = self.spellings.iter().filter_map(|(spelling, compared)| Some((spelling, is_of(compared)?)));
        let mut all: Vec<(usize, String)> =
            values.chain(spelt).map(|(value, kind)| (value.len(), value_expression(value, kind))).collect();
        // One that is written like an id or a time is one of these.
        all.extend([(36, UUID.to_owned()), (20, TIME.to_owned()), (usize::MAX, TOKEN.to_owned())]);
        all.extend(ids.keys().map(|id| (id.len(), format!(r"\b{{start-half}}{}\b{{end-half}}", regex::escape(id)))));
        let tokens = self.tokens.values().filter(|(kind, _)| kind.is_plain()).map(|(_, token)| token);
        all.extend(tokens.map(|token| (token.len() + 1, format!(r"\b{{start-half}}{token}\b{{end-half}}"))));
        // Of two that begin at the same place, the longer one counts.
        all.sort_by(|one, other| other.cmp(one));
        let all: Vec<String> = all.into_iter().map(|(_, expression)| expression).collect();
        let expression = RegexBuilder::new(&all.join("|")).size_limit(LARGEST).dfa_size_limit(LARGEST / 8).build();
        expression.map_err(|_| RedactionError::TooMany { values: self.tokens.len() })
    }
}

impl Replacer {
    /// With these values, and ids that are others.
    pub(super) fn new(values: Values, ids: HashMap<String, String>) -> Result<Self, RedactionError> {
        let everywhere = values.expression(&ids, |_| true)?;
        let but_names = values.expression(&ids, |kind| !kind.is_name())?;
        Ok(Self { values, ids, everywhere, but_names })
    }

    pub(super) fn values(&self) -> &Values {
        &self.values
    }

    /// The text with tokens in the place of all values.
    pub(super) fn replace<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.replace_matches(&self.everywhere, text)
    }

    /// Returns the text with tokens in the place of all values but names of people: they may be names of other things.
    pub(super) fn replace_all_but_names<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.replace_matches(&self.but_names, text)
    }

    fn replace_matches<'t>(&self, expression: &Regex, text: &'t str) -> Cow<'t, str> {
        expression.replace_all(text, |found: &regex::Captures<'_>| {
            let found = found.get(0).map_or("", |found| found.as_str());
            let id = || self.ids.get(found).map(String::as_str);
            self.values.token(found).or_else(id).unwrap_or(found).to_owned()
        })
    }

    /// Returns true if a text still holds a value, whether it was redacted or left as it is.
    pub(super) fn has_value_left(&self, text: &str, with_names: bool) -> bool {
        let expression = if with_names { &self.everywhere } else { &self.but_names };
        expression.find_iter(text).any(|found| self.values.token(found.as_str()).is_some())
    }
}

/// By what values of a kind are the same.
fn comparison_key(kind: ValueKind, value: &str) -> String {
    if kind.ignores_case() { value.to_lowercase() } else { value.to_owned() }
}

/// Returns the spellings of a value within the text of JSON.
fn json_spellings(value: &str) -> Vec<String> {
    let json = serde_json::to_string(value).unwrap_or_default();
    let json = json.get(1..json.len().saturating_sub(1)).unwrap_or_default().to_owned();
    let mut ascii = String::new();
    for sign in json.chars() {
        match sign.is_ascii() {
            true => ascii.push(sign),
            false => ascii.extend(sign.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}"))),
        }
    }
    [json, ascii].into_iter().filter(|spelling| spelling != value && !spelling.is_empty()).collect()
}

/// An expression for a value: as a word of its own, unless it is a secret that is found nowhere by chance.
fn value_expression(value: &str, kind: ValueKind) -> String {
    let is_word = |sign: Option<char>| sign.is_some_and(|sign| sign.is_alphanumeric() || sign == '_');
    let is_telling =
        matches!(kind, ValueKind::Secret | ValueKind::Credentials | ValueKind::Pattern) && value.len() >= TELLING;
    let start = if is_word(value.chars().next()) && !is_telling { r"\b{start-half}" } else { "" };
    let end = if is_word(value.chars().next_back()) && !is_telling { r"\b{end-half}" } else { "" };
    let case = if kind.ignores_case() { "(?i:" } else { "(?:" };
    format!("{start}{case}{}){end}", regex::escape(value))
}
