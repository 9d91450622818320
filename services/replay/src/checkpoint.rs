//! Checkpoints: what the whole log was up to a place in it, in one line of JSON that can be signed and kept elsewhere. A log that was
//! cut off or written anew is held to it. It has no message's content, only digests.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kairo_events::{hash_chain::Content, ids::Name};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::format;

/// The version of the format that is written, and the newest that is read.
pub const FORMAT: u32 = 1;
/// Messages of a section.
pub const SECTION: u64 = 1_000;
/// Of a signature in base64.
const SIGNATURE: &str = "\"signature\":\"";

/// The kind of a file, as it states itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    #[default]
    Checkpoint,
}

/// The state of a log up to one position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub kairo: Kind,
    pub format: u32,
    /// The version of the build that made it.
    pub version: String,
    /// The id of the log.
    pub log: String,
    /// When it was made, by the clock of whoever made it.
    pub time: Timestamp,
    /// The last message that it covers.
    pub sequence: u64,
    pub messages: u64,
    /// Of each agent, the digest of all of its messages: that of the link of a decision made there. In hex.
    pub agents: BTreeMap<Name, String>,
    pub sections: Vec<Section>,
    /// The Ed25519 key that it is signed with, 32 bytes in base64; empty where it is not signed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub public_key: String,
    /// Of this line with nothing in this place, without its end; 64 bytes in base64.
    #[serde(default)]
    pub signature: String,
}

/// Messages that follow each other, of whatever subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    pub messages: u64,
    pub first: u64,
    pub last: u64,
    /// SHA-256 of the sequence and the content's digest of each, in hex.
    pub sha256: String,
}

/// The reason for which a checkpoint cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("expected a checkpoint that `kairo checkpoint` wrote: {0}")]
    NotOne(String),
    #[error("the format is version {found}, and this build reads up to {FORMAT}: open it with a newer build")]
    Newer { found: u32 },
}

/// A difference between a log and a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "differs", rename_all = "snake_case")]
pub enum Difference {
    /// It is another log altogether.
    Log { expected: String, found: String },
    Truncated {
        /// The last sequence of the log.
        end: u64,
        /// The last sequence of the checkpoint.
        sequence: u64,
    },
    /// Something in these messages is another, was put in, or is missing.
    Section { first: u64, last: u64, expected: u64, found: u64 },
    /// The agent's messages up to the checkpoint are others.
    Agent { agent: Name, sequence: u64 },
    /// The checkpoint does not know the agent, or the log has nothing of it.
    Unknown { agent: Name, sequence: u64 },
}

impl std::fmt::Display for Difference {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Log { expected, found } => {
                write!(out, "it is another log: {found}, and the checkpoint is of {expected}")
            }
            Self::Truncated { end, sequence } => {
                write!(out, "the log ends at {end}, and went on to {sequence}: it was cut off behind {end}")
            }
            Self::Section { first, last, expected, found } if expected == found => {
                write!(out, "something in messages {first} to {last} is not as it was")
            }
            Self::Section { first, last, expected, found } => {
                write!(out, "messages {first} to {last} were {expected}, and are {found}")
            }
            Self::Agent { agent, sequence } => {
                write!(out, "the messages of {agent} up to {sequence} are not those that the checkpoint covers")
            }
            Self::Unknown { agent, sequence } => {
                write!(out, "of {agent}, up to {sequence}, only one of the checkpoint and the log knows")
            }
        }
    }
}

impl Checkpoint {
    /// Reads a file.
    ///
    /// # Errors
    /// If the text is no checkpoint, or one of a newer build.
    pub fn read(text: &str) -> Result<Self, Unusable> {
        let not_one = |error: serde_json::Error| Unusable::NotOne(error.to_string());
        let found = format::version::<Kind>(text.as_bytes()).map_err(not_one)?;
        if found > FORMAT {
            return Err(Unusable::Newer { found });
        }
        serde_json::from_str(text).map_err(not_one)
    }

    /// The line without its signature, which is what is signed.
    pub fn unsigned(&self) -> String {
        serde_json::to_string(&Self { signature: String::new(), ..self.clone() }).unwrap_or_default()
    }

    /// Returns the signed part of a line, including fields that this build does not know.
    pub fn signed_part(&self, line: &str) -> String {
        line.trim_end().replace(&format!("{SIGNATURE}{}\"", self.signature), &format!("{SIGNATURE}\""))
    }

    /// The line, with its end.
    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

/// Adds up the messages of a log.
#[derive(Debug, Default)]
pub struct Adding {
    sections: Vec<Section>,
    sum: Sha256,
    messages: u64,
    first: u64,
    last: u64,
}

impl Adding {
    /// Takes in the next message.
    pub fn take(&mut self, sequence: u64, content: Content) {
        if self.messages == 0 {
            self.first = sequence;
        }
        self.last = sequence;
        add(&mut self.sum, sequence, content);
        self.messages += 1;
        if self.messages == SECTION {
            self.close();
        }
    }

