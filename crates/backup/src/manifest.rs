//! The manifest of a backup's folder: parts, each with the files of its streams, their sizes and checksums.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kairo_core::subjects::{DLQ_STREAM, EVENTS_STREAM, HOOKS_STREAM, TIMERS_STREAM};
use kairo_replay::document_format;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{backup_folder, rooted_fs::RelativePath};

/// Longest manifest that is read, in bytes.
pub const MOST: u64 = 64 * 1024 * 1024;
/// The version of the format that is written, and the newest that is read.
pub const FORMAT: u32 = 1;

/// The way a stream is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupMode {
    /// It only grows: a part holds what came since the one before.
    Grown,
    /// A part holds all of it as it is then.
    Whole,
    /// A part holds all of it as it is then, and no earlier part keeps its content: destroyed data must be gone here,
    /// too.
    Replaced,
}

/// A stream that is kept, and the part of it that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamSelection {
    pub name: &'static str,
    pub stream: &'static str,
    pub filter: &'static str,
    pub keeping: BackupMode,
}

/// The streams that do not follow from the log, in the order in which they are read: timers and hooks before the log,
/// as what is armed and registered is decided on before, and all others behind it, since what the log names is there
/// before it is named.
pub const BEFORE: [StreamSelection; 2] =
    [select_stream(TIMERS_STREAM, BackupMode::Whole), select_stream(HOOKS_STREAM, BackupMode::Whole)];
pub const LOG: StreamSelection = select_stream(EVENTS_STREAM, BackupMode::Grown);
pub const BEHIND: [StreamSelection; 5] = [
    select_stream(DATA_KEYS, BackupMode::Replaced),
    select_stream(API_KEYS, BackupMode::Replaced),
    select_stream(DLQ_STREAM, BackupMode::Grown),
    StreamSelection {
        name: OBJECTS,
        stream: OBJECTS_STREAM,
        filter: "$O.KAIRO_OBJECTS.C.>",
        keeping: BackupMode::Grown,
    },
    StreamSelection {
        name: OBJECT_NAMES,
        stream: OBJECTS_STREAM,
        filter: "$O.KAIRO_OBJECTS.M.>",
        keeping: BackupMode::Whole,
    },
];

pub const DATA_KEYS: &str = "KV_KAIRO_DATA_KEYS";
pub const API_KEYS: &str = "KV_KAIRO_KEYS";
pub const OBJECTS_STREAM: &str = "OBJ_KAIRO_OBJECTS";
/// The bytes of images and audio, and which there are.
pub const OBJECTS: &str = "OBJ_KAIRO_OBJECTS.bytes";
pub const OBJECT_NAMES: &str = "OBJ_KAIRO_OBJECTS.names";

const fn select_stream(stream: &'static str, keeping: BackupMode) -> StreamSelection {
    StreamSelection { name: stream, stream, filter: ">", keeping }
}

/// The kind of contents that a manifest says it describes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackupKind {
    #[default]
    Backup,
    /// Of the log alone, up to an age: it is read as log, and nothing is restored from it.
    Archive,
}

impl BackupKind {
    /// As a sentence names it.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Backup => "a backup",
            Self::Archive => "an archive",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub kairo: BackupKind,
    pub format: u32,
    /// The version of the build that wrote it last.
    pub version: String,
    /// The id of the log.
    pub log: Uuid,
    /// The first is whole, each later one is what came since.
    pub parts: Vec<BackupPart>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackupPart {
    pub number: u32,
    /// When it was begun, by the clock of whoever took it.
    pub taken: Timestamp,
    /// It holds the log behind this sequence, up to and including that one.
    pub after: u64,
    pub through: u64,
    /// The router's position in the log before anything was read, by the keys of its checkpoints: up to there it had
    /// handed on what users said. Without it the router would hand on all of it once more: agents would recognize it,
    /// but the log would hold it twice.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub routed: BTreeMap<String, u64>,
    pub streams: BTreeMap<String, StreamPart>,
}

/// The contents of a part from one stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamPart {
    /// As the server told it.
    pub config: Value,
    pub first_sequence: u64,
    pub last_sequence: u64,
    /// The positions of its durable consumers before anything was read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consumers: Vec<ConsumerPosition>,
    pub files: Vec<FileEntry>,
}

/// A durable consumer: up to where all is acknowledged that it was delivered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConsumerPosition {
    pub name: String,
    pub config: Value,
    /// The server's count of what it delivered up to there.
    pub delivered: u64,
    pub sequence: u64,
}

/// A file of a part, and what it is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// From the folder: a file in the folder of its part, whose name begins with that of its stream.
    pub path: RelativePath,
    /// Of the file as it is, in hex.
    pub sha256: String,
    /// Its size.
    pub bytes: u64,
    pub messages: u64,
    /// Of bodies and headers.
    pub content_bytes: u64,
    pub first: u64,
    pub last: u64,
    pub last_stored: Timestamp,
}

