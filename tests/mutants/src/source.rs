//! The sources of the mind, and places in them.

use std::{
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use crate::Outcome;

/// The crate that is mutated, from the root of the project.
pub const MIND: &str = "crates/mind/src";
/// Files that inspect decisions and make none.
const LOOKS: &[&str] = &["replay.rs", "replay/"];

/// A file of the mind.
#[derive(Clone, Debug)]
pub struct Source {
    /// From the root of the project.
    pub path: String,
    pub text: String,
}

/// Every file of the mind in which decisions are made, in the order of their names.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub fn all(root: &Path) -> Outcome<Vec<Source>> {
    let mut files = Vec::new();
    find(&root.join(MIND), &mut files)?;
    files.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Source { path: path.strip_prefix(root)?.display().to_string(), text })
    };
    files.into_iter().map(read).collect()
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> Outcome<()> {
    for entry in fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_test = name == "tests" || name == "tests.rs";
        if path.is_dir() && !is_test {
            find(&path, files)?;
        } else if name.ends_with(".rs") && !is_test && !is_looking(&path) {
            files.push(path);
        }
    }
    Ok(())
}

fn is_looking(path: &Path) -> bool {
    let path = path.to_string_lossy();
    LOOKS.iter().any(|name| path.contains(&format!("{MIND}/{name}")))
}

/// The line of a place, counted from 1.
pub fn line(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or(text).matches('\n').count() + 1
}

/// Returns the text in a range; empty if there is none.
pub fn at(text: &str, range: Range<usize>) -> &str {
    text.get(range).unwrap_or_default()
}
