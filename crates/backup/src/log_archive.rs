//! Archiving the log: segments of what is older than an age, in a folder that grows part by part. They are the files of a
//! backup, of the log alone: no key and nothing else that is ever to be destroyed is in it, so parts never change.
//!
//! A part is in the archive when the manifest says so, which is written last: whoever is killed on the way leaves the archive as
//! it was, and begins that part anew.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use jiff::Timestamp;
use kairo_core::{
    bus::{
        jetstream::JetStream,
        port::{ReadSource, StreamStore},
        provision::LOG_BEFORE,
    },
    subjects::EVENTS_STREAM,
};
use uuid::Uuid;

use crate::{
    archive_reader,
    backup_folder::{self, Folder},
    backup_run::{self, ProgressCallback},
    error::BackupError,
    manifest::{BackupKind, BackupPart, FORMAT, FileEntry, LOG, Manifest, StreamPart},
    message_line::MessageLine,
    segments::{self, SegmentLines, SegmentWriter},
    stream_reader::{self, LeaderStreamInfo},
    verification,
};

/// The archive that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveRequest {
    /// Messages stored up to this time are archived.
    pub until: Timestamp,
    /// Goes on with the archive of the log that this one was restored from, which is of this one from then on.
    pub restored: bool,
}

/// The result of archiving.
#[derive(Clone, Debug)]
pub struct ArchiveOutcome {
    pub manifest: Manifest,
    /// `None` if the archive already had every message that was old enough.
    pub part: Option<BackupPart>,
}

/// Adds to the archive in a folder, which is made where there is none. A limit that somebody left who trimmed the log and was killed is
/// put back first.
///
/// # Errors
/// If the folder holds something else or an archive of another log, the log does not go on where the archive ends, or
/// it cannot be read. Then the archive is what it was.
pub async fn archive_log(
    nats: &JetStream,
    path: &Path,
    wanted: ArchiveRequest,
    progress: ProgressCallback<'_>,
) -> Result<ArchiveOutcome, BackupError> {
    nats.restore_limits().await?;
    let info = backup_run::require_stream(nats, EVENTS_STREAM).await?;
    let log = backup_run::log_id(&info)?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let (folder, mut manifest) = match backup_folder::is_backup(path) {
        true => {
            let folder = Folder::open(path, BackupKind::Archive)?;
            let found = folder.read_manifest()?;
            let manifest = if wanted.restored { adopt_manifest(path, &found, &info)? } else { found.clone() };
            check_continuity(nats, &folder, &manifest, &info).await?;
            if manifest.log != found.log {
                folder.write_manifest(&manifest)?;
            }
            (folder, Manifest { version, ..manifest })
        }
        false => {
            let manifest = Manifest { kairo: BackupKind::Archive, format: FORMAT, version, log, parts: Vec::new() };
            (Folder::create(path)?, manifest)
        }
    };
    let after = manifest.log_end().max(info.first_sequence.saturating_sub(1));
    let through = last_stored_until(nats, wanted.until, after, info.last_sequence).await?;
    if through <= after {
        return Ok(ArchiveOutcome { manifest, part: None });
    }
    let part = write_part(nats, &folder, &manifest, (&info, through), progress).await?;
    manifest.parts.push(part.clone());
    folder.write_manifest(&manifest)?;
    Ok(ArchiveOutcome { manifest, part: Some(part) })
}

/// The archive of the log that the server's was restored from, as one of that: all of it must have been restored.
fn adopt_manifest(path: &Path, manifest: &Manifest, info: &LeaderStreamInfo) -> Result<Manifest, BackupError> {
    let log = backup_run::log_id(info)?;
    let path = path.display();
    let refused = |why: String| Err(BackupError::Refused(format!("--restored: {path} {why}")));
    let of = manifest.log;
    let ends = manifest.log_end();
    match restored_from(info) {
        _ if of == log => Ok(manifest.clone()),
        Some((before, through)) if of == before && ends <= through => Ok(Manifest { log, ..manifest.clone() }),
        Some((before, through)) if of == before => refused(format!(
            "goes up to {ends}, and the log was restored up to {through}: what stands behind that is of a log that is lost; begin \
             another folder"
        )),
        Some((before, _)) => refused(format!("is of the log {of}, and the server's was restored from {before}")),
        None => refused(format!("is of the log {of}, and the server's was not restored from any")),
    }
}

/// Returns the id of the log before it was restored, and the last sequence that was restored.
fn restored_from(info: &LeaderStreamInfo) -> Option<(Uuid, u64)> {
    let (before, through) = info.metadata(LOG_BEFORE)?.split_once('@')?;
    Some((Uuid::parse_str(before).ok()?, through.parse().ok()?))
}

