//! Detection of likely secrets in a text, so that they are taken out before the text is remembered or digested.
//!
//! Three things give a secret away: its shape ([`shapes`]: keys of known services, private keys, cards), what is said
//! before it ([`labels`]: "the password is …"), and that it stands elsewhere in the same text. What is found is a guess
//! on the safe side; what is said in other words stays.

mod labels;
mod shapes;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, ops::Range};

/// Secrets of one text that are kept; further ones are taken out and not kept.
const KEPT: usize = 32;
/// Times a text is looked through: what stands before a secret may come to light when another is gone.
const PASSES: usize = 4;
/// A secret of fewer bytes is not looked for in the rest of the text, where it may be a part of anything.
const TELLING: usize = 6;

/// A text without its secrets, and the secrets that stood in it.
#[derive(Clone, Debug, PartialEq)]
pub struct RedactedText {
    /// With `[secret <name>]` in the place of each.
    pub text: String,
    /// Name and what stood there.
    pub secrets: Vec<(String, String)>,
}

/// The position and the kind of a likely secret.
#[derive(Clone, Debug, PartialEq)]
struct SecretSpan {
    at: Range<usize>,
    kind: &'static str,
}

/// Takes what looks like a secret out of a text.
pub fn redact(text: &str) -> RedactedText {
    redact_further(RedactedText { text: text.to_owned(), secrets: Vec::new() })
}

/// As [`redact`], for a text that mentions secrets which were taken out before: further ones get other names.
pub fn redact_further(mut cleaned: RedactedText) -> RedactedText {
    for _ in 0..PASSES {
        let found = find_secrets(&cleaned.text);
        if found.is_empty() {
            break;
        }
        cleaned = replace_secrets(cleaned, &found);
    }
    cleaned
}

/// Returns the marker that replaces a secret of this name.
pub fn marker_for(name: &str) -> String {
    format!("[secret {name}]")
}

/// Returns the ranges of likely secrets in a text, in order.
pub fn find_ranges(text: &str) -> Vec<Range<usize>> {
    find_secrets(text).into_iter().map(|found| found.at).collect()
}

/// Everything that looks like a secret, in order, none within another.
fn find_secrets(text: &str) -> Vec<SecretSpan> {
    let mut all = shapes::find(text);
    all.extend(labels::find(text));
    // Of two at the same place the longer one is first.
    all.sort_by(|a, b| a.at.start.cmp(&b.at.start).then(b.at.end.cmp(&a.at.end)));
    let mut found: Vec<SecretSpan> = Vec::new();
    for next in all {
        match found.last_mut() {
            Some(last) if next.at.start < last.at.end => last.at.end = last.at.end.max(next.at.end),
            _ => found.push(next),
        }
    }
    found
}

fn replace_secrets(cleaned: RedactedText, found: &[SecretSpan]) -> RedactedText {
    let RedactedText { text, mut secrets } = cleaned;
    let mut names = SecretNames::from_text(&text, &secrets);
    let mut shown = String::with_capacity(text.len());
    let mut from = 0;
    for SecretSpan { at, kind } in found {
        let before = text.get(from..at.start);
        let secret = text.get(at.clone());
        shown.push_str(before.unwrap_or_default());
        let secret = secret.unwrap_or_default();
        let known = secrets.iter().find(|(_, other)| other == secret).map(|(name, _)| name.clone());
        match known {
            Some(name) => shown.push_str(&marker_for(&name)),
            None if secrets.len() >= KEPT => shown.push_str("[secret]"),
            None => {
                let name = names.next_name(kind);
                shown.push_str(&marker_for(&name));
                secrets.push((name, secret.to_owned()));
            }
        }
        from = at.end;
    }
    shown.push_str(text.get(from..).unwrap_or_default());
    // Said once with its label, it may be said again without.
    for (name, secret) in secrets.iter().filter(|(_, secret)| secret.len() >= TELLING) {
        if shown.contains(secret.as_str()) && !marker_for(name).contains(secret.as_str()) {
            shown = shown.replace(secret.as_str(), &marker_for(name));
        }
    }
    RedactedText { text: shown, secrets }
}

/// Gives each secret a name of its own: `password`, then `password 2`.
struct SecretNames(BTreeMap<&'static str, usize>, Vec<String>);

impl SecretNames {
    /// Names that the text mentions already are taken.
    fn from_text(text: &str, secrets: &[(String, String)]) -> Self {
        let mentioned = text.split("[secret ").skip(1).filter_map(|rest| rest.split_once(']'));
        let taken = mentioned.map(|(name, _)| name.to_owned()).chain(secrets.iter().map(|(name, _)| name.clone()));
        Self(BTreeMap::new(), taken.collect())
    }

    fn next_name(&mut self, kind: &'static str) -> String {
        let count = self.0.entry(kind).or_insert(0);
        loop {
            *count += 1;
            let name = if *count == 1 { kind.to_owned() } else { format!("{kind} {count}") };
            if !self.1.contains(&name) {
                return name;
            }
        }
    }
}