    fn close(&mut self) {
        let sha256 = hex(std::mem::take(&mut self.sum).finalize());
        let (messages, first, last) = (std::mem::take(&mut self.messages), self.first, self.last);
        self.sections.push(Section { messages, first, last, sha256 });
    }

    /// All sections, and how many messages they have.
    pub fn end(mut self) -> (Vec<Section>, u64) {
        if self.messages > 0 {
            self.close();
        }
        let messages = self.sections.iter().map(|section| section.messages).sum();
        (self.sections, messages)
    }
}

/// Holds a whole log to a checkpoint.
#[derive(Debug)]
pub struct Comparing<'c> {
    checkpoint: &'c Checkpoint,
    section: usize,
    sum: Sha256,
    messages: u64,
    read: u64,
    /// Messages up to the checkpoint, of all sections.
    covered: u64,
    /// Sections that are others, and the first of them.
    others: u64,
    found: Option<Difference>,
}

/// The result of comparing a log with a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// The first thing that is another.
    #[serde(skip)]
    pub difference: Option<Difference>,
    /// Sections of the checkpoint, and how many of them are others.
    pub sections: u64,
    pub other_sections: u64,
    /// Messages that the checkpoint covers, and how many stand up to its end.
    pub messages: u64,
    pub found: u64,
}

impl<'c> Comparing<'c> {
    /// Nothing was read yet.
    pub fn new(checkpoint: &'c Checkpoint) -> Self {
        let (section, messages, read, covered, others) = (0, 0, 0, 0, 0);
        Self { checkpoint, section, sum: Sha256::default(), messages, read, covered, others, found: None }
    }

    /// Takes in the next message.
    pub fn take(&mut self, sequence: u64, content: Content) {
        self.close_before(sequence);
        self.read = sequence;
        if sequence <= self.checkpoint.sequence {
            add(&mut self.sum, sequence, content);
            self.messages += 1;
            self.covered += 1;
        }
    }

    /// Compares the sections that end before this sequence.
    fn close_before(&mut self, sequence: u64) {
        while let Some(section) = self.checkpoint.sections.get(self.section).filter(|it| it.last < sequence) {
            self.section += 1;
            let sum = hex(std::mem::take(&mut self.sum).finalize());
            let Section { messages: expected, first, last, ref sha256 } = *section;
            let found = std::mem::take(&mut self.messages);
            if sum != *sha256 {
                self.others += 1;
                self.found.get_or_insert(Difference::Section { first, last, expected, found });
            }
        }
    }

    /// The log is at its end.
    pub fn end(mut self) -> Compared {
        let (end, sequence) = (self.read, self.checkpoint.sequence);
        self.close_before(if end < sequence { end } else { u64::MAX });
        let cut = (end < sequence).then_some(Difference::Truncated { end, sequence });
        let Checkpoint { sections, messages, .. } = self.checkpoint;
        // What it does not reach is not there.
        let (sections, unread) = (sections.len() as u64, sections.len().saturating_sub(self.section) as u64);
        let (other_sections, messages, found) = (self.others + unread, *messages, self.covered);
        Compared { difference: self.found.or(cut), sections, other_sections, messages, found }
    }
}

/// Agents of a checkpoint of which there is nothing, where these are the digests of those there are.
pub fn without(checkpoint: &Checkpoint, heads: &BTreeMap<Name, Vec<u8>>) -> Vec<Name> {
    checkpoint.agents.keys().filter(|agent| !heads.contains_key(*agent)).cloned().collect()
}

/// Holds agents to what a checkpoint says of them: `heads` are the digests of what stands up to there.
pub fn of_agents(checkpoint: &Checkpoint, heads: &BTreeMap<Name, Vec<u8>>) -> Option<Difference> {
    let sequence = checkpoint.sequence;
    heads.iter().find_map(|(agent, head)| match checkpoint.agents.get(agent) {
        Some(expected) if *expected == hex(head) => None,
        Some(_) => Some(Difference::Agent { agent: agent.clone(), sequence }),
        None => Some(Difference::Unknown { agent: agent.clone(), sequence }),
    })
}

fn add(sum: &mut Sha256, sequence: u64, content: Content) {
    sum.update(sequence.to_be_bytes());
    sum.update(content.as_bytes());
}

