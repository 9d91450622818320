//! Incident files: what an agent's decisions can be made again from, in one file that needs no server. The first line is the
//! [`Manifest`]; each line behind it is a message of the log, in the log's order, and behind the messages stand the
//! [`objects`] that they name. Lines are counted and summed up section by section, so that what is cut off or edited is told
//! with its place. The sums tell accidents from what was exported; they prove nothing against somebody who makes new ones.

mod message_selection;
pub mod objects;
pub mod redaction;
mod verifier;
mod writer;

use std::{collections::BTreeMap, fmt};

use kairo_events::ids::Name;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use self::objects::{ObjectError, Objects};
pub use self::{
    message_selection::{AROUND, Anchor, MessageSelection},
    verifier::{VerifiedLine, Verifier},
    writer::{IncidentWriter, MessageSectionBuilder},
};
use crate::{document_format, report::Range};

/// The newest version of the format, which files with objects have. Builds that read the first one know none of those.
pub const FORMAT: u32 = 2;
/// The version of files without objects.
const WITHOUT_OBJECTS: u32 = 1;
/// Messages of a section, or objects.
pub const SECTION: u64 = 1_000;

/// The kind of a file, as it states itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IncidentKind {
    #[default]
    Incident,
}

/// The manifest of the file, in its first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub kairo: IncidentKind,
    pub format: u32,
    /// The version of the build that exported it, and the version of readers that it was.
    pub version: String,
    pub reader: u32,
    pub agent: Name,
    /// The decisions that it is about; what stands before them is folded.
    pub range: Range,
    /// The message that it was exported around.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub around: Option<u64>,
    pub messages: u64,
    pub decisions: u64,
    /// A digest of the agent's state behind all of it, as that build came to it.
    pub state: String,
    /// True if tokens replace personal and secret values; `replaced` counts the values of each kind.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub replaced: BTreeMap<String, u64>,
    /// The objects that the messages name; none if they name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<Objects>,
    pub sections: Vec<MessageSection>,
    /// SHA-256 of this line with none in this place, in hex.
    pub checksum: String,
}

/// Lines that follow each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageSection {
    pub messages: u64,
    /// The sequences of the first and the last of them.
    pub first: u64,
    pub last: u64,
    /// SHA-256 of the lines with their ends, in hex.
    pub sha256: String,
}

/// The error found in a file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum IncidentError {
    #[error("line 1: expected the manifest of an incident file: {0}")]
    Manifest(String),
    #[error("line 1: the format is version {found}, and this build reads up to {FORMAT}: open it with a newer build")]
    Newer { found: u32 },
    #[error("line 1: the manifest is not as it was exported: its checksum is another")]
    Edited,
    #[error(
        "line {line}: section {section} (messages {first} to {last}) is not as it was exported: its checksum is another"
    )]
    Section { line: u64, section: usize, first: u64, last: u64 },
    #[error("line {line}: object {object}: {why}")]
    Object { line: u64, object: String, why: ObjectError },
    #[error("line {line}: section {section} of the objects is not as it was exported: its checksum is another")]
    Objects { line: u64, section: usize },
    #[error("line {line}: the file ends there, behind {found} of {expected} {of}: it was cut off")]
    Truncated { line: u64, found: u64, expected: u64, of: SectionContent },
    #[error("line {line}: expected the end of the file behind {expected} {of}: something was added")]
    Longer { line: u64, expected: u64, of: SectionContent },
}

/// The content of a section's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionContent {
    Messages,
    Objects,
}

impl fmt::Display for SectionContent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Messages => "messages",
            Self::Objects => "objects",
        })
    }
}

/// Returns true if the first line marks the file as an incident file.
pub fn is_manifest(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct ManifestHeader {
        #[serde(rename = "kairo")]
        _kairo: IncidentKind,
    }
    serde_json::from_slice::<ManifestHeader>(line).is_ok()
}

impl Manifest {
    /// Reads the first line.
    ///
    /// # Errors
    /// If the line is no manifest, is of a newer build, or was edited.
    pub fn parse(line: &[u8]) -> Result<Self, IncidentError> {
        let unreadable = |error: serde_json::Error| IncidentError::Manifest(error.to_string());
        let found = document_format::read_version::<IncidentKind>(line).map_err(unreadable)?;
        if found > FORMAT {
            return Err(IncidentError::Newer { found });
        }
        let manifest: Self = serde_json::from_slice(line).map_err(unreadable)?;
        // Whatever this build does not know of it is part of the sum as well.
        let text = String::from_utf8_lossy(line).trim_end().replace(&manifest.checksum, "");
        match to_hex(Sha256::digest(text.as_bytes())) == manifest.checksum {
            true => Ok(manifest),
            false => Err(IncidentError::Edited),
        }
    }

    /// Adds these objects behind the messages.
    #[must_use]
    pub fn with_objects(self, objects: Objects) -> Self {
        let format = if objects.count > 0 { FORMAT } else { WITHOUT_OBJECTS };
        Self { format, objects: Some(objects).filter(|objects| !objects.is_empty()), ..self }
    }

