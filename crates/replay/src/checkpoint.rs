//! Checkpoints: what the whole log was up to a place in it, in one line of JSON that can be signed and kept elsewhere. A log that was
//! cut off or written anew is held to it. It has no message's content, only digests.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kairo_events::{hash_chain::ContentDigest, ids::Name};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::document_format;

/// The version of the format that is written, and the newest that is read.
pub const FORMAT: u32 = 1;
/// Messages of a section.
pub const SECTION: u64 = 1_000;
/// Of a signature in base64.
const SIGNATURE: &str = "\"signature\":\"";

/// The kind of a file, as it states itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointKind {
    #[default]
    Checkpoint,
}

/// The state of a log up to one position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub kairo: CheckpointKind,
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
    pub sections: Vec<CheckpointSection>,
    /// The Ed25519 key that it is signed with, 32 bytes in base64; empty where it is not signed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub public_key: String,
    /// Of this line with nothing in this place, without its end; 64 bytes in base64.
    #[serde(default)]
    pub signature: String,
}

/// Messages that follow each other, of whatever subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointSection {
    pub messages: u64,
    pub first: u64,
    pub last: u64,
    /// SHA-256 of the sequence and the content's digest of each, in hex.
    pub sha256: String,
}

/// The reason for which a checkpoint cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    #[error("expected a checkpoint that `kairo checkpoint` wrote: {0}")]
    NotOne(String),
    #[error("the format is version {found}, and this build reads up to {FORMAT}: open it with a newer build")]
    Newer { found: u32 },
}

/// A difference between a log and a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "differs", rename_all = "snake_case")]
pub enum CheckpointDifference {
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

impl std::fmt::Display for CheckpointDifference {
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
    pub fn parse(text: &str) -> Result<Self, CheckpointError> {
        let not_one = |error: serde_json::Error| CheckpointError::NotOne(error.to_string());
        let found = document_format::read_version::<CheckpointKind>(text.as_bytes()).map_err(not_one)?;
        if found > FORMAT {
            return Err(CheckpointError::Newer { found });
        }
        serde_json::from_str(text).map_err(not_one)
    }

    /// The line without its signature, which is what is signed.
    pub fn unsigned_line(&self) -> String {
        serde_json::to_string(&Self { signature: String::new(), ..self.clone() }).unwrap_or_default()
    }

    /// Returns the signed part of a line, including fields that this build does not know.
    pub fn signed_part(&self, line: &str) -> String {
        line.trim_end().replace(&format!("{SIGNATURE}{}\"", self.signature), &format!("{SIGNATURE}\""))
    }

    /// The line, with its end.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

/// Adds up the messages of a log.
#[derive(Debug, Default)]
pub struct SectionBuilder {
    sections: Vec<CheckpointSection>,
    sum: Sha256,
    messages: u64,
    first: u64,
    last: u64,
}

impl SectionBuilder {
    /// Takes in the next message.
    pub fn add(&mut self, sequence: u64, content: ContentDigest) {
        if self.messages == 0 {
            self.first = sequence;
        }
        self.last = sequence;
        hash_message(&mut self.sum, sequence, content);
        self.messages += 1;
        if self.messages == SECTION {
            self.close();
        }
    }

    fn close(&mut self) {
        let sha256 = to_hex(std::mem::take(&mut self.sum).finalize());
        let messages = std::mem::take(&mut self.messages);
        let first = self.first;
        let last = self.last;
        self.sections.push(CheckpointSection { messages, first, last, sha256 });
    }

    /// All sections, and how many messages they have.
    pub fn finish(mut self) -> (Vec<CheckpointSection>, u64) {
        if self.messages > 0 {
            self.close();
        }
        let messages = self.sections.iter().map(|section| section.messages).sum();
        (self.sections, messages)
    }
}

/// Holds a whole log to a checkpoint.
#[derive(Debug)]
pub struct CheckpointComparer<'c> {
    checkpoint: &'c Checkpoint,
    section: usize,
    sum: Sha256,
    messages: u64,
    read: u64,
    /// Messages up to the checkpoint, of all sections.
    covered: u64,
    /// Sections that are others, and the first of them.
    others: u64,
    found: Option<CheckpointDifference>,
}

/// The result of comparing a log with a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckpointComparison {
    /// The first thing that is another.
    #[serde(skip)]
    pub difference: Option<CheckpointDifference>,
    /// Sections of the checkpoint, and how many of them are others.
    pub sections: u64,
    pub other_sections: u64,
    /// Messages that the checkpoint covers, and how many stand up to its end.
    pub messages: u64,
    pub found: u64,
}