/// In hex.
pub fn hex(digest: impl AsRef<[u8]>) -> String {
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(number: u64) -> Content {
        Content::of("kairo.user.ann.message", std::iter::empty(), &number.to_be_bytes(), Timestamp::UNIX_EPOCH)
    }

    fn checkpoint(last: u64) -> Checkpoint {
        let mut adding = Adding::default();
        (1..=last).for_each(|at| adding.take(at, content(at)));
        let (sections, messages) = adding.end();
        Checkpoint {
            kairo: Kind::Checkpoint,
            format: FORMAT,
            version: "1".into(),
            log: "log".into(),
            time: Timestamp::UNIX_EPOCH,
            sequence: last,
            messages,
            agents: BTreeMap::from([(Name::parse("cook").unwrap(), hex([7_u8; 32]))]),
            sections,
            public_key: String::new(),
            signature: String::new(),
        }
    }

    fn compared(checkpoint: &Checkpoint, log: impl Iterator<Item = (u64, Content)>) -> Option<Difference> {
        let mut comparing = Comparing::new(checkpoint);
        log.for_each(|(at, content)| comparing.take(at, content));
        comparing.end().difference
    }

    #[test]
    fn what_a_checkpoint_covers_and_a_log_lacks_is_counted() {
        let checkpoint = checkpoint(2_500);
        let counted = |log: &[u64]| {
            let mut comparing = Comparing::new(&checkpoint);
            log.iter().for_each(|at| comparing.take(*at, content(*at)));
            let Compared { sections, other_sections, messages, found, .. } = comparing.end();
            (sections, other_sections, messages, found)
        };
        let all: Vec<u64> = (1..=2_600).collect();
        assert_eq!(counted(&all), (3, 0, 2_500, 2_500));
        assert_eq!(counted(&[]), (3, 3, 2_500, 0));
        assert_eq!(counted(&all[..1_500]), (3, 2, 2_500, 1_500));
        let of_an_agent: Vec<u64> = all.iter().copied().filter(|at| !(1_000..2_000).contains(at)).collect();
        assert_eq!(counted(&of_an_agent), (3, 2, 2_500, 1_500));
        let [cook, bob] = ["cook", "bob"].map(|name| Name::parse(name).unwrap());
        assert_eq!(without(&checkpoint, &BTreeMap::from([(bob, vec![7; 32])])), std::slice::from_ref(&cook));
        assert_eq!(without(&checkpoint, &BTreeMap::from([(cook, vec![7; 32])])), []);
    }

    #[test]
    fn a_log_that_goes_on_fits_and_one_that_is_another_is_told_with_the_place() {
        let checkpoint = checkpoint(2_500);
        assert_eq!((checkpoint.sections.len(), checkpoint.messages), (3, 2_500));
        let log = || (1..=2_600).map(|at| (at, content(at)));
        assert_eq!(compared(&checkpoint, log()), None);
        assert_eq!(compared(&checkpoint, log().take(2_500)), None);
        let cut = Difference::Truncated { end: 2_400, sequence: 2_500 };
        assert_eq!(compared(&checkpoint, log().take(2_400)), Some(cut));
        assert_eq!(compared(&checkpoint, std::iter::empty()), Some(Difference::Truncated { end: 0, sequence: 2_500 }));
        let without = |gone: u64| compared(&checkpoint, log().filter(|(at, _)| *at != gone));
        let section = |first, last, expected, found| Some(Difference::Section { first, last, expected, found });
        assert_eq!(without(1_000), section(1, 1_000, 1_000, 999));
        assert_eq!(without(2_500), section(2_001, 2_500, 500, 499));
        let changed = log().map(|(at, it)| (at, if at == 1_500 { content(0) } else { it }));
        assert_eq!(compared(&checkpoint, changed), section(1_001, 2_000, 1_000, 1_000));
        // Something that was changed and cut off behind.
        let both = log().take(2_400).map(|(at, it)| (at, if at == 5 { content(0) } else { it }));
        assert_eq!(compared(&checkpoint, both), section(1, 1_000, 1_000, 1_000));
    }

    #[test]
    fn agents_are_held_to_their_digests() {
        let checkpoint = checkpoint(3);
        let heads = |agent: &str, byte: u8| BTreeMap::from([(Name::parse(agent).unwrap(), vec![byte; 32])]);
        assert_eq!(of_agents(&checkpoint, &heads("cook", 7)), None);
        let agent = |name| Name::parse(name).unwrap();
        let other = Difference::Agent { agent: agent("cook"), sequence: 3 };
        assert_eq!(of_agents(&checkpoint, &heads("cook", 8)), Some(other));
        let unknown = Difference::Unknown { agent: agent("bob"), sequence: 3 };
        assert_eq!(of_agents(&checkpoint, &heads("bob", 7)), Some(unknown));
    }

    #[test]
    fn what_is_signed_is_the_line_without_its_signature() {
        let checkpoint = Checkpoint { public_key: "AAAA".into(), signature: "c2lnbmVk".into(), ..checkpoint(3) };
        let line = checkpoint.line();
        let read = Checkpoint::read(&line).unwrap();
        assert_eq!((read.signed_part(&line), &read), (checkpoint.unsigned(), &checkpoint));
        // A field that this build does not know is signed as well.
        let more = line.replacen("\"format\":1", "\"format\":1,\"more\":2", 1);
        assert!(Checkpoint::read(&more).unwrap().signed_part(&more).contains("\"more\":2"));
        let newer = line.replacen("\"format\":1", "\"format\":2", 1);
        assert_eq!(Checkpoint::read(&newer), Err(Unusable::Newer { found: 2 }));
        assert!(matches!(Checkpoint::read("{\"kairo\":\"incident\"}"), Err(Unusable::NotOne(_))));
    }
}
