//! The plan of a restore: the parts of a backup that streams are filled with. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kairo_core::subjects::{HOOKS_STREAM, TIMERS_STREAM};
use serde_json::{Value, json};

use crate::{
    manifest::{BackupPart, ConsumerPosition, FileEntry, LOG, Manifest, OBJECT_NAMES, OBJECTS, StreamPart},
    stream_archive::StreamArchiveState,
};

/// Up to where the log is to be as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The last message.
    pub sequence: u64,
    /// When it was stored.
    pub stored: Timestamp,
}

/// The way streams are filled from a backup.
#[derive(Clone, Copy, Debug)]
pub struct RestorePlan<'m> {
    pub manifest: &'m Manifest,
    /// None for all of it.
    pub cut: Option<Cut>,
}

/// A stream and what it is filled with.
#[derive(Clone, Debug, PartialEq)]
pub struct Filling {
    pub stream: &'static str,
    pub config: Value,
    pub state: StreamArchiveState,
    /// Names, and what the server keeps of them.
    pub consumers: Vec<(String, Value)>,
    pub files: Vec<FileEntry>,
}

impl<'m> RestorePlan<'m> {
    /// The last message of the log.
    pub fn log_end(&self) -> u64 {
        self.cut.map_or(self.manifest.log_end(), |cut| cut.sequence)
    }

    /// The newest part that ends where the log will, or before: what its timers, hooks and consumers had dealt with is there.
    fn settled_part(&self) -> Option<&'m BackupPart> {
        self.manifest.parts.iter().rev().find(|part| part.through <= self.log_end())
    }

    /// The log up to the cut, with its consumers where they were when the newest part was begun that ends before: what they are
    /// delivered once more they know.
    pub fn log(&self) -> Option<Filling> {
        let newest = self.manifest.newest_stream_part(LOG.name)?;
        let first_sequence = self.manifest.parts.first()?.streams.get(LOG.name)?.first_sequence;
        let files = self.manifest.stream_files(LOG.name).into_iter().filter(|file| file.first <= self.log_end());
        let consumers =
            self.settled_part().and_then(|part| part.streams.get(LOG.name)).map(consumers).unwrap_or_default();
        let state =
            StreamArchiveState { first_sequence, last_sequence: self.log_end(), ..StreamArchiveState::default() };
        Some(filling(LOG.stream, newest, files.collect(), consumers, state))
    }

    /// Returns the position up to which the router has handed on what users said; empty if it is not known.
    pub fn router_positions(&self) -> BTreeMap<String, u64> {
        self.settled_part().map(|part| part.routed.clone()).unwrap_or_default()
    }

    /// Timers or hooks, as they were in that part; without one, none, and whoever sets them reads all decisions again. Their
    /// messages are numbered from where no number was used: the log knows by it what it has taken.
    pub fn effects(&self, stream: &'static str) -> Option<Filling> {
        debug_assert!([TIMERS_STREAM, HOOKS_STREAM].contains(&stream), "what is done because of decisions");
        let newest = self.manifest.newest_stream_part(stream)?;
        let last_sequence = newest.last_sequence;
        let settled = self.settled_part().and_then(|part| part.streams.get(stream));
        let files = settled.map(|part| part.files.clone()).unwrap_or_default();
        let first_sequence = files.first().map_or(last_sequence + 1, |file| file.first);
        let consumers = settled.map(consumers).unwrap_or_default();
        let state = StreamArchiveState { first_sequence, last_sequence, ..StreamArchiveState::default() };
        Some(filling(stream, newest, files, consumers, state))
    }

    /// Returns the newest state of a stream, wherever the log is cut: keys that are destroyed or revoked stay so.
    pub fn newest(&self, stream: &'static str) -> Option<Filling> {
        let newest = self.manifest.newest_stream_part(stream)?;
        Some(whole_stream(stream, newest, newest.files.clone()))
    }

    /// Returns all that was kept of a stream that only grows.
    pub fn all_parts(&self, stream: &'static str) -> Option<Filling> {
        Some(whole_stream(stream, self.manifest.newest_stream_part(stream)?, self.manifest.stream_files(stream)))
    }

    /// Images and audio: all bytes that were kept, of which those are taken that a name is there for.
    pub fn objects(&self, stream: &'static str) -> Option<(Filling, Vec<FileEntry>)> {
        let names = self.manifest.newest_stream_part(OBJECT_NAMES)?;
        let bytes = self.manifest.stream_files(OBJECTS);
        let last_sequence = self.manifest.newest_stream_part(OBJECTS)?.last_sequence.max(names.last_sequence);
        let first_sequence = bytes.iter().chain(&names.files).map(|file| file.first).min().unwrap_or(last_sequence + 1);
        let state = StreamArchiveState { first_sequence, last_sequence, ..StreamArchiveState::default() };
        Some((filling(stream, names, bytes, Vec::new(), state), names.files.clone()))
    }
}

fn whole_stream(stream: &'static str, part: &StreamPart, files: Vec<FileEntry>) -> Filling {
    let last_sequence = part.last_sequence;
    let first_sequence = files.first().map_or(last_sequence + 1, |file| file.first);
    filling(
        stream,
        part,
        files,
        Vec::new(),
        StreamArchiveState { first_sequence, last_sequence, ..StreamArchiveState::default() },
    )
}