/// The reason a manifest cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    #[error("expected a manifest that `kairo backup` wrote: {0}")]
    NotOne(String),
    #[error("the format is version {found}, and this build reads up to {FORMAT}: use a newer build")]
    Newer { found: u32 },
    #[error("part {number} begins behind {after}, and the one before ends at {through}: a part is missing")]
    Torn { number: u32, after: u64, through: u64 },
    #[error("part {number} stands behind part {before}: expected parts in the order of their numbers, from 1 on")]
    Unordered { number: u32, before: u32 },
    #[error("{path} is said to be of {stream} in part {number}: expected a file {expected}*, named once")]
    Misplaced { path: RelativePath, stream: String, number: u32, expected: String },
    #[error("{name:?} is no name of a consumer (part {number})")]
    Misnamed { name: String, number: u32 },
    #[error("it is damaged: its checksum is {found}, and it says {expected}")]
    Damaged { expected: String, found: String },
}

/// In a manifest's file, the SHA-256 of all the rest of it, in hex. Those of builds of before have none.
const CHECKSUM: &str = "sha256";

/// The checksum of a manifest without one: of its JSON on one line.
fn checksum(manifest: &Value) -> String {
    Sha256::digest(manifest.to_string()).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Manifest {
    /// # Errors
    /// If it is no manifest or one of a newer build, its parts do not follow each other, or it names files outside the
    /// folders of their parts: the files it names are read, written over and removed.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        let not_one = |error: serde_json::Error| ManifestError::NotOne(error.to_string());
        let found = document_format::read_version::<BackupKind>(text.as_bytes()).map_err(not_one)?;
        if found > FORMAT {
            return Err(ManifestError::Newer { found });
        }
        let mut value: Value = serde_json::from_str(text).map_err(not_one)?;
        if let Some(Value::String(expected)) = value.as_object_mut().and_then(|fields| fields.remove(CHECKSUM)) {
            let found = checksum(&value);
            if found != expected {
                return Err(ManifestError::Damaged { expected, found });
            }
        }
        let manifest: Self = serde_json::from_value(value).map_err(not_one)?;
        let mut through = 0;
        let mut before = 0;
        let mut named = BTreeSet::new();
        for part in &manifest.parts {
            let BackupPart { number, after, through: to, .. } = part;
            if *after != through || to < after {
                return Err(ManifestError::Torn { number: *number, after: *after, through });
            }
            if *number <= before {
                return Err(ManifestError::Unordered { number: *number, before });
            }
            (through, before) = (*to, *number);
            part.check(&mut named)?;
        }
        Ok(manifest)
    }

    /// Returns the manifest as it stands in its file, with its checksum.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub fn to_text(&self) -> serde_json::Result<Vec<u8>> {
        let mut value = serde_json::to_value(self)?;
        let checksum = checksum(&value);
        if let Some(fields) = value.as_object_mut() {
            fields.insert(CHECKSUM.to_owned(), checksum.into());
        }
        let mut text = serde_json::to_vec_pretty(&value)?;
        text.push(b'\n');
        Ok(text)
    }

    /// Returns the sequence behind which the kept log begins.
    pub fn begins_behind(&self) -> u64 {
        let first = self.parts.iter().find_map(|part| part.streams.get(LOG.name)).map(|log| log.first_sequence);
        first.map_or(0, |first| first.saturating_sub(1))
    }

    /// The last message of the log that it holds.
    pub fn log_end(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.through)
    }

    /// Returns the stream's entry in the newest part that has one.
    pub fn newest_stream_part(&self, name: &str) -> Option<&StreamPart> {
        self.parts.iter().rev().find_map(|part| part.streams.get(name))
    }

    /// All files of what only grows, in order.
    pub fn stream_files(&self, name: &str) -> Vec<FileEntry> {
        self.parts.iter().filter_map(|part| part.streams.get(name)).flat_map(|stream| stream.files.clone()).collect()
    }

    /// Every file.
    pub fn files(&self) -> impl Iterator<Item = &FileEntry> {
        self.parts.iter().flat_map(|part| part.streams.values()).flat_map(|stream| &stream.files)
    }
}

