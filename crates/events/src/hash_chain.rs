//! The hash chain of an agent's log. Every decision carries a [`HashLink`], whose digest covers the digest before, the decision that
//! carries that one, and every other message of the agent that whoever decided had read and no digest covers yet. So a message
//! that is changed, taken out, put in or moved makes the next digest another one.
//!
//! Pure, and the same for whoever writes and whoever verifies: which messages a link covers follows from the log and from what
//! the link says. What stands on the decision subject is known to whoever writes there, since the write is guarded by it; of
//! all else the link says up to where it was read.
//!
//! * A message that arrived before a decision and stands behind its `through` is covered by the next.
//! * What nobody can read is covered like anything else.
//! * A decision that was not written under its guard is no link but a message on the subject: so a copy counts once.
//! * Decisions from before the epoch are no links. The first link covers the last of them, and what stands behind it.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use kairo_proto::{
    Body,
    v1::{AgentDecision, HashLink},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use sha2::{Digest as _, Sha256};

use crate::subjects::AGENT_DECISION;

/// Most messages of which a link carries a mark.
pub const MARKS: usize = 64;
/// Prefix of the headers that server and client add to a message for each other.
const OF_THE_SERVER: &str = "Nats-";
/// Domain of the digests: each begins with it, so that it is a digest of nothing else.
const DOMAIN: &[u8] = b"kairo.hash-chain.v1";

/// SHA-256 of a message's stored form: its subject without the partition, its headers in alphabetical order without the
/// server's, its body, and, unless it is a decision, when the server stored it. Each is preceded by its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentDigest([u8; 32]);

/// The place of a message among the subjects of an agent.
#[derive(Clone, Copy, Debug)]
pub enum ChainRole<'l> {
    /// A decision, with the link that it carries.
    Decision(Option<&'l HashLink>),
    /// On the decision subject, and nobody can read it.
    UnreadableDecision,
    Other,
}

impl<'l> ChainRole<'l> {
    /// Of a message of an agent; no body where nobody can read it.
    pub fn from_message(subject: &str, body: Option<&'l Body>) -> Self {
        match body.and_then(AgentDecision::of) {
            _ if !AGENT_DECISION.matches(subject) => Self::Other,
            Some(decision) => Self::Decision(decision.link.as_ref()),
            None => Self::UnreadableDecision,
        }
    }
}

