//! The book that peers keep of each call: a line when it comes, one for each effect, and one when it is answered. It is
//! a file, as a peer over stdio is a process of its own.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::OpenOptions,
    io::Write,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Errand;

/// The event that a line records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    Call,
    Effect,
    /// An answer that can be read, as it leaves.
    Answer,
}

/// A line of the book.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    pub what: What,
    #[serde(flatten)]
    pub errand: Errand,
    pub at: Timestamp,
    /// Of a call: when it will be answered, if it will.
    pub due: Option<Timestamp>,
}

#[derive(Clone, Debug)]
pub struct Book(PathBuf);

impl Book {
    pub fn new(file: PathBuf) -> Self {
        Self(file)
    }

    pub fn file(&self) -> &Path {
        &self.0
    }

    /// Writes a line; a file that cannot be written ends the run with effects that nobody counted.
    pub fn write(&self, what: What, errand: &Errand, due: Option<Timestamp>) {
        let line = Line { what, errand: errand.clone(), at: Timestamp::now(), due };
        let text = serde_json::to_string(&line).unwrap_or_default() + "\n";
        let file = OpenOptions::new().create(true).append(true).open(&self.0);
        if let Err(error) = file.and_then(|mut file| file.write_all(text.as_bytes())) {
            eprintln!("chaos: {}: {error}", self.0.display());
        }
    }

    /// Every line so far.
    pub fn read(&self) -> Vec<Line> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Counts the calls for this effect.
    pub fn calls(&self, effect: &str) -> usize {
        let is_of = |line: &&Line| line.what == What::Call && line.errand.effect == effect;
        self.read().iter().filter(is_of).count()
    }

    /// Counts the occurrences of each effect: those with a key, once for each key, and those without.
    pub fn effects(&self) -> (BTreeMap<String, usize>, BTreeMap<String, usize>) {
        let (mut keys, mut unkeyed) = (BTreeMap::<String, BTreeSet<String>>::new(), BTreeMap::new());
        for Line { errand, .. } in self.read().into_iter().filter(|line| line.what == What::Effect) {
            match errand.is_keyed {
                true => _ = keys.entry(errand.effect).or_default().insert(errand.key),
                false => *unkeyed.entry(errand.effect).or_default() += 1,
            }
        }
        (keys.into_iter().map(|(effect, keys)| (effect, keys.len())).collect(), unkeyed)
    }
}
