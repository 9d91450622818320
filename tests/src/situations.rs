//! Situations that nobody wrote down: what people say to agents in five languages, with names, places, numbers, money and dates drawn
//! from a seed. The same seed gives the same situations on every machine.
//!
//! ```text
//! KAIRO_SITUATIONS=50 KAIRO_SEED=4711 cargo nextest run -p kairo-tests --test integration -E 'test(/^situations::/)'
//! ```
//!
//! `KAIRO_SEED` is the first seed (1 by default), `KAIRO_SITUATIONS` how many seeds follow each other (1 by default). A test that fails
//! names its seed.
#![allow(clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

mod phrases;

use std::{collections::BTreeSet, env, ops::Range, thread};

pub use self::phrases::Language;
use self::phrases::{Kind, Phrases};
use crate::chaos::random::Random;

/// Number of seeds a test takes unless `KAIRO_SITUATIONS` says otherwise: few, as each takes seconds.
const SEEDS: u64 = 1;
/// Draws after which no new sentence is looked for any more: the phrases are then too few for the test.
const DRAWS: usize = 1_000;

/// The seeds of this run.
pub fn seeds() -> Range<u64> {
    let number = |name: &str| env::var(name).ok().and_then(|value| value.parse().ok());
    let first: u64 = number("KAIRO_SEED").unwrap_or(1);
    first..first + number("KAIRO_SITUATIONS").unwrap_or(SEEDS)
}

/// A fact and its correction: two sentences that differ in one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    pub language: Language,
    pub before: String,
    pub after: String,
}

/// Says things in one language, and nothing twice. Prints its seed where a test panics.
#[derive(Debug)]
pub struct Speaker {
    seed: u64,
    language: Language,
    random: Random,
    said: BTreeSet<String>,
}

impl Speaker {
    pub fn new(seed: u64, language: Language) -> Self {
        let random = Random::new(seed, language.name());
        Self { seed, language, random, said: BTreeSet::new() }
    }

    /// One speaker for each language.
    pub fn all(seed: u64) -> Vec<Self> {
        Language::ALL.into_iter().map(|language| Self::new(seed, language)).collect()
    }

    /// Its language and seed, as an agent can be called.
    pub fn name(&self) -> String {
        format!("{}-{}", self.language.name(), self.seed)
    }

    pub fn language(&self) -> Language {
        self.language
    }

    /// A fact and its correction.
    pub fn fact(&mut self) -> Fact {
        for _ in 0..DRAWS {
            let (template, kind) = self.pick(self.phrases().facts);
            let template = self.filled(template);
            let [old, new] = [self.value(kind), self.value(kind)];
            let [before, after] = [old, new].map(|value| template.replace("{value}", &value));
            if before != after && !self.said.contains(&before) && !self.said.contains(&after) {
                self.said.extend([before.clone(), after.clone()]);
                return Fact { language: self.language, before, after };
            }
        }
        panic!("too few facts in {:?}", self.language);
    }

    /// Words that ask for work.
    pub fn request(&mut self) -> String {
        self.sentence(self.phrases().requests)
    }

    /// Words that ask for nothing.
    pub fn small_talk(&mut self) -> String {
        self.sentence(self.phrases().small_talk)
    }

    /// Words that ask how far something is.
    pub fn status_question(&mut self) -> String {
        self.sentence(self.phrases().status_questions)
    }

    /// Returns a sentence with which a program reports its progress.
    pub fn progress(&mut self) -> String {
        self.sentence(self.phrases().progress)
    }

    fn phrases(&self) -> &'static Phrases {
        self.language.phrases()
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.random.index(choices.len())]
    }

    /// A sentence that was not said before.
    fn sentence(&mut self, templates: &[&str]) -> String {
        for _ in 0..DRAWS {
            let template = self.pick(templates);
            let sentence = self.filled(template);
            if self.said.insert(sentence.clone()) {
                return sentence;
            }
        }
        panic!("too few sentences in {:?}", self.language);
    }

    /// A template with everything filled in but `{value}`.
    fn filled(&mut self, template: &str) -> String {
        let mut text = template.to_owned();
        for (slot, kind) in [("{name}", Kind::Name), ("{place}", Kind::Place), ("{number}", Kind::Number)] {
            while text.contains(slot) {
                text = text.replacen(slot, &self.value(kind), 1);
            }
        }
        text
    }

    fn value(&mut self, kind: Kind) -> String {
        let phrases = self.phrases();
        match kind {
            Kind::Name => self.pick(phrases.names).to_owned(),
            Kind::Place => self.pick(phrases.places).to_owned(),
            Kind::Number => self.digits(2, 99_999),
            Kind::Money => phrases.money.replace("{}", &self.digits(2, 99_999)),
            Kind::Date => {
                let day = self.digits(1, 28);
                self.pick(phrases.months).replace("{}", &day)
            }
        }
    }

    fn digits(&mut self, least: u64, most: u64) -> String {
        self.language.digits(self.random.between(least, most))
    }
}

impl Drop for Speaker {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("situations of KAIRO_SEED={} in {:?}", self.seed, self.language);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that a speaker can say, so many times.
    fn speech(seed: u64, language: Language) -> Vec<String> {
        let mut speaker = Speaker::new(seed, language);
        let mut said = Vec::new();
        for _ in 0..20 {
            let fact = speaker.fact();
            said.extend([fact.before, fact.after, speaker.request(), speaker.small_talk()]);
            said.extend([speaker.status_question(), speaker.progress()]);
        }
        said
    }

    #[test]
    fn the_same_seed_says_the_same_and_another_says_something_else() {
        for language in Language::ALL {
            assert_eq!(speech(7, language), speech(7, language));
            assert_ne!(speech(7, language), speech(8, language));
        }
    }

    #[test]
    fn nothing_is_said_twice_and_every_slot_is_filled() {
        for language in Language::ALL {
            for seed in 0..50 {
                let said = speech(seed, language);
                assert_eq!(said.iter().collect::<BTreeSet<_>>().len(), said.len(), "{said:?}");
                assert!(said.iter().all(|sentence| !sentence.contains(['{', '}', '"', '\\'])), "{said:?}");
            }
        }
    }

    #[test]
    fn letters_of_several_parts_are_said_in_every_language_that_has_some() {
        let is_mark = |c: char| matches!(c, '\u{300}'..='\u{36f}' | '\u{64b}'..='\u{65f}');
        for language in [Language::German, Language::Spanish, Language::Arabic, Language::English] {
            let said: String = (0..10).flat_map(|seed| speech(seed, language)).collect();
            assert!(said.contains(is_mark), "{language:?}");
        }
    }
}