impl<'c> CheckpointComparer<'c> {
    /// Nothing was read yet.
    pub fn new(checkpoint: &'c Checkpoint) -> Self {
        let section = 0;
        let messages = 0;
        let read = 0;
        let covered = 0;
        let others = 0;
        Self { checkpoint, section, sum: Sha256::default(), messages, read, covered, others, found: None }
    }

    /// Takes in the next message.
    pub fn compare(&mut self, sequence: u64, content: ContentDigest) {
        self.close_sections_before(sequence);
        self.read = sequence;
        if sequence <= self.checkpoint.sequence {
            hash_message(&mut self.sum, sequence, content);
            self.messages += 1;
            self.covered += 1;
        }
    }

    /// Compares the sections that end before this sequence.
    fn close_sections_before(&mut self, sequence: u64) {
        while let Some(section) = self.checkpoint.sections.get(self.section).filter(|it| it.last < sequence) {
            self.section += 1;
            let sum = to_hex(std::mem::take(&mut self.sum).finalize());
            let CheckpointSection { messages: expected, first, last, ref sha256 } = *section;
            let found = std::mem::take(&mut self.messages);
            if sum != *sha256 {
                self.others += 1;
                self.found.get_or_insert(CheckpointDifference::Section { first, last, expected, found });
            }
        }
    }

    /// The log is at its end.
    pub fn finish(mut self) -> CheckpointComparison {
        let end = self.read;
        let sequence = self.checkpoint.sequence;
        self.close_sections_before(if end < sequence { end } else { u64::MAX });
        let cut = (end < sequence).then_some(CheckpointDifference::Truncated { end, sequence });
        let Checkpoint { sections, messages, .. } = self.checkpoint;
        // What it does not reach is not there.
        let (sections, unread) = (sections.len() as u64, sections.len().saturating_sub(self.section) as u64);
        let other_sections = self.others + unread;
        let messages = *messages;
        let found = self.covered;
        CheckpointComparison { difference: self.found.or(cut), sections, other_sections, messages, found }
    }
}

/// Agents of a checkpoint of which there is nothing, where these are the digests of those there are.
pub fn missing_agents(checkpoint: &Checkpoint, heads: &BTreeMap<Name, Vec<u8>>) -> Vec<Name> {
    checkpoint.agents.keys().filter(|agent| !heads.contains_key(*agent)).cloned().collect()
}

/// Holds agents to what a checkpoint says of them: `heads` are the digests of what stands up to there.
pub fn compare_agents(checkpoint: &Checkpoint, heads: &BTreeMap<Name, Vec<u8>>) -> Option<CheckpointDifference> {
    let sequence = checkpoint.sequence;
    heads.iter().find_map(|(agent, head)| match checkpoint.agents.get(agent) {
        Some(expected) if *expected == to_hex(head) => None,
        Some(_) => Some(CheckpointDifference::Agent { agent: agent.clone(), sequence }),
        None => Some(CheckpointDifference::Unknown { agent: agent.clone(), sequence }),
    })
}

fn hash_message(sum: &mut Sha256, sequence: u64, content: ContentDigest) {
    sum.update(sequence.to_be_bytes());
    sum.update(content.as_bytes());
}

