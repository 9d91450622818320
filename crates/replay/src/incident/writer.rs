//! Writing an incident file: its lines one after the other, and the manifest that sums them up and stands before them.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use kairo_events::{ids::Name, media, vocabulary::READER};
use kairo_mind::replay::changes::ReplayChanges;
use kairo_proto::{
    Body, ContentType,
    v1::{LogMessage, Part},
};
use sha2::{Digest, Sha256};

use super::{IncidentKind, Manifest, MessageSection, MessageSelection, SECTION, WITHOUT_OBJECTS, to_hex};
use crate::{
    replayer::{ReplayProgress, Replayer},
    report::Range,
    timeline::BrokenLog,
};

/// A file that is being written.
#[derive(Debug)]
pub struct IncidentWriter<'c> {
    choosing: &'c MessageSelection,
    summing: MessageSectionBuilder,
    /// The agent's decisions are made again on the way, so that the manifest says to which state they lead.
    replaying: Replayer,
    messages: u64,
    /// The objects that the messages name, each once, in their order.
    named: Vec<Part>,
    digests: HashSet<String>,
}

impl<'c> IncidentWriter<'c> {
    /// Writes what was chosen. Where secrets were sealed on the way, making decisions again takes their key.
    pub fn new(choosing: &'c MessageSelection, secret_key: Option<[u8; 32]>) -> Self {
        let agents = BTreeSet::from([choosing.agent().clone()]);
        let replaying = Replayer::new(agents, Range::default(), ReplayChanges::default(), secret_key);
        let named = Vec::new();
        let digests = HashSet::new();
        Self { choosing, summing: MessageSectionBuilder::default(), replaying, messages: 0, named, digests }
    }

    /// The line of the next message of the log, with its end; none for a message that does not go into the file.
    ///
    /// # Errors
    /// When the message is none of a log, or does not stand where it belongs.
    pub fn write(&mut self, message: &LogMessage) -> Result<Option<String>, BrokenLog> {
        if !self.choosing.includes_message(message) {
            return Ok(None);
        }
        let line = serde_json::to_string(message).unwrap_or_default() + "\n";
        self.summing.add(message.sequence, line.as_bytes());
        self.messages += 1;
        self.note_objects(message);
        // What only a newer build understands is written all the same.
        let (ReplayProgress::NoDecision | ReplayProgress::Decision(..) | ReplayProgress::End) =
            self.replaying.replay(message)?;
        Ok(Some(line))
    }

    /// Notes which objects it names. What is no digest names none.
    fn note_objects(&mut self, message: &LogMessage) {
        let type_name = message.headers.get("ce-type").map_or("", String::as_str);
        let Ok(body) = Body::decode(type_name, ContentType::Protobuf, &message.data) else { return };
        for part in media::named_parts(&body).filter(|part| media::is_digest(&part.digest)) {
            if self.digests.insert(part.digest.clone()) {
                self.named.push(part.clone());
            }
        }
    }

    /// The manifest of all lines, by a build of this version, and the objects that the messages name, which may follow; none
    /// where the log had nothing of the agent.
    pub fn finish(self, version: &str) -> Option<(Manifest, Vec<Part>)> {
        if !self.replaying.missing().is_empty() {
            return None;
        }
        let report = self.replaying.report(version, Vec::new());
        let agent: &Name = self.choosing.agent();
        let manifest = Manifest {
            kairo: IncidentKind::Incident,
            format: WITHOUT_OBJECTS,
            version: version.to_owned(),
            reader: READER,
            agent: agent.clone(),
            range: self.choosing.range(),
            around: self.choosing.anchor(),
            messages: self.messages,
            decisions: report.counts.decisions as u64,
            state: report.states.get(agent).cloned().unwrap_or_default(),
            redacted: false,
            replaced: BTreeMap::new(),
            objects: None,
            sections: self.summing.finish(),
            checksum: String::new(),
        };
        Some((manifest, self.named))
    }
}

/// Sums up the lines of a file that is written.
#[derive(Debug, Default)]
pub struct MessageSectionBuilder {
    sections: Vec<MessageSection>,
    section: Sha256,
    lines: u64,
    first: u64,
    last: u64,
}

impl MessageSectionBuilder {
    /// Takes in the next line, with its end.
    pub fn add(&mut self, sequence: u64, line: &[u8]) {
        if self.lines == 0 {
            self.first = sequence;
        }
        self.last = sequence;
        self.section.update(line);
        self.lines += 1;
        if self.lines == SECTION {
            self.close();
        }
    }

    fn close(&mut self) {
        let sha256 = to_hex(std::mem::take(&mut self.section).finalize());
        let messages = std::mem::take(&mut self.lines);
        let first = self.first;
        let last = self.last;
        self.sections.push(MessageSection { messages, first, last, sha256 });
    }

    /// All sections.
    pub fn finish(mut self) -> Vec<MessageSection> {
        if self.lines > 0 {
            self.close();
        }
        self.sections
    }
}
