//! Fuzzing as an ordinary test: what reads what strangers write is given every file of a corpus, and a bounded number of
//! inputs that are made of them by cutting, joining and replacing.
//!
//! The inputs follow from the seed, so a test gives the same verdict each time. One that brings a target down is made as
//! small as it can be and written to the corpus, to be committed with what mends it.
//!
//! ```sh
//! KAIRO_FUZZ_INPUTS=1000000 KAIRO_FUZZ_SEED=7 cargo nextest run --workspace -E 'test(fuzz)'   # more of it
//! ```

#![expect(clippy::panic, clippy::expect_used, reason = "the helpers of tests are tests too")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    str::FromStr,
};

use proptest::{
    collection::vec,
    prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof},
    sample::{Index, select},
    test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner},
};

/// Inputs that are made of a corpus, unless `KAIRO_FUZZ_INPUTS` says otherwise.
const INPUTS: u32 = 2_000;
/// Changes that make one input, at most.
const EDITS: usize = 12;
/// Longest input in bytes.
const LONGEST: usize = 1 << 16;
/// Tokens that break readers of any format: limits of numbers, ends of texts, openings that are never closed.
const TOKENS: [&str; 23] = [
    "\0",
    "\n",
    "\r\n",
    " ",
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ":",
    ",",
    "0",
    "-1",
    "1e999",
    "18446744073709551616",
    "null",
    "\u{feff}",
    "\u{202e}",
    "é",
    "🦀",
];

/// Inputs to begin with, and where they are kept.
pub struct Corpus {
    folder: PathBuf,
    entries: Vec<Vec<u8>>,
    /// Of the inputs that are made, one in so many is used.
    one_in: u32,
}

impl Corpus {
    /// The one of this name, in `tests/fuzz/corpus`.
    pub fn named(name: &str) -> Self {
        Self::kept_in(folder(&format!("corpus/{name}")))
    }

    /// The same, and one of each message that must be readable for ever, from `tests/golden`, with this ending.
    pub fn golden(name: &str, ending: &str) -> Self {
        let Self { folder: kept, mut entries, .. } = Self::kept_in(folder(&format!("corpus/{name}")));
        entries.extend(contents(&folder("../golden"), ending));
        Self { folder: kept, entries, one_in: 1 }
    }

    fn kept_in(folder: PathBuf) -> Self {
        let entries = contents(&folder, "");
        Self { folder, entries, one_in: 1 }
    }

    /// For a target that takes its time: a fraction of the inputs that others get.
    pub fn one_in(self, inputs: u32) -> Self {
        Self { one_in: inputs.max(1), ..self }
    }

    /// Gives `target` every entry and many inputs like them; it panics where something is wrong.
    pub fn fuzz(&self, target: impl Fn(&[u8])) {
        assert!(!self.entries.is_empty(), "there is nothing in {}", self.folder.display());
        self.entries.iter().for_each(|entry| target(entry));
        let cases = setting("KAIRO_FUZZ_INPUTS", INPUTS) / self.one_in;
        let config = Config { cases, failure_persistence: None, ..Config::default() };
        let outcome = TestRunner::new_with_rng(config, rng()).run(&self.inputs(), |input| {
            target(&input);
            Ok(())
        });
        match outcome {
            Ok(()) => {}
            Err(TestError::Fail(reason, input)) => {
                panic!("{reason}; the input is {}", self.keep(&input).display())
            }
            Err(TestError::Abort(reason)) => panic!("{reason}"),
        }
    }

    /// For the same in texts; what is no UTF-8 is replaced.
    pub fn fuzz_text(&self, target: impl Fn(&str)) {
        self.fuzz(|input| target(&String::from_utf8_lossy(input)));
    }

    fn inputs(&self) -> BoxedStrategy<Vec<u8>> {
        let entry = select(self.entries.clone());
        (entry.clone(), vec(edit(entry), 1..=EDITS)).prop_map(|(entry, edits)| edits.iter().fold(entry, apply)).boxed()
    }

    fn keep(&self, input: &[u8]) -> PathBuf {
        let free = (0..).map(|number| self.folder.join(format!("found-{number}"))).find(|file| !file.exists());
        let file = free.expect("a name");
        fs::create_dir_all(&self.folder).expect("a folder");
        fs::write(&file, input).expect("written");
        file
    }
}

fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Of the files of a folder that end so, in the order of their names; none where there is no folder.
fn contents(folder: &Path, ending: &str) -> Vec<Vec<u8>> {
    let Ok(files) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("listed").path()).collect();
    files.retain(|file| file.to_string_lossy().ends_with(ending));
    files.sort();
    files.iter().map(|file| fs::read(file).expect("a file of the corpus")).collect()
}

/// One change of an input.
#[derive(Clone, Debug)]
enum Edit {
    Remove { from: Index, to: Index },
    Repeat { from: Index, to: Index, times: usize },
    Insert { at: Index, bytes: Vec<u8> },
    Replace { at: Index, byte: u8 },
}

fn edit(entry: impl Strategy<Value = Vec<u8>> + 'static) -> BoxedStrategy<Edit> {
    let index = any::<Index>;
    // A piece of another entry.
    let piece = (entry, index(), index()).prop_map(|(entry, from, to)| {
        let (from, to) = range(&entry, from, to);
        entry.get(from..to).unwrap_or_default().to_vec()
    });
    let token = select(TOKENS.to_vec()).prop_map(|token| token.as_bytes().to_vec());
    prop_oneof![
        (index(), index()).prop_map(|(from, to)| Edit::Remove { from, to }),
        (index(), index(), 2..300_usize).prop_map(|(from, to, times)| Edit::Repeat { from, to, times }),
        (index(), prop_oneof![token, piece, vec(any::<u8>(), 1..8)]).prop_map(|(at, bytes)| Edit::Insert { at, bytes }),
        (index(), prop_oneof![any::<u8>(), Just(0), Just(0xff)]).prop_map(|(at, byte)| Edit::Replace { at, byte }),
    ]
    .boxed()
}

fn apply(mut input: Vec<u8>, edit: &Edit) -> Vec<u8> {
    match edit {
        Edit::Remove { from, to } => {
            let (from, to) = range(&input, *from, *to);
            input.drain(from..to);
        }
        Edit::Repeat { from, to, times } => {
            let (from, to) = range(&input, *from, *to);
            // Long pieces seldom, or everything would be at its limit.
            let piece = input.get(from..to).unwrap_or_default();
            let times = (*times).min(1 + LONGEST / 16 / piece.len().max(1));
            let repeated = piece.repeat(times);
            input.splice(from..to, repeated);
        }
        Edit::Insert { at, bytes } => {
            let at = at.index(input.len() + 1);
            input.splice(at..at, bytes.iter().copied());
        }
        Edit::Replace { at, byte } => {
            if !input.is_empty() {
                let at = at.index(input.len());
                input.splice(at..=at, [*byte]);
            }
        }
    }
    input.truncate(LONGEST);
    input
}

fn range(input: &[u8], from: Index, to: Index) -> (usize, usize) {
    let [from, to] = [from, to].map(|index| index.index(input.len() + 1));
    (from.min(to), from.max(to))
}

fn rng() -> TestRng {
    let seed: u64 = setting("KAIRO_FUZZ_SEED", 1);
    let mut bytes = [0; 32];
    for (place, byte) in bytes.iter_mut().zip(seed.to_le_bytes()) {
        *place = byte;
    }
    TestRng::from_seed(RngAlgorithm::ChaCha, &bytes)
}

fn setting<T: FromStr>(name: &str, default: T) -> T {
    match env::var(name) {
        Ok(value) => value.parse().unwrap_or_else(|_| panic!("{name} is no number")),
        Err(_) => default,
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn what_is_wrong_is_found_made_small_and_kept() {
        let folder = env::temp_dir().join(format!("kairo-fuzz-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("seed"), "a (b) c").unwrap();
        let found = catch_unwind(|| {
            Corpus::kept_in(folder.clone()).fuzz_text(|text| assert!(text.matches('(').count() < 3, "three"));
        });
        let kept = fs::read_to_string(folder.join("found-0"));
        fs::remove_dir_all(&folder).unwrap();
        assert!(found.is_err());
        let kept = kept.unwrap();
        assert_eq!(kept.matches('(').count(), 3, "{kept:?}");
    }
}
