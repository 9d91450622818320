//! The candidates for changes in a file: each place, and its replacement.

use std::ops::Range;

use serde::{Serialize, Serializer};
use syn::File;

use crate::{Outcome, logic, source::Source, texts};

/// The subject of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// Code that decides.
    Logic,
    /// Texts that models read.
    Prompt,
}

/// The form of a switch around a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Expression,
    /// With its semicolon; it is left out.
    Statement,
    /// Between the last argument of a macro and its end: a name that its format mentions, with another value.
    Argument,
}

/// A place that a switch is put at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    pub range: Range<usize>,
    pub form: Form,
    /// The code at the place with the mutant on.
    pub mutated: String,
    /// True if the mutated value differs whenever it is evaluated; else the mutated code reports it.
    pub is_always_other: bool,
    /// Of an argument, its name.
    pub name: String,
}

/// A change that can be made.
#[derive(Clone, Debug, Serialize)]
pub struct Candidate {
    /// File, function, kind and the how-manieth of its kind there: the same as long as these are.
    pub identity: String,
    pub about: About,
    pub kind: &'static str,
    pub file: String,
    pub line: usize,
    #[serde(serialize_with = "shortened")]
    pub original: String,
    #[serde(serialize_with = "shortened")]
    pub mutated: String,
    /// Of a text, the piece of it that models are no longer shown.
    #[serde(skip)]
    pub piece: String,
    /// The range of the original in its file.
    #[serde(skip)]
    pub range: Range<usize>,
    /// Each with its file: a text may be used in several places.
    #[serde(skip)]
    pub sites: Vec<(String, Site)>,
}

/// Characters of a place that are told of.
const SHOWN: usize = 160;

fn shortened<S: Serializer>(text: &str, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(&short(text))
}

/// A text as one line that is not too long.
pub fn short(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// Everything that can be changed in these files, in their order.
///
/// # Errors
/// Returns an error if a file is not valid Rust.
pub fn all(sources: &[Source]) -> Outcome<Vec<Candidate>> {
    let parsed = |source| Ok((source, parse(source)?));
    let files: Vec<(&Source, File)> = sources.iter().map(parsed).collect::<Outcome<_>>()?;
    let mut all: Vec<Candidate> = files.iter().flat_map(|(source, file)| logic::found(source, file)).collect();
    all.extend(texts::found(&files));
    all.retain(|candidate| !candidate.sites.is_empty());
    all.sort_by(|one, other| {
        (&one.file, one.range.start, &one.identity).cmp(&(&other.file, other.range.start, &other.identity))
    });
    Ok(all)
}

fn parse(source: &Source) -> Outcome<File> {
    Ok(syn::parse_file(&source.text).map_err(|error| format!("{}: {error}", source.path))?)
}
