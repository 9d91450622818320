//! Archiving the log: segments of what is older than an age, in a folder that grows part by part. They are the files of a
//! backup, of the log alone: no key and nothing else that is ever to be destroyed is in it, so parts never change.
//!
//! A part is in the archive when the manifest says so, which is written last: whoever is killed on the way leaves the archive as
//! it was, and begins that part anew.

use std::{collections::BTreeMap, path::Path};

use jiff::Timestamp;
use kairo_core::{
    bus::{
        jetstream::JetStream,
        port::{Asked, Streams},
    },
    subjects::EVENTS_STREAM,
};

use crate::{
    error::BackupError,
    folder::{self, Folder},
    line::Line,
    manifest::{FORMAT, FileEntry, Kind, LOG, Manifest, Part, StreamPart},
    reading::{self, Info},
    segments::{self, Lines, Writer},
    taking::{self, Progress},
    verifying,
};

/// What came of it.
#[derive(Clone, Debug)]
pub struct Archived {
    pub manifest: Manifest,
    /// None where nothing was old enough that was not in it already.
    pub part: Option<Part>,
}

/// Adds what was stored until then to the archive in a folder, which is made where there is none.
///
/// # Errors
/// Where the folder holds something else or an archive of another log, the log does not go on where the archive ends, or it cannot be
/// read. Then the archive is what it was.
pub async fn archive(
    nats: &JetStream,
    path: &Path,
    until: Timestamp,
    progress: Progress<'_>,
) -> Result<Archived, BackupError> {
    let info = taking::found(nats, EVENTS_STREAM).await?;
    let log = taking::log_of(&info)?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let (folder, mut manifest) = match folder::is_backup(path) {
        true => {
            let folder = Folder::open(path, Kind::Archive)?;
            let manifest = folder.manifest()?;
            goes_on(nats, &folder, &manifest, &info).await?;
            (folder, Manifest { version, ..manifest })
        }
        false => {
            let manifest = Manifest { kairo: Kind::Archive, format: FORMAT, version, log, parts: Vec::new() };
            (Folder::create(path)?, manifest)
        }
    };
    let after = manifest.through().max(info.first_sequence.saturating_sub(1));
    let through = last_until(nats, until, after, info.last_sequence).await?;
    if through <= after {
        return Ok(Archived { manifest, part: None });
    }
    let part = segment(nats, &folder, &manifest, (&info, through), progress).await?;
    manifest.parts.push(part.clone());
    folder.write(&manifest)?;
    Ok(Archived { manifest, part: Some(part) })
}

/// Holds the server's log to the end of the archive: it must be the same log, and have what comes next.
async fn goes_on(nats: &JetStream, folder: &Folder, manifest: &Manifest, info: &Info) -> Result<(), BackupError> {
    let (path, through) = (folder.path.display(), manifest.through());
    let refused = |why: String| Err(BackupError::Refused(why));
    let log = taking::log_of(info)?;
    if log != manifest.log {
        return refused(format!(
            "{path} is of the log {}, and the server has {log}, as after a restore: begin another folder",
            manifest.log
        ));
    }
    if info.last_sequence < through {
        let last = info.last_sequence;
        return refused(format!(
            "the server's log ends at {last}, and the archive {path} at {through}: it lost something"
        ));
    }
    if info.first_sequence > through + 1 {
        let (from, to) = (through + 1, info.first_sequence - 1);
        return refused(format!("the server's log has lost messages {from} to {to}, which the archive {path} has not"));
    }
    let Some(archived) = verifying::ending(&folder.path, manifest)? else { return Ok(()) };
    let there = nats.at(EVENTS_STREAM, archived.sequence, Asked::Leader).await;
    match there.map_err(BackupError::not_read(EVENTS_STREAM))? {
        Some(raw) if Line::of(&raw) != archived => {
            let why = format!("message {through} of the server's log is another one than in the archive {path}");
            refused(format!("{why}: hold both to a checkpoint, see docs/proof.md"))
        }
        // It is gone from the server, or damaged there: the archive has it.
        _ => Ok(()),
    }
}

/// The last message behind `after` that was stored until then; `after` where there is none. Later messages were stored later, so
/// it is found by halves.
async fn last_until(nats: &JetStream, until: Timestamp, after: u64, end: u64) -> Result<u64, BackupError> {
    let (mut is, mut may_be) = (after, end);
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
async fn segment(
    nats: &JetStream,
    folder: &Folder,
    manifest: &Manifest,
    (info, through): (&Info, u64),
    progress: Progress<'_>,
) -> Result<Part, BackupError> {
    let number = manifest.parts.last().map_or(1, |part| part.number + 1);
    let (place, after) = (folder.begin(number)?, manifest.through());
    let mut writer = Writer::new(&folder.path, format!("{place}/{}", LOG.name));
    reading::read(nats, EVENTS_STREAM, LOG.filter, after, through, |line| {
        progress(LOG.stream);
        writer.write(&line)
    })
    .await?;
    let files = writer.finish()?;
    files.iter().try_for_each(|file| as_written(&folder.path, file))?;
    let Info { config, first_sequence, .. } = info.clone();
    let log = StreamPart { config, first_sequence, last_sequence: through, consumers: Vec::new(), files };
    let streams = BTreeMap::from([(LOG.name.to_owned(), log)]);
    Ok(Part { number, taken: Timestamp::now(), after, through, routed: BTreeMap::new(), streams })
}

/// Whether the disk has a file as it was written, and all of its messages can be read.
fn as_written(path: &Path, file: &FileEntry) -> Result<(), BackupError> {
    segments::hold(path, file)?;
    let mut last = 0;
    for line in Lines::of(path, vec![file.clone()]) {
        last = line?.sequence;
    }
    match last == file.last {
        true => Ok(()),
        false => Err(BackupError::damaged(path.join(&file.path), format!("it ends at {last}, not {}", file.last))),
    }
}
