//! Ids: where something enters from outside a new one is made, everything after is derived from its cause.
//!
//! Deriving is what makes doing the same work twice harmless: the second time yields the same ids. Making new ones takes a
//! clock and chance, so that is in `kairo-core`.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};
use uuid::{Builder, Uuid};

/// Kairo's namespace for derived ids. Never change it: every derived id in every log rests on it.
const NAMESPACE: Uuid = Uuid::from_u128(0x6b61_6972_6f2e_4576_8e6e_7473_2e69_6473);

/// The id of what `cause` leads to at `position`, for example `derived(input, "decision")`.
pub fn derive(cause: Uuid, position: &str) -> Uuid {
    let mut name = IdHasher::new();
    name.update(cause.hyphenated().encode_lower(&mut Uuid::encode_buffer()));
    name.update("/");
    name.update(position);
    name.finish()
}

/// The id of an action's process: the same action is the same process.
pub fn process_id(action: Uuid) -> Uuid {
    derive(action, "process")
}

/// The id of something that outsiders name, for example `named("message", &["ann", "m-1"])`.
/// Parts are joined with their lengths, so that no two lists of parts give the same id.
pub fn from_parts(kind: &str, parts: &[impl AsRef<[u8]>]) -> Uuid {
    let mut name = IdHasher::new();
    name.update(kind);
    for part in parts.iter().map(AsRef::as_ref) {
        name.update(format!("/{}:", part.len()));
        name.update(part);
    }
    name.finish()
}

/// A version 5 UUID of Kairo's namespace (RFC 9562, section 5.5). Some are of long texts, such as requests to models,
/// and this SHA-1 uses the processor's instructions for it.
struct IdHasher(Sha1);

impl IdHasher {
    fn new() -> Self {
        Self(Sha1::new_with_prefix(NAMESPACE))
    }

    fn update(&mut self, text: impl AsRef<[u8]>) {
        self.0.update(text);
    }

    fn finish(self) -> Uuid {
        let digest: [u8; 20] = self.0.finalize().into();
        let (bytes, _) = digest.split_first_chunk().unwrap_or((&[0; 16], &[]));
        Builder::from_sha1_bytes(*bytes).into_uuid()
    }
}

/// The id of a user's message: the one chosen for it or, where an outsider chose none, that of its event.
pub fn message_id(chosen: &str, event: Uuid) -> String {
    if chosen.is_empty() { event.to_string() } else { chosen.to_owned() }
}

/// The name of an agent, user, thread or service: `[a-z0-9_-]{1,64}`, so that it can be a token of a subject.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(Arc<str>);

impl TryFrom<String> for Name {
    type Error = NotAName;

    fn try_from(text: String) -> Result<Self, NotAName> {
        Self::parse(&text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0.as_ref().to_owned()
    }
}

/// A text that is not a [`Name`].
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
#[error("expected 1 to 64 of the characters a-z 0-9 _ -, found {0:?}")]
pub struct NotAName(String);

impl Name {
    pub const MAX_LEN: usize = 64;

    pub fn parse(text: &str) -> Result<Self, NotAName> {
        let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
        if (1..=Self::MAX_LEN).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Self(text.into()))
        } else {
            Err(NotAName(text.chars().take(80).collect()))
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_ids_depend_on_cause_and_position_only() {
        let one = Uuid::from_u128(1);
        let other = Uuid::from_u128(2);
        assert_eq!(derive(one, "a"), derive(one, "a"));
        assert_ne!(derive(one, "a"), derive(one, "b"));
        assert_ne!(derive(one, "a"), derive(other, "a"));
        assert_ne!(from_parts("m", &["a", "bc"]), from_parts("m", &["ab", "c"]));
    }

    #[test]
    fn derivation_never_changes() {
        let id = derive(Uuid::from_u128(7), "decision").to_string();
        assert_eq!(id, "a4303647-cce6-5f65-926e-e0debba5525f");
    }

    #[test]
    fn names_are_subject_tokens() {
        for good in ["a", "default", "agent-7_b", &"x".repeat(64)] {
            assert_eq!(Name::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "A", "a.b", "*", ">", "ä", "a b", &"x".repeat(65)] {
            assert!(Name::parse(bad).is_err(), "{bad:?}");
        }
    }
}
