//! Finds the metrics and labels that a Prometheus query names.

use std::collections::BTreeSet;

/// The names in PromQL that are not metrics.
const KEYWORDS: [&str; 9] = ["and", "or", "unless", "by", "without", "on", "ignoring", "bool", "offset"];

/// A part of a query.
#[derive(Debug, PartialEq)]
enum Token {
    Name(String),
    Text,
    Sign(char),
}

/// The names in a query.
#[derive(Debug, Default, PartialEq)]
pub struct Named {
    /// Metrics, each with the labels it is chosen by.
    pub metrics: Vec<(String, BTreeSet<String>)>,
    /// The labels by which results are grouped.
    pub grouped: BTreeSet<String>,
}

pub fn named(query: &str) -> Named {
    let tokens = tokens(query);
    let mut named = Named::default();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        let Token::Name(name) = token else { continue };
        let next = tokens.get(at);
        if matches!(name.as_str(), "by" | "without" | "on" | "ignoring") && next == Some(&Token::Sign('(')) {
            named.grouped.extend(names_up_to(&tokens, &mut at, ')'));
        } else if !is_applied(next) && !KEYWORDS.contains(&name.as_str()) {
            let chosen = next == Some(&Token::Sign('{'));
            let labels = if chosen { names_up_to(&tokens, &mut at, '}').collect() } else { BTreeSet::new() };
            named.metrics.push((name.clone(), labels));
        }
    }
    named
}

/// Returns true if the name before `next` is a function or an aggregation.
fn is_applied(next: Option<&Token>) -> bool {
    match next {
        Some(Token::Sign(sign)) => *sign == '(',
        Some(Token::Name(name)) => name == "by" || name == "without",
        Some(Token::Text) | None => false,
    }
}

/// The names from here to a closing sign.
fn names_up_to<'t>(tokens: &'t [Token], at: &mut usize, end: char) -> impl Iterator<Item = String> + use<'t> {
    let rest = &tokens[*at..];
    let length = rest.iter().position(|token| *token == Token::Sign(end)).expect("a closing sign");
    *at += length;
    rest[..length].iter().filter_map(|token| match token {
        Token::Name(name) => Some(name.clone()),
        Token::Text | Token::Sign(_) => None,
    })
}

/// Without numbers, durations and ranges.
fn tokens(query: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = query;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => {
                tokens.push(Token::Text);
                rest[1..].find('"').expect("the end of a text") + 2
            }
            '[' => rest.find(']').expect("the end of a range") + 1,
            '0'..='9' => rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(rest.len()),
            c if c.is_ascii_alphabetic() || c == '_' => {
                let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                tokens.push(Token::Name(rest[..length].to_owned()));
                length
            }
            c => {
                if !c.is_whitespace() {
                    tokens.push(Token::Sign(c));
                }
                c.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    tokens
}

#[test]
fn names_are_told_from_functions_ranges_and_texts() {
    let query = r#"max by (job) (increase(a_total{x="b{c}", y=~"5.."}[5m])) / on (z) histogram_quantile(0.95, b_bucket) > 1e3 and c"#;
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let metrics =
        vec![("a_total".to_owned(), set(&["x", "y"])), ("b_bucket".to_owned(), set(&[])), ("c".to_owned(), set(&[]))];
    assert_eq!(named(query), Named { metrics, grouped: set(&["job", "z"]) });
}
