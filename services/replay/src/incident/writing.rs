//! Writing an incident file: its lines one after the other, and the manifest that sums them up and stands before them.

use std::collections::{BTreeMap, BTreeSet};

use kairo_events::{ids::Name, vocabulary::READER};
use kairo_mind::replay::changes::Changes;
use kairo_proto::v1::LogMessage;

use super::{Choosing, FORMAT, Kind, Manifest, Summing};
use crate::{
    replaying::{Replaying, Went},
    report::Range,
    timeline::Broken,
};

/// A file that is being written.
#[derive(Debug)]
pub struct Writing<'c> {
    choosing: &'c Choosing,
    summing: Summing,
    /// The agent's decisions are made again on the way, so that the manifest says to which state they lead.
    replaying: Replaying,
    messages: u64,
}

impl<'c> Writing<'c> {
    /// Writes what was chosen. Where secrets were sealed on the way, making decisions again takes their key.
    pub fn new(choosing: &'c Choosing, secret_key: Option<[u8; 32]>) -> Self {
        let agents = BTreeSet::from([choosing.agent().clone()]);
        let replaying = Replaying::new(agents, Range::default(), Changes::default(), secret_key);
        Self { choosing, summing: Summing::default(), replaying, messages: 0 }
    }

    /// The line of the next message of the log, with its end; none for a message that does not go into the file.
    ///
    /// # Errors
    /// When the message is none of a log, or does not stand where it belongs.
    pub fn take(&mut self, message: &LogMessage) -> Result<Option<String>, Broken> {
        if !self.choosing.wants(message) {
            return Ok(None);
        }
        let line = serde_json::to_string(message).unwrap_or_default() + "\n";
        self.summing.take(message.sequence, line.as_bytes());
        self.messages += 1;
        // What only a newer build understands is written all the same.
        let (Went::On | Went::Decision(..) | Went::Over) = self.replaying.take(message)?;
        Ok(Some(line))
    }

    /// The manifest of all lines, by a build of this version; none where the log had nothing of the agent.
    pub fn end(self, version: &str) -> Option<Manifest> {
        if !self.replaying.missing().is_empty() {
            return None;
        }
        let report = self.replaying.report(version, Vec::new());
        let agent: &Name = self.choosing.agent();
        Some(Manifest {
            kairo: Kind::Incident,
            format: FORMAT,
            version: version.to_owned(),
            reader: READER,
            agent: agent.clone(),
            range: self.choosing.range(),
            around: self.choosing.met(),
            messages: self.messages,
            decisions: report.counts.decisions as u64,
            state: report.states.get(agent).cloned().unwrap_or_default(),
            redacted: false,
            replaced: BTreeMap::new(),
            sections: self.summing.end(),
            checksum: String::new(),
        })
    }
}