/// An agent's log as far as it was read: what the next link covers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HashChain {
    read: u64,
    /// The last message on the decision subject.
    decided: u64,
    /// The last decision that stands before the first link: what stands before that is not covered.
    floor: u64,
    /// The last link; none before the first.
    tip: Option<ChainTip>,
    /// The messages that no link covers yet, by sequence.
    open: BTreeMap<u64, UncoveredMessage>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ChainTip {
    digest: ContentDigest,
    through: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct UncoveredMessage {
    content: ContentDigest,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    on_decisions: bool,
}

impl ContentDigest {
    /// Of a message that the server stored then, with the first value of each header.
    pub fn of_message<'h>(
        subject: &str,
        headers: impl Iterator<Item = (&'h str, &'h str)>,
        payload: &[u8],
        stored: Timestamp,
    ) -> Self {
        match AGENT_DECISION.matches(subject) {
            true => Self::of_decision(subject, headers, payload),
            false => Self::hash_message(subject, headers, payload, &stored.as_nanosecond().to_be_bytes()),
        }
    }

    /// Of a decision. When it was stored is no part of it, since whoever writes it does not know that yet.
    pub fn of_decision<'h>(subject: &str, headers: impl Iterator<Item = (&'h str, &'h str)>, payload: &[u8]) -> Self {
        Self::hash_message(subject, headers, payload, &[])
    }

    fn hash_message<'h>(
        subject: &str,
        headers: impl Iterator<Item = (&'h str, &'h str)>,
        payload: &[u8],
        stored: &[u8],
    ) -> Self {
        let mut sum = Sha256::new();
        let mut part = |bytes: &[u8]| {
            sum.update((bytes.len() as u64).to_be_bytes());
            sum.update(bytes);
        };
        part(subject.as_bytes());
        let mut headers: Vec<_> = headers.filter(|(name, _)| !name.starts_with(OF_THE_SERVER)).collect();
        headers.sort_unstable();
        part(&(headers.len() as u64).to_be_bytes());
        for (name, value) in headers {
            part(name.as_bytes());
            part(value.as_bytes());
        }
        part(payload);
        part(stored);
        Self(sum.finalize().into())
    }

    /// As a link carries it.
    pub fn short_mark(&self) -> u32 {
        let [first, second, third, fourth, ..] = self.0;
        u32::from_be_bytes([first, second, third, fourth])
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl HashChain {
    /// Returns true if the agent has a link. Then each of its decisions has to carry one.
    pub fn has_begun(&self) -> bool {
        self.tip.is_some()
    }

    /// The last message on the decision subject; 0 for none.
    pub fn last_decision(&self) -> u64 {
        self.decided
    }

    /// Returns the number of messages that no link covers yet.
    pub fn uncovered_count(&self) -> usize {
        self.open.len()
    }

    /// Takes in the next message of the agent. One that was taken in before changes nothing.
    pub fn apply_message(&mut self, sequence: u64, content: ContentDigest, on: ChainRole<'_>) {
        if sequence > self.read {
            self.read = sequence;
            self.extend_with(sequence, content, on);
        }
    }

    /// Takes in a decision that was just written. What stands before it is still to be read.
    pub fn apply_decision(&mut self, sequence: u64, content: ContentDigest, link: Option<&HashLink>) {
        self.extend_with(sequence, content, ChainRole::Decision(link));
    }

    fn extend_with(&mut self, sequence: u64, content: ContentDigest, on: ChainRole<'_>) {
        let link = match on {
            ChainRole::Other => {
                // Covered already, or from before the first link.
                if sequence > self.tip.map_or(self.floor, |tip| tip.through) {
                    self.open.insert(sequence, UncoveredMessage { content, on_decisions: false });
                }
                return;
            }
            _ if sequence <= self.decided => return,
            ChainRole::UnreadableDecision => None,
            ChainRole::Decision(None) if self.tip.is_none() => {
                self.open.clear();
                self.floor = sequence;
                None
            }
            ChainRole::Decision(link) => link.filter(|link| self.is_next(sequence, link)),
        };
        if let Some(link) = link {
            self.open.retain(|at, open| !is_covered(*at, open, link.through));
            self.tip = Some(ChainTip { digest: ContentDigest::from_bytes(&link.digest), through: link.through });
        }
        self.decided = sequence;
        self.open.insert(sequence, UncoveredMessage { content, on_decisions: true });
    }

    /// Returns true if a decision at this sequence with this link is the next one of the chain: its writer was guarded
    /// by the decision before it, and had read no less than the writer of that one.
    pub fn is_next(&self, sequence: u64, link: &HashLink) -> bool {
        let from = self.tip.map_or(0, |tip| tip.through);
        link.previous == self.decided && (from..sequence).contains(&link.through)
    }

    /// The link of a decision that is made now.
    pub fn next_link(&self) -> HashLink {
        self.expected_link(self.decided, self.read.max(self.floor))
    }

    /// The link that a decision should carry that says to be written behind that one, and to know so much.
    pub fn expected_link(&self, previous: u64, through: u64) -> HashLink {
        let mut sum = Sha256::new();
        let mut messages = 0_u32;
        let mut marks = Vec::new();
        sum.update(DOMAIN);
        sum.update(self.tip.map(|tip| tip.digest).unwrap_or_default().0);
        sum.update(previous.to_be_bytes());
        sum.update(through.to_be_bytes());
        for (sequence, content) in self.covered_messages(through) {
            sum.update(sequence.to_be_bytes());
            sum.update(content.0);
            messages += 1;
            marks.push(content.short_mark());
        }
        sum.update(messages.to_be_bytes());
        if marks.len() > MARKS {
            marks.clear();
        }
        HashLink { digest: sum.finalize().to_vec(), previous, through, messages, marks }
    }

    /// Returns the messages that a link up to `through` covers, in the log's order.
    pub fn covered_messages(&self, through: u64) -> impl Iterator<Item = (u64, ContentDigest)> {
        let covered = self.open.iter().filter(move |(at, open)| is_covered(**at, open, through));
        covered.map(|(at, open)| (*at, open.content))
    }

    /// Goes on from a link whose beginning is not at hand, as if it had been verified.
    pub fn resume_from(&mut self, sequence: u64, content: ContentDigest, link: &HashLink) {
        self.decided = link.previous;
        self.apply_message(sequence, content, ChainRole::Decision(Some(link)));
    }
}

fn is_covered(sequence: u64, open: &UncoveredMessage, through: u64) -> bool {
    open.on_decisions || sequence <= through
}

impl ContentDigest {
    /// A digest of another length is that of nothing.
    fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.try_into().unwrap_or_default())
    }
}

impl Serialize for ContentDigest {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&STANDARD.encode(self.0))
    }
}

impl<'de> Deserialize<'de> for ContentDigest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let bytes = STANDARD.decode(String::deserialize(from)?).map_err(D::Error::custom)?;
        bytes.try_into().map(Self).map_err(|_| D::Error::custom("expected 32 bytes in base64"))
    }
}

#[cfg(test)]
mod tests;