    /// The first line of the file.
    pub fn to_line(&self) -> String {
        let without = serde_json::to_string(&Self { checksum: String::new(), ..self.clone() }).unwrap_or_default();
        let checksum = to_hex(Sha256::digest(without.as_bytes()));
        serde_json::to_string(&Self { checksum, ..self.clone() }).unwrap_or_default() + "\n"
    }
}

fn to_hex(digest: impl AsRef<[u8]>) -> String {
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kairo_mind::replay::changes::ReplayChanges;

    use super::*;
    use crate::testing::name;
    use crate::{
        replayer::Replayer,
        whatif::{MessageChange, WhatIf},
    };

    fn lines(count: u64) -> Vec<Vec<u8>> {
        (1..=count).map(|at| format!("{{\"sequence\":{at}}}\n").into_bytes()).collect()
    }

    fn manifest(lines: &[Vec<u8>]) -> Manifest {
        let mut summing = MessageSectionBuilder::default();
        (1..).zip(lines).for_each(|(at, line)| summing.add(at, line));
        Manifest {
            kairo: IncidentKind::Incident,
            format: WITHOUT_OBJECTS,
            version: "1".into(),
            reader: 1,
            agent: name("cook"),
            range: Range::default(),
            around: None,
            messages: lines.len() as u64,
            decisions: 0,
            state: String::new(),
            redacted: false,
            replaced: BTreeMap::new(),
            objects: None,
            sections: summing.finish(),
            checksum: String::new(),
        }
    }

    fn verified(manifest: &Manifest, lines: &[Vec<u8>]) -> Result<(), IncidentError> {
        let mut verifying = Verifier::new(manifest);
        lines.iter().try_for_each(|line| verifying.verify(line).map(drop))?;
        verifying.finish()
    }

    #[test]
    fn what_is_cut_off_edited_or_added_is_told_with_its_place() {
        let mut lines = lines(SECTION * 2 + 5);
        let manifest = manifest(&lines);
        assert_eq!(manifest.sections.len(), 3);
        assert_eq!(verified(&manifest, &lines), Ok(()));
        let cut = verified(&manifest, &lines[..1_500]);
        assert_eq!(
            cut,
            Err(IncidentError::Truncated { line: 1_501, found: 1_500, expected: 2_005, of: SectionContent::Messages })
        );
        assert!(matches!(verified(&manifest, &[]), Err(IncidentError::Truncated { found: 0, .. })));
        lines.push(b"{}\n".to_vec());
        assert_eq!(
            verified(&manifest, &lines),
            Err(IncidentError::Longer { line: 2_007, expected: 2_005, of: SectionContent::Messages })
        );
        lines.pop();
        lines[1_200][3] = b'S';
        let edited = IncidentError::Section { line: 1_002, section: 2, first: 1_001, last: 2_000 };
        assert_eq!(verified(&manifest, &lines), Err(edited));
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written_and_nothing_else_is_one() {
        let manifest = manifest(&lines(3));
        let line = manifest.to_line();
        let read = Manifest::parse(line.as_bytes()).unwrap();
        assert_eq!(Manifest { checksum: String::new(), ..read }, manifest);
        assert!(is_manifest(line.as_bytes()) && !is_manifest(b"{\"sequence\":1}") && !is_manifest(b"kairo"));
        let edited = line.replace("\"cook\"", "\"coke\"");
        assert_eq!(Manifest::parse(edited.as_bytes()), Err(IncidentError::Edited));
        let newer = Manifest { format: FORMAT + 1, ..manifest }.to_line();
        assert_eq!(Manifest::parse(newer.as_bytes()), Err(IncidentError::Newer { found: FORMAT + 1 }));
        assert!(matches!(Manifest::parse(b"{\"kairo\":\"incident\"}"), Err(IncidentError::Manifest(_))));
    }

    #[test]
    fn files_of_strangers_are_refused_or_replayed_and_never_bring_it_down_fuzz() {
        kairo_fuzz::Corpus::named("incidents").fuzz(|bytes| {
            let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
            if let Some(manifest) = lines.next().and_then(|line| Manifest::parse(line).ok()) {
                let mut verifying = Verifier::new(&manifest);
                let whole =
                    lines.try_for_each(|line| verifying.verify(line).map(drop)).and_then(|()| verifying.finish());
                let lines = bytes.split_inclusive(|byte| *byte == b'\n').count() as u64;
                let objects = manifest.objects.as_ref().map_or(0, |objects| objects.count);
                assert!(whole.is_err() || lines == 1 + manifest.messages + objects);
            }
            // What somebody sums up anew is as strange as it was.
            let mut replaying = Replayer::new(BTreeSet::new(), Range::default(), ReplayChanges::default(), None);
            let mut whatif = WhatIf::new(4, MessageChange::Drop, None);
            for message in bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()) {
                let (_, _) = (replaying.replay(&message), whatif.apply(&message));
            }
            let report = replaying.report("", Vec::new());
            assert!(report.counts.same <= report.counts.decisions);
        });
    }
}
