//! What keeps the code to the contract: types are named by it alone.

use std::path::Path;

use kairo_proto::Body;
use regex::Regex;

use super::{is_generated, root, rust_files};

/// What tests call a type that this version does not know, after `kairo.`.
const UNKNOWN: &[&str] =
    &["agent.defined.v9", "agent.dreamt.v1", "nothing.known.v1", "tool.result.v9", "tool.result.v12", "x.v9"];

/// The types that a file writes out, in code and in statements of SQL; its comments may.
fn written_types(text: &str) -> Vec<String> {
    let quoted = Regex::new(r#"["'](kairo\.[a-z_.]+\.v[0-9]+)\\?["']"#).unwrap();
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let found = code.flat_map(|line| quoted.captures_iter(line).map(|found| found[1].to_owned()).collect::<Vec<_>>());
    found.filter(|name| !UNKNOWN.iter().any(|unknown| name.strip_prefix("kairo.") == Some(*unknown))).collect()
}

fn files() -> impl Iterator<Item = (String, String)> {
    let shown = |path: &Path| path.strip_prefix(root()).unwrap().display().to_string();
    let files = ["services", "tests"].into_iter().flat_map(|folder| rust_files(&root().join(folder)));
    files.filter(|path| !is_generated(path)).map(move |path| (shown(&path), std::fs::read_to_string(&path).unwrap()))
}

#[test]
fn types_are_named_by_the_contract() {
    let written = |(path, text): (String, String)| {
        written_types(&text).into_iter().map(move |name| format!("{path}: {name}")).collect::<Vec<_>>()
    };
    let found: Vec<String> = files().flat_map(written).collect();
    assert!(found.is_empty(), "to be written as v1::<message>::TYPE: {found:#?}");
    for name in UNKNOWN {
        assert!(!Body::TYPES.contains(&format!("kairo.{name}").as_str()), "{name} is known");
    }
    // That it would be found if it were there.
    for name in Body::TYPES {
        for text in
            [format!("of(\"{name}\")"), format!("type IN ('{name}')"), format!(r#"line.contains("\"{name}\"")"#)]
        {
            assert_eq!(written_types(&text), [*name], "{text}");
        }
    }
}