/// Holds the server's log to the end of the archive: it must be the same log, and have what comes next.
pub(crate) async fn check_continuity(
    nats: &JetStream,
    folder: &Folder,
    manifest: &Manifest,
    info: &LeaderStreamInfo,
) -> Result<(), BackupError> {
    let path = folder.path.display();
    let through = manifest.log_end();
    let refused = |why: String| Err(BackupError::Refused(why));
    let log = backup_run::log_id(info)?;
    if log != manifest.log {
        let of = manifest.log;
        let why = format!("{path} is of the log {of}, and the server has {log}");
        return refused(match restored_from(info) {
            Some((before, _)) if before == of => {
                format!("{why}, which was restored from it: `kairo archive {path} --restored` goes on with it")
            }
            _ => format!("{why}: begin another folder"),
        });
    }
    if info.last_sequence < through {
        let last = info.last_sequence;
        return refused(format!(
            "the server's log ends at {last}, and the archive {path} at {through}: it lost something"
        ));
    }
    if info.first_sequence > through + 1 {
        let from = through + 1;
        let to = info.first_sequence - 1;
        return refused(format!("the server's log has lost messages {from} to {to}, which the archive {path} has not"));
    }
    let Some(archived) = verification::last_log_message(&folder.path, manifest)? else { return Ok(()) };
    let there = nats.message_at(EVENTS_STREAM, archived.sequence, ReadSource::Leader).await;
    match there.map_err(BackupError::not_read(EVENTS_STREAM))? {
        // A restore leaves out what would have the server drop it.
        Some(raw) if MessageLine::from_raw(&raw).without_lifetime() != archived.without_lifetime() => {
            let why = format!("message {through} of the server's log is another one than in the archive {path}");
            refused(format!("{why}: hold both to a checkpoint, see docs/proof.md"))
        }
        // It is gone from the server, or damaged there: the archive has it.
        _ => Ok(()),
    }
}

/// The last message behind `after` that was stored until then; `after` where there is none. Later messages were stored later, so
/// it is found by halves.
pub(crate) async fn last_stored_until(
    nats: &JetStream,
    until: Timestamp,
    after: u64,
    end: u64,
) -> Result<u64, BackupError> {
    let mut is = after;
    let mut may_be = end;
    while is < may_be {
        let middle = is + (may_be - is).div_ceil(2);
        let next = nats.next_at_leader(EVENTS_STREAM, ">", middle - 1).await;
        match next.map_err(BackupError::not_read(EVENTS_STREAM))? {
            Some(raw) if raw.stored <= until => is = raw.sequence.max(middle),
            _ => may_be = middle - 1,
        }
    }
    Ok(is)
}

/// Writes the log behind the archive's end up to a message, and reads what was written back.
async fn write_part(
    nats: &JetStream,
    folder: &Folder,
    manifest: &Manifest,
    (info, through): (&LeaderStreamInfo, u64),
    progress: ProgressCallback<'_>,
) -> Result<BackupPart, BackupError> {
    let number = manifest.parts.last().map_or(1, |part| part.number + 1);
    let place = folder.create_part_folder(number)?;
    let after = manifest.log_end();
    let mut writer = SegmentWriter::new(&folder.path, format!("{place}/{}", LOG.name));
    stream_reader::read_messages(nats, EVENTS_STREAM, LOG.filter, after, through, |line| {
        progress(LOG.stream);
        writer.write(&line)
    })
    .await?;
    let files = writer.finish()?;
    files.iter().try_for_each(|file| verify_written_file(&folder.path, file))?;
    let LeaderStreamInfo { config, first_sequence, .. } = info.clone();
    let log = StreamPart { config, first_sequence, last_sequence: through, consumers: Vec::new(), files };
    let streams = BTreeMap::from([(LOG.name.to_owned(), log)]);
    Ok(BackupPart { number, taken: Timestamp::now(), after, through, routed: BTreeMap::new(), streams })
}

/// Checks that the file on the disk is as it was written, and that all of its messages can be read. Writes the owners
/// of the messages beside it.
fn verify_written_file(path: &Path, file: &FileEntry) -> Result<(), BackupError> {
    segments::verify_file(path, file)?;
    let mut last = 0;
    let mut owners = BTreeSet::new();
    for line in SegmentLines::new(path, vec![file.clone()]) {
        let line = line?;
        last = line.sequence;
        owners.extend(
            archive_reader::subject_owner(&line.subject).filter(|owner| !owners.contains(*owner)).map(str::to_owned),
        );
    }
    match last == file.last {
        true => archive_reader::write_owners(path, file, owners.into_iter()),
        false => {
            Err(BackupError::damaged_file(file.path.full_path(path), format!("it ends at {last}, not {}", file.last)))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const OLD: Uuid = Uuid::from_u128(1);
    const NEW: Uuid = Uuid::from_u128(2);

    fn archive(through: u64) -> Manifest {
        let number = 1;
        let after = 0;
        let taken = Timestamp::UNIX_EPOCH;
        let routed = BTreeMap::new();
        let streams = BTreeMap::new();
        let parts = vec![BackupPart { number, taken, after, through, routed, streams }];
        Manifest { kairo: BackupKind::Archive, format: FORMAT, version: String::new(), log: OLD, parts }
    }

    fn log(id: Uuid, before: &str) -> LeaderStreamInfo {
        let config = json!({ "metadata": { "kairo-log": id, "kairo-log-before": before } });
        LeaderStreamInfo { config, first_sequence: 1, last_sequence: 90 }
    }

    #[test]
    fn an_archive_is_gone_on_with_where_all_of_it_was_restored() {
        let of = |through, info: &LeaderStreamInfo| {
            adopt_manifest(Path::new("a"), &archive(through), info).map(|manifest| manifest.log)
        };
        let restored = log(NEW, &format!("{OLD}@60"));
        assert_eq!(of(60, &restored).unwrap(), NEW);
        assert_eq!(of(60, &log(OLD, "")).unwrap(), OLD, "it is of this log already");
        let why = |through, info: &LeaderStreamInfo| of(through, info).unwrap_err().to_string();
        assert!(
            why(61, &restored).contains("goes up to 61, and the log was restored up to 60"),
            "{}",
            why(61, &restored)
        );
        assert!(why(60, &log(NEW, &format!("{NEW}@60"))).contains("was restored from"));
        assert!(why(60, &log(NEW, "")).contains("was not restored"));
    }
}
