//! Property tests of the promises in docs/search.md, with words drawn from a seed, in several scripts and several
//! spellings. Every backend must find the same.
//!
//! `KAIRO_SEED` is the first seed (1 by default), `KAIRO_SITUATIONS` the number of consecutive seeds (1 by default).

mod forms;

use std::{collections::BTreeSet, env};

use kairo_core::{bus::append::OutgoingEvent, ids};
use kairo_proto::v1::MemoryRow;
use kairo_read_model::{
    MemoriesQuery,
    search::{SearchConfig, SearchQuery, SearchService},
};

use self::forms::{Script, Writing};
use crate::{
    history::{decision, memory},
    meili::Meili,
    random::Random,
    setup::{Setup, ask, search},
    world::World,
};

/// The number of seeds of a test unless `KAIRO_SITUATIONS` sets another.
const SEEDS: u64 = 1;
/// Words of a text.
const WORDS: usize = 3;

fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| env::var(name).ok().and_then(|value| value.parse().ok());
    let first: u64 = number("KAIRO_SEED").unwrap_or(1);
    first..first + number("KAIRO_SITUATIONS").unwrap_or(SEEDS)
}

/// A question, and texts that answer it, since it was made for them; others may by chance.
#[derive(Debug)]
struct Question {
    words: String,
    script: Script,
    expected: Vec<String>,
    /// The one that comes first.
    first: Option<String>,
}

/// The texts and questions drawn from one seed.
struct Draw {
    agent: String,
    random: Random,
    drawn: Vec<String>,
    texts: Vec<String>,
    questions: Vec<Question>,
}

impl Draw {
    fn new(seed: u64) -> Self {
        let random = Random::new(seed, "promises of search");
        let mut draw =
            Self { agent: format!("a{seed}"), random, drawn: Vec::new(), texts: Vec::new(), questions: Vec::new() };
        Script::ALL.into_iter().for_each(|script| draw.texts_of(script));
        draw.numbers();
        draw
    }

    /// Returns a word whose beginning differs from those of all words drawn before.
    fn word(&mut self, script: Script) -> String {
        loop {
            let word = script.word(&mut self.random);
            if !self.drawn.iter().any(|other| forms::beginning(&word) == forms::beginning(other)) {
                self.drawn.push(word.clone());
                return word;
            }
        }
    }

    fn written(&mut self, word: &str, script: Script) -> String {
        let writings = script.writings();
        writings[self.random.index(writings.len())].of(word)
    }

    /// A text of words in any writing.
    fn text(&mut self, words: &[String], script: Script) -> String {
        let mut text = String::new();
        for (at, word) in words.iter().enumerate() {
            if at > 0 {
                let between = script.between();
                text.push_str(between[self.random.index(between.len())]);
            }
            text.push_str(&self.written(word, script));
        }
        self.texts.push(text.clone());
        text
    }

    fn ask(&mut self, words: String, script: Script, expected: &[&String]) {
        let expected = expected.iter().map(|text| (*text).clone()).collect();
        self.questions.push(Question { words, script, expected, first: None });
    }

    /// All that answers a question.
    fn answering(&self, question: &Question) -> BTreeSet<String> {
        self.texts.iter().filter(|text| forms::answers(text, &question.words, question.script)).cloned().collect()
    }

    fn texts_of(&mut self, script: Script) {
        let mut words: Vec<Vec<String>> = Vec::new();
        for _ in 0..2 {
            let drawn: Vec<String> = (0..WORDS).map(|_| self.word(script)).collect();
            let text = self.text(&drawn, script);
            for word in &drawn {
                let asked = self.written(word, script);
                self.ask(asked, script, &[&text]);
            }
            // All words must occur, in any order.
            let all = [&drawn[2], &drawn[0]].map(|word| self.written(word, script));
            self.ask(all.join(" "), script, &[&text]);
            if script.has_spaces() {
                self.beginnings_of(&drawn, &text, script);
            }
            words.push(drawn);
        }
        let [one, other] = [&words[0][0], &words[1][1]].map(|word| self.written(word, script));
        self.ask(format!("{one} {other}"), script, &[]);
        if script.may_be_misspelt() {
            [2, 3, 5].into_iter().for_each(|syllables| self.misspellings(script, syllables));
        }
    }

    /// The last word may be the beginning of a word, and only the last one.
    fn beginnings_of(&mut self, words: &[String], text: &String, script: Script) {
        let beginning = self.written(&forms::beginning(&words[1]), script);
        let word = self.written(&words[0], script);
        self.ask(format!("{word} {beginning}"), script, &[text]);
        self.ask(format!("{beginning} {word}"), script, &[]);
    }

    /// Draws a word of `syllables` syllables and one that resembles it: each finds both, itself first, and a word with
    /// too many errors finds nothing.
    fn misspellings(&mut self, script: Script, syllables: usize) {
        let mut word = || loop {
            let word = self.word(script);
            if word.chars().count() == 2 * syllables && script.may_be_changed(&word) {
                break word;
            }
        };
        let [near, far, begun] = std::array::from_fn(|_| word());
        let most = forms::errors_allowed(&near);
        if most > 0 {
            let other = self.misspelt(&near, most);
            let texts = [&near, &other].map(|word| self.text(std::slice::from_ref(word), script));
            for (asked, first) in [&near, &other].into_iter().zip(&texts) {
                let words = self.written(asked, script);
                let expected = texts.to_vec();
                let first = Some(first.clone());
                self.questions.push(Question { words, script, expected, first });
            }
        }
        self.text(std::slice::from_ref(&far), script);
        let too_far = self.misspelt(&far, most + 1);
        let asked = self.written(&too_far, script);
        self.ask(asked, script, &[]);
        // A wrong first letter counts twice.
        let text = self.text(std::slice::from_ref(&begun), script);
        let begun: String = [script.letter()].into_iter().chain(begun.chars().skip(1)).collect();
        let expected = if most == 2 { vec![&text] } else { Vec::new() };
        let asked = self.written(&begun, script);
        self.ask(asked, script, &expected);
    }