/// In hex.
pub fn to_hex(digest: impl AsRef<[u8]>) -> String {
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(number: u64) -> ContentDigest {
        ContentDigest::of_message(
            "kairo.user.ann.message",
            std::iter::empty(),
            &number.to_be_bytes(),
            Timestamp::UNIX_EPOCH,
        )
    }

    fn checkpoint(last: u64) -> Checkpoint {
        let mut adding = SectionBuilder::default();
        (1..=last).for_each(|at| adding.add(at, content(at)));
        let (sections, messages) = adding.finish();
        Checkpoint {
            kairo: CheckpointKind::Checkpoint,
            format: FORMAT,
            version: "1".into(),
            log: "log".into(),
            time: Timestamp::UNIX_EPOCH,
            sequence: last,
            messages,
            agents: BTreeMap::from([(Name::parse("cook").unwrap(), to_hex([7_u8; 32]))]),
            sections,
            public_key: String::new(),
            signature: String::new(),
        }
    }

    fn compared(
        checkpoint: &Checkpoint,
        log: impl Iterator<Item = (u64, ContentDigest)>,
    ) -> Option<CheckpointDifference> {
        let mut comparing = CheckpointComparer::new(checkpoint);
        log.for_each(|(at, content)| comparing.compare(at, content));
        comparing.finish().difference
    }

    #[test]
    fn what_a_checkpoint_covers_and_a_log_lacks_is_counted() {
        let checkpoint = checkpoint(2_500);
        let counted = |log: &[u64]| {
            let mut comparing = CheckpointComparer::new(&checkpoint);
            log.iter().for_each(|at| comparing.compare(*at, content(*at)));
            let CheckpointComparison { sections, other_sections, messages, found, .. } = comparing.finish();
            (sections, other_sections, messages, found)
        };
        let all: Vec<u64> = (1..=2_600).collect();
        assert_eq!(counted(&all), (3, 0, 2_500, 2_500));
        assert_eq!(counted(&[]), (3, 3, 2_500, 0));
        assert_eq!(counted(&all[..1_500]), (3, 2, 2_500, 1_500));
        let of_an_agent: Vec<u64> = all.iter().copied().filter(|at| !(1_000..2_000).contains(at)).collect();
        assert_eq!(counted(&of_an_agent), (3, 2, 2_500, 1_500));
        let [cook, bob] = ["cook", "bob"].map(|name| Name::parse(name).unwrap());
        assert_eq!(missing_agents(&checkpoint, &BTreeMap::from([(bob, vec![7; 32])])), std::slice::from_ref(&cook));
        assert_eq!(missing_agents(&checkpoint, &BTreeMap::from([(cook, vec![7; 32])])), []);
    }

    #[test]
    fn a_log_that_goes_on_fits_and_one_that_is_another_is_told_with_the_place() {
        let checkpoint = checkpoint(2_500);
        assert_eq!((checkpoint.sections.len(), checkpoint.messages), (3, 2_500));
        let log = || (1..=2_600).map(|at| (at, content(at)));
        assert_eq!(compared(&checkpoint, log()), None);
        assert_eq!(compared(&checkpoint, log().take(2_500)), None);
        let cut = CheckpointDifference::Truncated { end: 2_400, sequence: 2_500 };
        assert_eq!(compared(&checkpoint, log().take(2_400)), Some(cut));
        assert_eq!(
            compared(&checkpoint, std::iter::empty()),
            Some(CheckpointDifference::Truncated { end: 0, sequence: 2_500 })
        );
        let without = |gone: u64| compared(&checkpoint, log().filter(|(at, _)| *at != gone));
        let section =
            |first, last, expected, found| Some(CheckpointDifference::Section { first, last, expected, found });
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
        assert_eq!(compare_agents(&checkpoint, &heads("cook", 7)), None);
        let agent = |name| Name::parse(name).unwrap();
        let other = CheckpointDifference::Agent { agent: agent("cook"), sequence: 3 };
        assert_eq!(compare_agents(&checkpoint, &heads("cook", 8)), Some(other));
        let unknown = CheckpointDifference::Unknown { agent: agent("bob"), sequence: 3 };
        assert_eq!(compare_agents(&checkpoint, &heads("bob", 7)), Some(unknown));
    }

    #[test]
    fn what_is_signed_is_the_line_without_its_signature() {
        let checkpoint = Checkpoint { public_key: "AAAA".into(), signature: "c2lnbmVk".into(), ..checkpoint(3) };
        let line = checkpoint.to_line();
        let read = Checkpoint::parse(&line).unwrap();
        assert_eq!((read.signed_part(&line), &read), (checkpoint.unsigned_line(), &checkpoint));
        // A field that this build does not know is signed as well.
        let more = line.replacen("\"format\":1", "\"format\":1,\"more\":2", 1);
        assert!(Checkpoint::parse(&more).unwrap().signed_part(&more).contains("\"more\":2"));
        let newer = line.replacen("\"format\":1", "\"format\":2", 1);
        assert_eq!(Checkpoint::parse(&newer), Err(CheckpointError::Newer { found: 2 }));
        assert!(matches!(Checkpoint::parse("{\"kairo\":\"incident\"}"), Err(CheckpointError::NotOne(_))));
    }
}
