//! Reading an archive in a service, for what the log no longer has. An archive grows meanwhile, and its parts never change.

use std::{
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use async_nats::{HeaderMap, HeaderName, HeaderValue};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use kairo_core::{
    bus::{archive::ArchiveReader, port::Cause},
    config::{Mistake, Validate},
    partition,
    record::RawMessage,
};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::{
    backup_folder,
    error::BackupError,
    manifest::{BackupKind, FileEntry, LOG, Manifest},
    message_line::MessageLine,
    rooted_fs::{self, RelativePath},
    segments::SegmentLines,
};

/// Messages that are read ahead.
const AHEAD: usize = 256;
/// Largest list of a file's owners, unpacked, in bytes.
const OWNERS: u64 = 64 * 1024 * 1024;

/// The archive of a log that was trimmed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ArchiveConfig {
    /// The folder that `kairo archive` writes, to be read where the log no longer has its beginning; empty for none. Default empty.
    pub folder: String,
}

impl Validate for ArchiveConfig {
    fn mistakes(&self) -> Vec<Mistake> {
        Vec::new()
    }
}

impl ArchiveConfig {
    /// Returns the archive to read from; none if no folder is named.
    pub fn archive_reader(&self) -> Option<Arc<dyn ArchiveReader>> {
        let archive = (!self.folder.is_empty()).then(|| ArchiveFolder { path: PathBuf::from(&self.folder) })?;
        Some(Arc::new(archive))
    }
}

/// A folder that holds an archive.
#[derive(Debug)]
struct ArchiveFolder {
    path: PathBuf,
}

impl ArchiveReader for ArchiveFolder {
    fn read_range(
        &self,
        logs: Vec<Uuid>,
        subjects: Vec<String>,
        after: u64,
        before: u64,
    ) -> mpsc::Receiver<Result<RawMessage, Cause>> {
        let (sender, receiver) = mpsc::channel(AHEAD);
        let path = self.path.clone();
        tokio::task::spawn_blocking(move || {
            let take = |message| sender.blocking_send(message).is_ok();
            if let Err(error) = read_messages(&path, &logs, &subjects, (after, before), |raw| take(Ok(raw))) {
                take(Err(error.into()));
            }
        });
        receiver
    }

    fn count_before(&self, logs: &[Uuid], before: u64) -> Result<u64, Cause> {
        let manifest = read_complete_manifest(&self.path, logs, before)?;
        let mut count = 0;
        for file in manifest.stream_files(LOG.name).into_iter().filter(|file| file.first < before) {
            count += match file.last < before {
                true => file.messages,
                false => {
                    let lines = SegmentLines::new(&self.path, vec![file]);
                    let before = lines.take_while(|line| line.as_ref().is_ok_and(|line| line.sequence < before));
                    before.count() as u64
                }
            };
        }
        Ok(count)
    }
}

/// The manifest of an archive of one of these logs that has all of it up to there.
fn read_complete_manifest(path: &Path, logs: &[Uuid], before: u64) -> Result<Manifest, BackupError> {
    let refused = |why: String| Err(BackupError::Refused(format!("archive.folder, {}: {why}", path.display())));
    let manifest = backup_folder::read_manifest_of_kind(path, BackupKind::Archive)?;
    let begins = manifest.begins_behind();
    let through = manifest.log_end();
    if !logs.contains(&manifest.log) {
        let these: Vec<String> = logs.iter().map(Uuid::to_string).collect();
        return refused(format!("it is of the log {}, and this is {}", manifest.log, these.join(", before ")));
    }
    if begins > 0 || through + 1 < before {
        return refused(format!("it has the log behind {begins} up to {through}, and all before {before} is wanted"));
    }
    Ok(manifest)
}

