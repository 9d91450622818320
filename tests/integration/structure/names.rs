//! Keeps names in the field's words: functions, types and files are named by verbs and nouns, not by participles or pronouns, and
//! a type's name says what it is without its module.

use std::{collections::BTreeMap, path::Path};

use super::{code, is_generated, is_test, product_files};

/// Participles that do not end in "ed", and adverbs that say nothing of what they name.
const PARTICIPLES: &[&str] = &[
    "again",
    "ahead",
    "apart",
    "asked",
    "begun",
    "beside",
    "borne",
    "bought",
    "bound",
    "broken",
    "brought",
    "built",
    "caught",
    "chosen",
    "done",
    "driven",
    "due",
    "found",
    "forgotten",
    "frozen",
    "given",
    "gone",
    "heard",
    "held",
    "hidden",
    "kept",
    "known",
    "left",
    "lost",
    "made",
    "meant",
    "met",
    "paid",
    "put",
    "said",
    "seen",
    "sent",
    "shown",
    "sold",
    "spent",
    "spoken",
    "stuck",
    "taken",
    "thought",
    "together",
    "told",
    "understood",
    "wanted",
    "won",
    "written",
    "young",
];
/// Participles that are terms of the field, and words that merely end in "ed".
const TERMS: &[&str] = &[
    "aborted",
    "allowed",
    "archived",
    "authenticated",
    "authorized",
    "bounded",
    "boxed",
    "buffered",
    "cached",
    "canceled",
    "closed",
    "committed",
    "completed",
    "connected",
    "created",
    "decoded",
    "delayed",
    "deleted",
    "denied",
    "disabled",
    "embed",
    "enabled",
    "encoded",
    "ended",
    "exceed",
    "expired",
    "failed",
    "feed",
    "finished",
    "indexed",
    "limited",
    "named",
    "need",
    "nested",
    "ordered",
    "paused",
    "proceed",
    "required",
    "resolved",
    "resumed",
    "scheduled",
    "sealed",
    "seed",
    "shared",
    "signed",
    "sorted",
    "speed",
    "started",
    "stopped",
    "succeed",
    "tagged",
    "trusted",
    "typed",
    "unbounded",
    "unordered",
    "unsorted",
    "untrusted",
    "untyped",
    "updated",
];
const PRONOUNS: &[&str] = &[
    "another",
    "anybody",
    "anyone",
    "anything",
    "everybody",
    "everyone",
    "everything",
    "it",
    "its",
    "mine",
    "nobody",
    "nothing",
    "others",
    "ours",
    "somebody",
    "someone",
    "something",
    "theirs",
    "them",
    "they",
    "things",
    "what",
    "whatever",
    "which",
    "whichever",
    "who",
    "whoever",
    "whom",
    "whose",
];
/// Types whose name every trait or module has, such as those of std's traits.
const USUAL: &[&str] = &[
    "Args",
    "Arguments",
    "Config",
    "Error",
    "Future",
    "Item",
    "Output",
    "Request",
    "Response",
    "Result",
    "Service",
    "Stream",
];
/// Most names of 1,000 that may be participles.
const PARTICIPLES_OF_1000: usize = 5;
/// Most names that more than three types have.
const REPEATED: usize = 20;
/// Most types and functions of 100 that one word names.
const ONE_WORD_TYPES: usize = 45;
const ONE_WORD_FUNCTIONS: usize = 50;

/// The names that product code declares.
#[derive(Default)]
struct Names {
    functions: Vec<String>,
    types: Vec<String>,
    files: Vec<String>,
}

impl Names {
    fn of_products() -> Self {
        let mut names = Self::default();
        for path in product_files() {
            if !is_generated(&path) && !is_test(&path) {
                names.add_file(&path);
            }
        }
        names
    }

    fn add_file(&mut self, path: &Path) {
        self.files.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        for line in code(path).lines() {
            let words: Vec<&str> = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
            for pair in words.windows(2) {
                match pair {
                    ["fn", name] if !name.is_empty() => self.functions.push((*name).to_owned()),
                    ["struct" | "enum" | "trait" | "type", name] if name.starts_with(|it: char| it.is_uppercase()) => {
                        self.types.push((*name).to_owned());
                    }
                    _ => {}
                }
            }
        }
    }

    fn count(&self) -> usize {
        self.functions.len() + self.types.len()
    }

    /// Returns the names of one word, in small letters.
    fn of_one_word(&self) -> Vec<String> {
        let types = self.types.iter().filter(|name| is_one_word(name)).map(|name| name.to_lowercase());
        let others = self.functions.iter().chain(&self.files).filter(|name| is_one_word(name)).cloned();
        types.chain(others).collect()
    }
}

/// Returns true if a name has neither an underscore inside nor a capital behind its first letter.
fn is_one_word(name: &str) -> bool {
    !name.trim_matches('_').contains('_') && !name.chars().skip(1).any(char::is_uppercase)
}

fn is_participle(word: &str) -> bool {
    PARTICIPLES.contains(&word) || word.ends_with("ed") && word.len() > 4 && !TERMS.contains(&word)
}

#[test]
fn names_are_verbs_and_nouns() {
    let names = Names::of_products();
    let words = names.of_one_word();
    let pronouns: Vec<&String> = words.iter().filter(|word| PRONOUNS.contains(&word.as_str())).collect();
    assert!(pronouns.is_empty(), "pronouns: {pronouns:?}");
    let participles: Vec<&String> = words.iter().filter(|word| is_participle(word)).collect();
    assert!(participles.len() * 1_000 <= names.count() * PARTICIPLES_OF_1000, "participles: {participles:?}");
}

#[test]
fn a_type_is_known_by_its_name() {
    let names = Names::of_products();
    let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
    for name in names.types.iter().filter(|name| !USUAL.contains(&name.as_str())) {
        *uses.entry(name).or_default() += 1;
    }
    uses.retain(|_, uses| *uses > 3);
    assert!(uses.len() <= REPEATED, "{uses:?}");
    for (kind, all, most) in
        [("types", &names.types, ONE_WORD_TYPES), ("functions", &names.functions, ONE_WORD_FUNCTIONS)]
    {
        let short = all.iter().filter(|name| is_one_word(name)).count();
        assert!(short * 100 <= all.len() * most, "{short} of {} {kind} are named by one word", all.len());
    }
}

#[test]
fn participles_are_told_from_terms() {
    let found = ["asked", "given", "mended", "cached", "feed", "seed", "read", "run"].map(is_participle);
    assert_eq!(found, [true, true, true, false, false, false, false, false]);
    assert_eq!(["told", "given_up", "_told", "Told", "ToldOff"].map(is_one_word), [true, false, true, true, false]);
}