fn filling(
    stream: &'static str,
    part: &StreamPart,
    files: Vec<FileEntry>,
    consumers: Vec<(String, Value)>,
    state: StreamArchiveState,
) -> Filling {
    let messages = files.iter().map(|file| file.messages).sum();
    let bytes = files.iter().map(|file| file.content_bytes).sum();
    Filling {
        stream,
        config: part.config.clone(),
        state: StreamArchiveState { messages, bytes, ..state },
        consumers,
        files,
    }
}

/// As the server keeps them.
fn consumers(part: &StreamPart) -> Vec<(String, Value)> {
    let kept = |ConsumerPosition { name, config, delivered, sequence }: &ConsumerPosition| {
        let at = json!({ "consumer_seq": delivered, "stream_seq": sequence });
        (name.clone(), json!({ "config": config, "state": { "delivered": at, "ack_floor": at } }))
    };
    part.consumers.iter().map(kept).collect()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::{
        manifest::{BackupKind, FORMAT},
        rooted_fs::RelativePath,
    };

    fn file(first: u64, last: u64) -> FileEntry {
        FileEntry {
            path: RelativePath::parse(&first.to_string()).unwrap(),
            sha256: String::new(),
            bytes: 0,
            messages: last - first + 1,
            content_bytes: 0,
            first,
            last,
            last_stored: Timestamp::UNIX_EPOCH,
        }
    }

    fn part(number: u32, (after, through): (u64, u64), timers: Vec<FileEntry>, acknowledged: u64) -> BackupPart {
        let standing = ConsumerPosition {
            name: "tool-runner".to_owned(),
            config: json!({}),
            delivered: acknowledged / 2,
            sequence: acknowledged,
        };
        let stream = |files: Vec<FileEntry>, last_sequence, consumers| StreamPart {
            config: json!({}),
            first_sequence: 1,
            last_sequence,
            consumers,
            files,
        };
        let streams = BTreeMap::from([
            (LOG.name.to_owned(), stream(vec![file(after + 1, through)], through, vec![standing])),
            (TIMERS_STREAM.to_owned(), stream(timers, u64::from(number) * 10, Vec::new())),
        ]);
        let routed = BTreeMap::from([("checkpoint.router.0".to_owned(), acknowledged)]);
        BackupPart { number, taken: Timestamp::UNIX_EPOCH, after, through, routed, streams }
    }

    fn manifest() -> Manifest {
        let parts = vec![part(1, (0, 50), vec![file(3, 9)], 40), part(2, (50, 80), vec![file(12, 20)], 70)];
        Manifest { kairo: BackupKind::Backup, format: FORMAT, version: String::new(), log: Uuid::nil(), parts }
    }

    fn cut(manifest: &Manifest, sequence: u64) -> RestorePlan<'_> {
        RestorePlan { manifest, cut: Some(Cut { sequence, stored: Timestamp::UNIX_EPOCH }) }
    }

    fn acknowledged(filling: &Filling) -> Option<u64> {
        filling.consumers.first().and_then(|(_, consumer)| consumer["state"]["ack_floor"]["stream_seq"].as_u64())
    }

    #[test]
    fn all_of_it_goes_on_where_the_last_part_was_begun() {
        let manifest = manifest();
        let plan = RestorePlan { manifest: &manifest, cut: None };
        let log = plan.log().unwrap();
        assert_eq!((log.state.last_sequence, log.state.messages, acknowledged(&log)), (80, 80, Some(70)));
        let timers = plan.effects(TIMERS_STREAM).unwrap();
        assert_eq!((timers.state.first_sequence, timers.state.last_sequence), (12, 20));
    }

    #[test]
    fn of_a_cut_log_effects_are_those_of_a_part_that_ends_before() {
        let manifest = manifest();
        let log = cut(&manifest, 60).log().unwrap();
        assert_eq!((log.state.last_sequence, log.files.len(), acknowledged(&log)), (60, 2, Some(40)));
        assert_eq!(cut(&manifest, 60).router_positions().into_values().collect::<Vec<_>>(), [40]);
        let timers = cut(&manifest, 60).effects(TIMERS_STREAM).unwrap();
        assert_eq!(
            (timers.files, timers.state.last_sequence),
            (vec![file(3, 9)], 20),
            "numbered from where none was used"
        );
        assert_eq!(acknowledged(&cut(&manifest, 80).log().unwrap()), Some(70));
    }

    #[test]
    fn before_the_first_part_all_decisions_are_read_again() {
        let manifest = manifest();
        let log = cut(&manifest, 49).log().unwrap();
        assert_eq!((log.files.len(), acknowledged(&log)), (1, None));
        assert!(cut(&manifest, 49).router_positions().is_empty());
        let timers = cut(&manifest, 49).effects(TIMERS_STREAM).unwrap();
        assert_eq!((timers.files.len(), timers.state.first_sequence, timers.state.last_sequence), (0, 21, 20));
    }
}