    /// Returns the word with `count` errors and the same first letter.
    fn misspelt(&mut self, word: &str, count: usize) -> String {
        loop {
            let mut letters: Vec<char> = word.chars().collect();
            for _ in 0..count {
                let at = 1 + self.random.index(letters.len() - 1);
                let other = letters[self.random.index(letters.len())];
                match self.random.below(4) {
                    0 => letters.insert(at, other),
                    1 if letters.len() > 4 => _ = letters.remove(at),
                    2 if at + 1 < letters.len() => letters.swap(at, at + 1),
                    _ => letters[at] = other,
                }
            }
            let misspelt: String = letters.into_iter().collect();
            // Neither is the beginning of the other, nor resembles it, and both are long enough for so many errors.
            let both = [(word, misspelt.as_str()), (misspelt.as_str(), word)];
            let is_so_far = |(one, other)| forms::errors_to_begin(one, other) == count;
            if both.into_iter().all(is_so_far) && forms::errors_allowed(&misspelt) == forms::errors_allowed(word) {
                return misspelt;
            }
        }
    }

    /// Numbers that resemble each other: short ones are not taken for others, and of long ones the exact one comes
    /// first.
    fn numbers(&mut self) {
        for (least, most) in [(10, 28), (5_000, 6_998), (700_000, 899_998)] {
            let number = self.random.between(least, most) / 2 * 2;
            let texts = [number, number + 1].map(|number| format!("№ {number}"));
            self.texts.extend(texts.clone());
            let words = Writing::Wide.of(&number.to_string());
            let expected = texts.iter().take(if least > 10_000 { 2 } else { 1 }).cloned().collect();
            let script = Script::English;
            let first = Some(texts[0].clone());
            self.questions.push(Question { words, script, expected, first });
        }
    }

    fn events(&self) -> Vec<OutgoingEvent> {
        let event = |(at, text): (usize, &String)| {
            let id = format!("{}-{at}", self.agent);
            decision(&self.agent, &at.to_string(), vec![("", memory(&id, "", "fact", "", text, "2026-11-18"))])
        };
        self.texts.iter().enumerate().map(event).collect()
    }

    fn text_of(&self, id: &str) -> String {
        let id_of = |at: usize| ids::from_parts("memory", &[&format!("{}-{at}", self.agent)]).to_string();
        let at = (0..self.texts.len()).find(|at| id_of(*at) == id).unwrap();
        self.texts[at].clone()
    }

    async fn is_answered(&self, search: &SearchService, backend: &str) {
        for question in &self.questions {
            let query =
                SearchQuery { words: question.words.clone(), agent: Some(self.agent.clone()), ..Default::default() };
            let answer = ask(search, query).await;
            assert_eq!(answer.backend, backend);
            let found: Vec<String> = answer.hits.iter().map(|hit| self.text_of(&hit.id)).collect();
            let expected = self.answering(question);
            assert!(question.expected.iter().all(|text| expected.contains(text)), "{question:?}: {expected:?}");
            let same = found.iter().cloned().collect::<BTreeSet<_>>() == expected;
            assert!(same, "{backend}, {}: {question:?}, not {expected:?}, found {found:?}", self.agent);
            assert!(
                question.first.as_ref().is_none_or(|first| found.first() == Some(first)),
                "{question:?}, {found:?}"
            );
            for hit in &answer.hits {
                assert!(hit.snippet.contains("<mark>"), "{question:?}: {hit:?}");
            }
        }
    }

    /// Agents find their memories by the same words: a memory with one of them is found, and the exact one comes first.
    async fn is_remembered(&self, world: &World) {
        for question in &self.questions {
            let query = MemoriesQuery {
                words: question.words.clone(),
                agent: Some(self.agent.clone()),
                limit: 100,
                ..Default::default()
            };
            let found: Vec<MemoryRow> = world.now().await.search_memories(&query).await.unwrap();
            let found: Vec<&str> = found.iter().map(|row| row.content.as_str()).collect();
            if let Some(first) = &question.first {
                assert_eq!(found.first(), Some(&first.as_str()), "{question:?}");
            } else if let [only] = &question.expected[..]
                && forms::has_a_word(only, &question.words, question.script)
            {
                assert!(found.contains(&only.as_str()), "{question:?}: {found:?}");
            }
        }
    }
}

#[tokio::test]
async fn postgres_finds_words_however_they_are_written() {
    let world = World::start(&[]).await;
    let draws: Vec<Draw> = seeds().map(Draw::new).collect();
    for event in draws.iter().flat_map(Draw::events) {
        world.publish(&event).await;
    }
    world.caught_up().await;
    let search = search(&world, &SearchConfig::default());
    for draw in &draws {
        draw.is_answered(&search, "postgres").await;
        draw.is_remembered(&world).await;
    }
}

#[tokio::test]
async fn meilisearch_finds_words_however_they_are_written() {
    let Some(meili) = Meili::find().await else { return };
    let setup = Setup::start(meili, None).await;
    let draws: Vec<Draw> = seeds().map(Draw::new).collect();
    for draw in &draws {
        setup.publish(&draw.events()).await;
    }
    setup.caught_up().await;
    let search = setup.search();
    for draw in &draws {
        draw.is_answered(&search, "meilisearch").await;
    }
}