/// Hands over messages for as long as somebody takes them.
fn read_messages(
    path: &Path,
    logs: &[Uuid],
    subjects: &[String],
    (after, before): (u64, u64),
    mut take: impl FnMut(RawMessage) -> bool,
) -> Result<(), BackupError> {
    let manifest = read_complete_manifest(path, logs, before)?;
    let within = |file: &FileEntry| file.last > after && file.first < before && may_have_subjects(path, file, subjects);
    let files = manifest.stream_files(LOG.name).into_iter().filter(within).collect();
    for line in SegmentLines::new(path, files) {
        let line = line?;
        if line.sequence >= before {
            break;
        }
        let (subject, _) = partition::split_subject(&line.subject);
        let is_wanted = line.sequence > after && (subjects.is_empty() || subjects.iter().any(|it| it == subject));
        if is_wanted && !take(to_raw(&line)?) {
            break;
        }
    }
    Ok(())
}

/// A message as a stream would bring it.
///
/// # Errors
/// If its headers are invalid.
pub(crate) fn to_raw(line: &MessageLine) -> Result<RawMessage, BackupError> {
    let (subject, partition) = partition::split_subject(&line.subject);
    let headers = header_map(line.sequence, &line.headers)?;
    let sequence = line.sequence;
    let subject = subject.to_owned();
    let payload = line.data.clone().into();
    Ok(RawMessage { sequence, subject, partition, headers, payload, sealed: None, stored: line.stored })
}

/// The headers of a message as the client has them.
///
/// # Errors
/// If they are invalid.
pub(crate) fn header_map(sequence: u64, headers: &[(String, String)]) -> Result<HeaderMap, BackupError> {
    let is_none = || BackupError::Refused(format!("message {sequence} has a header that is none"));
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name: HeaderName = name.parse().map_err(|_| is_none())?;
        map.append(name, value.parse::<HeaderValue>().map_err(|_| is_none())?);
    }
    Ok(map)
}

/// Returns true if a file may have a message on one of these subjects. If its owners are not known, it may.
fn may_have_subjects(path: &Path, file: &FileEntry, subjects: &[String]) -> bool {
    let Some(owners) = read_owners(path, file).filter(|_| !subjects.is_empty()) else { return true };
    let has = |subject: &String| subject_owner(subject).is_some_and(|owner| owners.iter().any(|it| it == owner));
    subjects.iter().any(has)
}

/// The third token of a subject.
pub(crate) fn subject_owner(subject: &str) -> Option<&str> {
    subject.split('.').nth(2)
}

/// The suffix of owners files: `FILE.owners` lists the users whose messages `FILE` has.
pub(crate) const OWNERS_OF: &str = ".owners";

fn owners_path(file: &FileEntry) -> io::Result<RelativePath> {
    Ok(file.path.with_suffix(OWNERS_OF)?)
}

/// Writes beside a file whose messages it has, so that not all files are read for one agent. It says of which file it is.
pub(crate) fn write_owners(
    path: &Path,
    file: &FileEntry,
    owners: impl Iterator<Item = String>,
) -> Result<(), BackupError> {
    let written = || {
        let mut encoder = GzEncoder::new(rooted_fs::create(path, &owners_path(file)?)?, Compression::fast());
        writeln!(encoder, "{}", file.sha256)?;
        for owner in owners {
            writeln!(encoder, "{owner}")?;
        }
        encoder.finish()?.sync_all()
    };
    written().map_err(BackupError::file("write", file.path.full_path(path).with_extension("gz.owners")))
}

