//! What was asked for is held by tests that there are.

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

#[test]
fn every_test_that_is_named_is_there() {
    let page = fs::read_to_string(root().join("docs/acceptance.md")).unwrap();
    let mut tests = BTreeSet::new();
    ["services", "tests", "proto"].into_iter().for_each(|folder| collect(&root().join(folder), &mut tests));
    let sections: Vec<&str> = page.split("\n## ").skip(1).collect();
    assert!(sections.len() > 5, "{sections:?}");
    for section in sections {
        // Below the table's head.
        let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
        assert!(rows.len() > 1, "{section}");
        for row in rows {
            let held = row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap();
            let named: Vec<&str> = held.split('`').skip(1).step_by(2).collect();
            assert!(!named.is_empty(), "nothing holds: {row}");
            let missing: Vec<_> = named.into_iter().filter(|name| !tests.contains(*name)).collect();
            assert!(missing.is_empty(), "{row}: {missing:#?}");
        }
    }
}

#[test]
fn tests_are_told_from_what_helps_them() {
    let text = "fn helper() {\n}\n#[test]\n#[ignore]\nfn one() {}\nfn other(\n#[tokio::test]\nasync fn two() {\n";
    assert_eq!(tests_in(text), ["one", "two"]);
}