impl BackupPart {
    /// Refuses files outside the folder of the part, files that the manifest names twice (`named` has those of the parts before), and
    /// names that no consumer can have.
    fn check<'m>(&'m self, named: &mut BTreeSet<&'m RelativePath>) -> Result<(), ManifestError> {
        let number = self.number;
        let own = backup_folder::part_folder_name(number);
        for (stream, part) in &self.streams {
            for FileEntry { path, .. } in &part.files {
                let is_in_place = path.split().0 == Some(&own) && path.split().1.starts_with(stream.as_str());
                if !is_in_place || !named.insert(path) {
                    let (path, stream, expected) = (path.clone(), stream.clone(), format!("{own}/{stream}"));
                    return Err(ManifestError::Misplaced { path, stream, number, expected });
                }
            }
            // As nats-server has them, which makes folders of them.
            let is_none = |it: char| it.is_control() || it.is_whitespace() || ".*>/\\".contains(it);
            let is_name = |name: &str| !name.is_empty() && !name.contains(is_none);
            if let Some(ConsumerPosition { name, .. }) = part.consumers.iter().find(|standing| !is_name(&standing.name))
            {
                return Err(ManifestError::Misnamed { name: name.clone(), number });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use kairo_core::subjects::{DATA_KEYS_BUCKET, KEYS_BUCKET, OBJECTS_BUCKET};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn all_that_is_kept_is_of_streams_that_there_are() {
        let all = BEFORE.into_iter().chain([LOG]).chain(BEHIND);
        assert!(all.clone().all(|kept| kairo_core::subjects::STREAMS.contains(&kept.stream)));
        assert_eq!(DATA_KEYS, format!("KV_{DATA_KEYS_BUCKET}"));
        assert_eq!(API_KEYS, format!("KV_{KEYS_BUCKET}"));
        assert_eq!(OBJECTS_STREAM, format!("OBJ_{OBJECTS_BUCKET}"));
    }

    fn manifest(parts: &[(u64, u64)]) -> String {
        let parts = parts.iter().zip(1..).map(|((after, through), number)| BackupPart {
            number,
            taken: Timestamp::UNIX_EPOCH,
            after: *after,
            through: *through,
            routed: BTreeMap::new(),
            streams: BTreeMap::new(),
        });
        let kairo = BackupKind::Backup;
        let version = String::new();
        let manifest = Manifest { kairo, format: FORMAT, version, log: Uuid::nil(), parts: parts.collect() };
        serde_json::to_string(&manifest).unwrap()
    }

    #[test]
    fn parts_that_do_not_follow_each_other_are_refused() {
        assert_eq!(Manifest::parse(&manifest(&[(0, 5), (5, 5), (5, 9)])).unwrap().log_end(), 9);
        let torn = ManifestError::Torn { number: 2, after: 6, through: 5 };
        assert_eq!(Manifest::parse(&manifest(&[(0, 5), (6, 9)])), Err(torn));
        let newer = manifest(&[]).replace("\"format\":1", "\"format\":2");
        assert_eq!(Manifest::parse(&newer), Err(ManifestError::Newer { found: 2 }));
        assert!(matches!(Manifest::parse("{}"), Err(ManifestError::NotOne(_))));
        let twice = manifest(&[(0, 5), (5, 9)]).replace("\"number\":2", "\"number\":1");
        assert_eq!(Manifest::parse(&twice), Err(ManifestError::Unordered { number: 1, before: 1 }));
    }

    proptest! {
        /// Whatever single character of it is lost or another one.
        #[test]
        fn a_damaged_manifest_is_no_other_manifest(at in 0_usize..4096, replacement in "[ -~]?") {
            let manifest = Manifest::parse(&manifest(&[(0, 5), (5, 9), (9, 4711)])).unwrap();
            let text = String::from_utf8(manifest.to_text().unwrap()).unwrap();
            prop_assert_eq!(Manifest::parse(&text).unwrap(), manifest.clone());
            let at = at % text.len();
            let mut damaged = text.clone();
            damaged.replace_range(at..=at, &replacement);
            // What changes no value, such as a space between two of them, is as good; and without the checksum's own name it is one of before.
            if let Ok(read) = Manifest::parse(&damaged) {
                prop_assert_eq!(read, manifest);
            }
        }
    }

    #[test]
    fn consumers_are_named_as_those_of_a_server() {
        let named = |name: &str| {
            let mut manifest: Value = serde_json::from_str(&manifest(&[(0, 5)])).unwrap();
            let standing = serde_json::json!({ "name": name, "config": {}, "delivered": 1, "sequence": 1 });
            manifest["parts"][0]["streams"][LOG.name] = serde_json::json!({
                "config": {}, "first_sequence": 1, "last_sequence": 5, "files": [], "consumers": [standing],
            });
            Manifest::parse(&manifest.to_string())
        };
        assert!(named("tool-runner").is_ok());
        for wrong in ["", "../../x", "a/b", "a\\b", "a.b", "a b", "*", "a\n"] {
            assert_eq!(named(wrong), Err(ManifestError::Misnamed { name: wrong.to_owned(), number: 1 }), "{wrong:?}");
        }
    }
}
