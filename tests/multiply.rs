//! Making other messages of a recorded one: of the same length, with other agents, users and ids. Pure.

use std::collections::BTreeMap;

use async_nats::HeaderMap;
use bytes::{Bytes, BytesMut};
use kairo_core::record::RawMessage;

/// Beginnings of the names of recorded agents and users; digits replace the zeros.
pub const AGENT: &str = "agent-0000000";
pub const USER: &str = "human-0000000";
/// Number of those digits.
const DIGITS: usize = 7;
/// A UUID as text: hexadecimal digits in groups.
const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
const UUID: usize = 36;

/// A recorded message, with the places where copies differ.
pub struct Pattern {
    subject: Patched,
    headers: Vec<(String, Patched)>,
    payload: Patched,
    /// The type of the message, for counting.
    pub type_name: String,
    /// True if the message is about an agent or a user, so that copies for others can be made.
    pub is_owned: bool,
}

/// Bytes with placeholders to be filled in.
struct Patched {
    bytes: Bytes,
    placeholders: Vec<Placeholder>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placeholder {
    /// The digits of a name.
    Name(usize),
    /// The first group of an id, and what it was.
    Id(usize, u32),
}

/// The name that copy `number` has for [`AGENT`] or [`USER`].
pub fn named(name: &str, number: u32) -> String {
    format!("{}{number:0DIGITS$}", name.trim_end_matches('0'))
}

impl Pattern {
    pub fn of(raw: &RawMessage) -> Self {
        let headers = raw.headers.iter().flat_map(|(name, values)| {
            let name = disarmed(name.as_ref());
            values.iter().map(move |value| (name.clone(), Patched::of(value.as_str().as_bytes().to_vec().into())))
        });
        Self {
            subject: Patched::of(raw.subject.clone().into_bytes().into()),
            headers: headers.collect(),
            payload: Patched::of(raw.payload.clone()),
            type_name: raw.header("ce-type").unwrap_or_default().to_owned(),
            is_owned: raw.subject.contains(AGENT) || raw.subject.contains(USER),
        }
    }

    /// Subject, headers and payload of another copy; copy 0 is what was recorded.
    pub fn copy(&self, number: u32) -> (String, HeaderMap, Bytes) {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            headers.append(name.as_str(), value.text(number).as_str());
        }
        (self.subject.text(number), headers, self.payload.with(number))
    }
}

/// Headers that nats-server acts on are kept in length and do nothing.
fn disarmed(name: &str) -> String {
    name.replacen("Nats-", "Bare-", 1)
}

impl Patched {
    fn of(bytes: Bytes) -> Self {
        let mut placeholders = Vec::new();
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let name = [AGENT, USER].into_iter().find(|name| rest.starts_with(name.as_bytes()));
            if let Some(name) = name {
                placeholders.push(Placeholder::Name(at + name.len() - DIGITS));
                at += name.len();
            } else if let Some(first) = id(rest) {
                placeholders.push(Placeholder::Id(at, first));
                at += UUID;
            } else {
                at += 1;
            }
        }
        Self { bytes, placeholders }
    }

    fn with(&self, number: u32) -> Bytes {
        if self.placeholders.is_empty() || number == 0 {
            return self.bytes.clone();
        }
        let mut bytes = BytesMut::from(self.bytes.as_ref());
        for placeholder in &self.placeholders {
            let (at, text) = match placeholder {
                Placeholder::Name(at) => (*at, format!("{number:0DIGITS$}")),
                // An odd factor: no two copies have the same.
                Placeholder::Id(at, first) => (*at, format!("{:08x}", first ^ number.wrapping_mul(0x9e37_79b1))),
            };
            if let Some(there) = bytes.get_mut(at..at + text.len()) {
                there.copy_from_slice(text.as_bytes());
            }
        }
        bytes.freeze()
    }

    fn text(&self, number: u32) -> String {
        String::from_utf8_lossy(&self.with(number)).into_owned()
    }
}

/// The first group of the id that the bytes begin with, if they do.
fn id(bytes: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(bytes.get(..UUID)?).ok()?;
    let groups: Vec<&str> = text.split('-').collect();
    let fits = groups.len() == GROUPS.len()
        && groups.iter().zip(GROUPS).all(|(group, length)| {
            group.len() == length && group.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        });
    fits.then(|| u32::from_str_radix(groups.first()?, 16).ok()).flatten()
}

/// Counts the messages about agents and users by type, the most frequent first.
pub fn mix(patterns: &[Pattern]) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    patterns.iter().filter(|pattern| pattern.is_owned).for_each(|it| *counts.entry(&it.type_name).or_default() += 1);
    let mut mix: Vec<(String, usize)> = counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
    mix.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), name.clone()));
    mix
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(text: &str, number: u32) -> String {
        Patched::of(text.to_owned().into_bytes().into()).text(number)
    }

    #[test]
    fn names_and_ids_change_and_the_length_does_not() {
        let text = "kairo.agent.agent-0000000-07.decision human-0000000-01 0c4d2fd1-9b9c-5b3a-8d5e-3b1c9a4d7e21 000000";
        assert_eq!(patched(text, 0), text);
        let other = patched(text, 12);
        assert!(other.starts_with("kairo.agent.agent-0000012-07.decision human-0000012-01 "), "{other}");
        assert!(other.ends_with("-9b9c-5b3a-8d5e-3b1c9a4d7e21 000000") && !other.contains("0c4d2fd1"), "{other}");
        assert_eq!(other.len(), text.len());
    }

    #[test]
    fn ids_of_copies_differ_and_equal_ones_stay_equal() {
        let id = "0c4d2fd1-9b9c-5b3a-8d5e-3b1c9a4d7e21";
        let mut all: Vec<String> = (0..1_000).map(|number| patched(id, number)).collect();
        assert_eq!(patched(&format!("{id} {id}"), 7), format!("{} {}", all[7], all[7]));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 1_000);
    }
}