/// Returns the owners of the messages in a file; none if they are not known, or are those of another file.
fn read_owners(path: &Path, file: &FileEntry) -> Option<Vec<String>> {
    let packed = owners_path(file).and_then(|owners| rooted_fs::open_to_read(path, &owners)).ok()?;
    let mut text = String::new();
    GzDecoder::new(packed).take(OWNERS).read_to_string(&mut text).ok()?;
    let mut lines = text.lines().map(str::to_owned);
    (lines.next()? == file.sha256 && text.len() < usize::try_from(OWNERS).unwrap_or(usize::MAX))
        .then(|| lines.collect())
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fs};

    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::{
        manifest::{BackupPart, FORMAT, StreamPart},
        segments::SegmentWriter,
    };

    const LOG_ID: Uuid = Uuid::from_u128(7);

    fn line(sequence: u64, owner: &str) -> MessageLine {
        let stored = Timestamp::UNIX_EPOCH;
        let subject = format!("kairo.agent.{owner}.message.3");
        MessageLine { sequence, stored, subject, headers: vec![("ce-id".into(), "x".into())], data: vec![1] }
    }

    /// An archive with a part of these messages each.
    fn archive(parts: &[&[(u64, &str)]]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let mut all = Vec::new();
        let mut after = 0;
        for (number, messages) in (1..).zip(parts) {
            let place = backup_folder::part_folder_name(number);
            rooted_fs::create_folder(folder.path(), &RelativePath::parse(&place).unwrap()).unwrap();
            let mut writer = SegmentWriter::new(folder.path(), format!("{place}/{}", LOG.name));
            messages.iter().for_each(|(sequence, owner)| writer.write(&line(*sequence, owner)).unwrap());
            let files = writer.finish().unwrap();
            let through = files.last().unwrap().last;
            let first_sequence = 1;
            let consumers = Vec::new();
            let log = StreamPart { config: json!({}), first_sequence, last_sequence: through, consumers, files };
            let streams = BTreeMap::from([(LOG.name.to_owned(), log)]);
            let taken = Timestamp::UNIX_EPOCH;
            let routed = BTreeMap::new();
            all.push(BackupPart { number, taken, after, through, routed, streams });
            after = through;
        }
        let manifest =
            Manifest { kairo: BackupKind::Archive, format: FORMAT, version: String::new(), log: LOG_ID, parts: all };
        fs::write(folder.path().join("manifest.json"), serde_json::to_vec(&manifest).unwrap()).unwrap();
        folder
    }

    fn of(folder: &Path, logs: &[Uuid], owner: &str, within: (u64, u64)) -> Result<Vec<u64>, BackupError> {
        let subjects = if owner.is_empty() { Vec::new() } else { vec![format!("kairo.agent.{owner}.message")] };
        let mut read_so_far = Vec::new();
        read_messages(folder, logs, &subjects, within, |raw| {
            read_so_far.push(raw.sequence);
            true
        })?;
        Ok(read_so_far)
    }

    #[test]
    fn what_is_gone_from_a_log_is_read_from_its_archive_up_to_where_the_log_begins() {
        let archive = archive(&[&[(1, "ann"), (2, "bob"), (4, "ann")], &[(5, "bob"), (7, "ann")]]);
        let path = archive.path();
        let logs = [Uuid::from_u128(9), LOG_ID];
        assert_eq!(of(path, &logs, "ann", (0, 8)).unwrap(), [1, 4, 7]);
        assert_eq!(of(path, &logs, "ann", (1, 7)).unwrap(), [4]);
        assert_eq!(of(path, &logs, "", (1, 8)).unwrap(), [2, 4, 5, 7]);
        let count = |before| ArchiveFolder { path: path.to_owned() }.count_before(&logs, before).unwrap();
        assert_eq!([1, 4, 5, 6, 8].map(count), [0, 2, 3, 4, 5]);
        let beyond = of(path, &logs, "ann", (0, 9)).unwrap_err().to_string();
        assert!(beyond.contains("up to 7, and all before 9 is wanted"), "{beyond}");
        let of_another = of(path, &[Uuid::nil()], "ann", (0, 8)).unwrap_err().to_string();
        assert!(of_another.contains("it is of the log"), "{of_another}");
    }

    #[test]
    fn a_file_is_left_out_where_it_is_known_to_have_nothing_of_an_agent() {
        let archive = archive(&[&[(1, "ann")], &[(2, "bob")]]);
        let path = archive.path();
        let files = backup_folder::read_manifest(path).unwrap().stream_files(LOG.name);
        let subjects = ["kairo.agent.ann.message".to_owned()];
        let may = || files.iter().map(|file| may_have_subjects(path, file, &subjects)).collect::<Vec<_>>();
        assert_eq!(may(), [true, true], "nobody has said so");
        for (file, owner) in files.iter().zip(["ann", "bob"]) {
            write_owners(path, file, std::iter::once(owner.to_owned())).unwrap();
        }
        assert_eq!(may(), [true, false]);
        let [_, file] = &files[..] else { panic!("{files:?}") };
        // What was said of another file says nothing of this one.
        let other = FileEntry { sha256: "0".to_owned(), ..file.clone() };
        assert!(may_have_subjects(path, &other, &subjects));
    }
}
