//! `docs/seeds.md`: each sentence of the design is held by a test that exists.

use std::{collections::BTreeSet, fs, path::Path};

const PAGE: &str = "docs/seeds.md";
/// Sections whose sentences are all held by tests.
const SECTIONS: [&str; 6] = [
    "Key features",
    "Key methods",
    "Thought types",
    "Interactions",
    "Limitations, and how Kairo does without them",
    "Extension points",
];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The names of all functions that are tests.
fn tests_in(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            tests_in(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            let mut is_test = false;
            for line in fs::read_to_string(&entry).unwrap().lines().map(str::trim) {
                let function = line.strip_prefix("async fn ").or_else(|| line.strip_prefix("fn "));
                match function.and_then(|function| function.split('(').next()) {
                    Some(name) => {
                        if std::mem::take(&mut is_test) {
                            found.insert(name.to_owned());
                        }
                    }
                    None => is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test"),
                }
            }
        }
    }
}

#[test]
fn every_sentence_of_the_design_is_held_by_a_test_that_exists() {
    let mut tests = BTreeSet::new();
    for folder in ["services", "tests", "proto"] {
        tests_in(&root().join(folder), &mut tests);
    }
    assert!(tests.len() > 500, "{} tests", tests.len());
    let page = fs::read_to_string(root().join(PAGE)).unwrap();
    let (mut sections, mut unknown) = (Vec::new(), Vec::new());
    for section in page.split("\n## ").skip(1) {
        let (title, rest) = section.split_once('\n').unwrap();
        sections.push(title);
        let rows: Vec<&str> = rest.lines().filter(|line| line.starts_with('|')).skip(2).collect();
        assert!(rows.len() >= 5, "{title} has {} rows", rows.len());
        for row in rows {
            let held_by = row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap();
            let names: Vec<&str> = held_by.split(',').map(|name| name.trim().trim_matches('`')).collect();
            unknown
                .extend(names.into_iter().filter(|name| !tests.contains(*name)).map(|name| format!("{row}: {name}")));
        }
    }
    assert_eq!(sections, SECTIONS);
    assert!(unknown.is_empty(), "no such tests:\n{}", unknown.join("\n"));
}
