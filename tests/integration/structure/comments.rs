//! Keeps doc comments in plain English: a noun phrase or a statement, never a relative clause that restates a name.

use std::fs;

use super::{is_generated, product_files, root, rust_files};

/// Words that a relative clause begins with.
const RELATIVE: &[&str] = &["What", "Whose", "Whether", "Who", "Whom"];
/// Most lines of doc comments that may begin with one, of 1,000.
const MOST_OF_1000: usize = 3;

/// Returns the text of a line of a doc comment.
fn doc(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim)
}

fn is_relative(doc: &str) -> bool {
    let first = doc.split(|letter: char| !letter.is_alphabetic()).next().unwrap_or_default();
    RELATIVE.contains(&first)
}

#[test]
fn doc_comments_are_no_relative_clauses() {
    let (mut docs, mut relative) = (0, Vec::new());
    let others = ["proto", "tests"].into_iter().flat_map(|folder| rust_files(&root().join(folder)));
    for path in product_files().into_iter().chain(others).filter(|path| !is_generated(path)) {
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            let Some(doc) = doc(line) else { continue };
            docs += 1;
            if is_relative(doc) {
                relative.push(format!("{}:{}: {doc}", path.display(), number + 1));
            }
        }
    }
    let shown = relative.join("\n");
    assert!(relative.len() * 1_000 <= docs * MOST_OF_1000, "{} of {docs} lines:\n{shown}", relative.len());
}

#[test]
fn a_relative_clause_is_told_from_a_statement() {
    let found = |line| doc(line).map(is_relative);
    assert_eq!(found("    /// Whether it is the last."), Some(true));
    assert_eq!(found("//! What agents do."), Some(true));
    assert_eq!(found("/// Whatever happens, the outcome is a completion."), Some(false));
    assert_eq!(found("/// Returns the number of calls."), Some(false));
    assert_eq!(found("// What a plain comment says."), None);
}
