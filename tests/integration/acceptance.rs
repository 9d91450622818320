//! Every requirement names existing tests that hold it.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The names of all tests below a folder.
fn collect(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("node_modules") {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.extend(tests_in(&fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The names of the tests in a file: functions behind an attribute that says so, whatever else is said of them in between.
fn tests_in(text: &str) -> Vec<String> {
    let (mut found, mut announced) = (Vec::new(), false);
    for line in text.lines().map(str::trim) {
        announced |= matches!(line, "#[test]" | "#[tokio::test]");
        let function = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
        if let Some((name, _)) = function.and_then(|function| function.split_once('(')) {
            found.extend(announced.then(|| name.to_owned()));
            announced = false;
        }
    }
    found
}

/// The names of all tests of the project.
fn all_tests() -> BTreeSet<String> {
    let mut tests = BTreeSet::new();
    ["services", "crates", "clients/cli", "tests", "proto"]
        .into_iter()
        .for_each(|folder| collect(&root().join(folder), &mut tests));
    tests
}

/// The rows of the table of each section of a page, below the table's head.
fn tables(page: &str) -> Vec<Vec<&str>> {
    let rows = |section: &str| section.lines().filter(|line| line.starts_with("| ")).skip(1).count();
    assert!(page.split("\n## ").skip(1).all(|section| rows(section) > 1), "a section without a table");
    page.split("\n## ")
        .skip(1)
        .map(|section| section.lines().filter(|line| line.starts_with("| ")).skip(1).collect())
        .collect()
}

/// The tests that a cell names.
fn named(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_test_that_is_named_is_there() {
    let page = fs::read_to_string(root().join("tests/acceptance.md")).unwrap();
    let tests = all_tests();
    let tables = tables(&page);
    assert!(tables.len() > 5, "{}", tables.len());
    for row in tables.into_iter().flatten() {
        let named = named(row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap());
        assert!(!named.is_empty(), "nothing holds: {row}");
        let missing: Vec<_> = named.into_iter().filter(|name| !tests.contains(*name)).collect();
        assert!(missing.is_empty(), "{row}: {missing:#?}");
    }
}

/// Returns the mistake in a row of `tests/statements.md`, if any.
fn mistake(row: &str, tests: &BTreeSet<String>) -> Option<String> {
    let cells: Vec<&str> = row.trim().trim_matches('|').split('|').map(str::trim).collect();
    let [statement, held, deviates] = cells.as_slice() else { return Some(format!("{row}: not three columns")) };
    if statement.is_empty() || !held.replace(", ", "").split('`').step_by(2).all(str::is_empty) {
        return Some(format!("{row}: a statement and the names of tests are wanted"));
    }
    let named = named(held);
    if named.is_empty() && deviates.is_empty() {
        return Some(format!("{row}: neither a test nor the reason why there is none"));
    }
    let missing: Vec<_> = named.into_iter().filter(|name| !tests.contains(*name)).collect();
    (!missing.is_empty()).then(|| format!("{row}: there are no tests {missing:?}"))
}

#[test]
fn every_statement_names_tests_that_are_there_or_says_why_none_is() {
    let page = fs::read_to_string(root().join("tests/statements.md")).unwrap();
    let tests = all_tests();
    let tables = tables(&page);
    assert_eq!(tables.len(), 5);
    let rows: Vec<&str> = tables.into_iter().flatten().collect();
    assert!(rows.len() >= 120, "{}", rows.len());
    assert_eq!(rows.iter().collect::<BTreeSet<_>>().len(), rows.len(), "a row stands there twice");
    let mistakes: Vec<String> = rows.into_iter().filter_map(|row| mistake(row, &tests)).collect();
    assert!(mistakes.is_empty(), "{mistakes:#?}");
}

#[test]
fn a_wrong_row_of_a_statement_is_found() {
    let tests = BTreeSet::from(["one".to_owned(), "two".to_owned()]);
    for row in ["| a | `one` | |", "| a | `one`, `two` | but |", "| a | | because |"] {
        assert_eq!(mistake(row, &tests), None);
    }
    for row in
        ["| a | | |", "| a | `three` | |", "| a | one | |", "| a | `one` |", "| | `one` | |", "| a | `one`, `x` | y |"]
    {
        assert!(mistake(row, &tests).is_some(), "{row}");
    }
}

#[test]
fn tests_are_told_from_what_helps_them() {
    let text = "fn helper() {\n}\n#[test]\n#[ignore]\nfn one() {}\nfn other(\n#[tokio::test]\nasync fn two() {\n";
    assert_eq!(tests_in(text), ["one", "two"]);
}
