//! Address cards made at random against `vobject` of PyPI.

use serde_json::{Value, json};

use super::card;
use crate::builtin::reference::Cases;

/// Texts are compared without regard to white space.
fn squeeze_spaces(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn plain(value: &Value) -> Value {
    match value {
        Value::String(text) => json!(squeeze_spaces(text)),
        Value::Array(list) => list.iter().map(plain).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), plain(value))).collect(),
        other => other.clone(),
    }
}

fn judge(case: &Value) -> Option<String> {
    let (cards, whole) = card::read(case["text"].as_str().unwrap());
    let shown = |card: &card::ContactCard| {
        json!({
            "name": card.name, "emails": card.emails, "phones": card.phones, "organization": card.organization,
            "teams": card.teams, "role": card.role, "note": card.note,
        })
    };
    let found = plain(&cards.iter().map(shown).collect());
    let expected = plain(&case["expected"]);
    let text = case["text"].as_str().unwrap();
    (found != expected || !whole)
        .then(|| format!("{text}\nseed {}; whole {whole}\nhere {found:#}\nthere {expected:#}", case["seed"]))
}

#[test]
fn cards_are_read_as_an_established_library_reads_them() {
    let Some(cases) = Cases::of("cards") else { return };
    cases.compare(judge);
}
