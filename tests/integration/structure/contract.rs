//! Keeps the code to the contract: only the contract names types, and matches on its enums have no wildcard.

use std::{path::Path, sync::LazyLock};

use kairo_proto::Body;
use regex::{Captures, Regex};

use super::{is_generated, product_files, root, rust_files};

/// Names that tests use, after `kairo.`, for a type that this version does not know.
const UNKNOWN: &[&str] =
    &["agent.defined.v9", "agent.dreamt.v1", "nothing.known.v1", "tool.result.v9", "tool.result.v12", "x.v9"];

/// Formats of documents and reports, after `kairo.`: these are no types of messages.
const DOCUMENTS: &[&str] =
    &["conversation.v1", "conversation.v2", "replay.v1", "diff.v1", "whatif.v1", "incident.v1", "verify.v1"];

/// A type as it is written out, in code or in a statement of SQL.
static TYPE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#"["'](kairo\.[a-z_.]+\.v[0-9]+)\\?["']"#).unwrap());

/// Enums that are matched variant by variant: a new variant is to be decided on wherever it matters.
const CLOSED: &str = r"\b(?:Body|Event|About|Decided|Type|about::\w+)::\w|\bAction::(?:Say|ToolCall)\b";

/// Groups that are imported by their names alone.
static GROUPS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"use kairo_proto::[^;]*?\babout::(\{[^}]*\}|\w+)").unwrap());

/// Whatever the value is, alone or within a result or an option.
static WILDCARD: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^&?(?:(?:Some|Ok)\(\s*)?(?:ref )?(?:_|[a-z]\w*)\s*\)?$").unwrap());

/// Matches text that is not code: comments, strings and characters.
static TEXT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r####"//[^\n]*|r#"(?s:.*?)"#|r"[^"]*"|"(?s:\\.|[^"\\])*"|'(?:\\[^']*|[^\\'])'"####).unwrap()
});

/// Statements that go by a partial index say its condition to the letter.
const SAY_CONDITIONS: &[&str] = &["crates/read-model/src/queries/thoughts.rs", "tests/integration/queries/cases.rs"];

/// The types that a file writes out; its comments may.
fn written_types(text: &str) -> Vec<&str> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let found = code.flat_map(|line| TYPE.captures_iter(line)).map(|found| found.get(1).unwrap().as_str());
    found
        .filter(|name| !UNKNOWN.iter().chain(DOCUMENTS).any(|unknown| name.strip_prefix("kairo.") == Some(*unknown)))
        .collect()
}

/// Every file and what it says.
fn files() -> impl Iterator<Item = (String, String)> {
    let shown = |path: &Path| path.strip_prefix(root()).unwrap().display().to_string();
    let files = product_files().into_iter().chain(rust_files(&root().join("tests")));
    files.filter(|path| !is_generated(path)).map(move |path| (shown(&path), std::fs::read_to_string(&path).unwrap()))
}

#[test]
fn types_are_named_by_the_contract() {
    let mut found = Vec::new();
    for (path, text) in files().filter(|(path, _)| !SAY_CONDITIONS.contains(&path.as_str())) {
        found.extend(written_types(&text).into_iter().map(|name| format!("{path}: {name}")));
    }
    assert!(found.is_empty(), "to be written as v1::<message>::TYPE: {found:#?}");
    for name in UNKNOWN.iter().chain(DOCUMENTS) {
        assert!(!Body::TYPES.contains(&format!("kairo.{name}").as_str()), "{name} is known");
    }
    // That it would be found if it were there.
    for name in Body::TYPES {
        let escaped = format!(r#"line.contains("\"{name}\"")"#);
        for text in [format!("of(\"{name}\")"), format!("type IN ('{name}')"), escaped] {
            assert_eq!(written_types(&text), [*name], "{text}");
        }
    }
}

/// Code without comments, and without what strings and characters say.
fn bare(text: &str) -> String {
    let instead = |found: &Captures<'_>| if found[0].starts_with("//") { "" } else { "0" };
    TEXT.replace_all(text, instead).into_owned()
}

/// Returns the position of `what` outside of brackets; none if an unmatched closing bracket comes first, or the end.
fn outside(code: &str, what: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate() {
        if depth == 0 && code.as_bytes()[at..].starts_with(what.as_bytes()) {
            return Some(at);
        }
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

/// The patterns of the arms that stand here, up to the end of their match.
fn patterns(mut arms: &str) -> Vec<&str> {
    let mut found = Vec::new();
    while let Some(arrow) = outside(arms, "=>") {
        found.push(arms[..arrow].trim());
        let arm = arms[arrow + 2..].trim_start();
        let rest = match arm.strip_prefix('{') {
            Some(block) => outside(block, "}").map(|end| block[end + 1..].trim_start_matches(',')),
            None => outside(arm, ",").map(|end| &arm[end + 1..]),
        };
        let Some(rest) = rest else { break };
        arms = rest;
    }
    found
}

/// Returns true if a pattern matches any value.
fn is_wildcard(pattern: &str) -> bool {
    let ways = pattern.split('|').map(str::trim);
    ways.filter(|way| !matches!(*way, "true" | "false")).any(|way| WILDCARD.is_match(way))
}

/// The matches on a closed enum that have an arm for all the rest: what they match.
fn wildcards(text: &str) -> Vec<String> {
    let code = bare(text);
    let groups = GROUPS.captures_iter(&code).flat_map(|found| {
        let names = found.get(1).unwrap().as_str().split(|char: char| !char.is_alphanumeric());
        names.filter(|name| name.starts_with(char::is_uppercase)).map(|name| format!(r"\b{name}::\w"))
    });
    let closed = Regex::new(&std::iter::once(CLOSED.to_owned()).chain(groups).collect::<Vec<_>>().join("|")).unwrap();
    let found = code.match_indices("match ").filter_map(|(start, keyword)| {
        let head = &code[start + keyword.len()..];
        let open = outside(head, "{")?;
        let patterns = patterns(&head[open + 1..]);
        let is_closed = || patterns.iter().any(|pattern| closed.is_match(pattern));
        (patterns.iter().any(|pattern| is_wildcard(pattern)) && is_closed()).then(|| head[..open].trim().to_owned())
    });
    found.collect()
}

#[test]
fn matches_on_events_and_actions_name_what_they_ignore() {
    let mut found = Vec::new();
    // Parsers of other languages have events of their own.
    for (path, text) in files().filter(|(_, text)| !text.contains("pulldown_cmark")) {
        found.extend(wildcards(&text).into_iter().map(|what| format!("{path}: match {what}")));
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_wildcard_is_found_wherever_it_stands() {
    let found = |arms: &str| wildcards(&format!("fn f() {{ match it {{ {arms} }} }}"));
    for arms in [
        "Body::A(a) => a, _ => 1",
        "Body::A(a) if a > 0 => { a } other => other.len(),",
        "Some(Event::A) => g(|a, b| match a { 1 => b, _ => 2 }), Some(_) | None => '}',",
        "Ok(Body::A(_)) => \"=> {\", Ok(body) => \"\", Err(error) => error,",
        "// Body::B => 1,\n_ => 0, Decided::Chain(about::Chain::Started(_)) => 1",
        "Some(Action::Say(say)) => { say } _ => {}",
    ] {
        assert_eq!(found(arms), ["it"], "{arms}");
    }
    for arms in [
        "Body::A(_) => match x { 1 => 2, _ => 3 }, Body::B { .. } | Body::C => 4",
        "Some(Event::A) => 1, None => 2, Err(error) => 3",
        "About::Tool(_) | About::User(_) => \"Body::A => 1, _ => 2\"",
        "Other::A => Body::A, _ => Body::B",
        "Body::A => true, // _ => 3\n",
    ] {
        assert!(found(arms).is_empty(), "{arms}");
    }
    let grouped = "match tool { Tool::Invoke(_) => 1, _ => 2 }";
    assert_eq!(wildcards(&format!("use kairo_proto::{{Body, about::{{Process, Tool}}, v1}}; {grouped}")), ["tool"]);
    assert_eq!(wildcards(&format!("use kairo_proto::about::Tool; {grouped}")), ["tool"]);
    assert!(wildcards(grouped).is_empty());
}
