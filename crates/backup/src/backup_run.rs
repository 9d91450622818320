//! Taking a backup, or adding to one what came since, while services go on.

use std::{collections::BTreeMap, path::Path};

use jiff::Timestamp;
use kairo_core::{
    bus::{
        jetstream::JetStream,
        provision::{LOG_ID, RESTORING},
    },
    subjects::{EVENTS_STREAM, HOOKS_STREAM},
};
use uuid::Uuid;

use crate::{
    backup_folder::{Folder, is_backup},
    error::BackupError,
    manifest::{
        BEFORE, BEHIND, BackupKind, BackupMode, BackupPart, FORMAT, FileEntry, LOG, Manifest, StreamPart,
        StreamSelection,
    },
    segments::SegmentWriter,
    stream_reader::{self, LeaderStreamInfo},
};

/// Hears of every message that is read.
pub type ProgressCallback<'p> = &'p dyn Fn(&str);

/// Takes a whole backup into a folder that holds none.
///
/// # Errors
/// If the folder holds one, there is no log, or a stream cannot be read to its end. Then there is no backup.
pub async fn take_full_backup(
    nats: &JetStream,
    path: &Path,
    progress: ProgressCallback<'_>,
) -> Result<BackupPart, BackupError> {
    let log = log_id(&require_stream(nats, EVENTS_STREAM).await?)?;
    let folder = Folder::create(path)?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let mut manifest = Manifest { kairo: BackupKind::Backup, format: FORMAT, version, log, parts: Vec::new() };
    add_part(nats, &folder, &mut manifest, progress).await
}

/// Adds a part with what came since the last one.
///
/// # Errors
/// If the folder holds no backup or one of another log, or a stream cannot be read to its end. Then the backup is what
/// it was.
pub async fn append_part(
    nats: &JetStream,
    path: &Path,
    progress: ProgressCallback<'_>,
) -> Result<BackupPart, BackupError> {
    let folder = Folder::open(path, BackupKind::Backup)?;
    let mut manifest = folder.read_manifest()?;
    let there = require_stream(nats, EVENTS_STREAM).await?;
    let log = log_id(&there)?;
    if log != manifest.log {
        return Err(BackupError::Refused(format!(
            "{} is of the log {}, and the server has {log}, as after a restore: begin another folder with `kairo backup -o`",
            path.display(),
            manifest.log
        )));
    }
    if there.last_sequence < manifest.log_end() {
        return Err(BackupError::Refused(format!(
            "the server's log ends at {}, and the backup at {}: the server has lost something; see docs/backup.md",
            there.last_sequence,
            manifest.log_end()
        )));
    }
    if there.first_sequence > manifest.log_end() + 1 {
        let from = manifest.log_end() + 1;
        let to = there.first_sequence - 1;
        return Err(BackupError::Refused(format!(
            "messages {from} to {to} are no longer in the server's log, as after trimming, and not in {}: begin another folder with \
             `kairo backup -o`",
            path.display()
        )));
    }
    manifest.version = env!("CARGO_PKG_VERSION").to_owned();
    add_part(nats, &folder, &mut manifest, progress).await
}

/// Adds a part to the backup in a folder, or begins one there.
///
/// # Errors
/// As [`take_full_backup`] and [`append_part`].
pub async fn append_or_take_full(
    nats: &JetStream,
    path: &Path,
    progress: ProgressCallback<'_>,
) -> Result<BackupPart, BackupError> {
    if is_backup(path) { append_part(nats, path, progress).await } else { take_full_backup(nats, path, progress).await }
}

pub(crate) fn log_id(info: &LeaderStreamInfo) -> Result<Uuid, BackupError> {
    if info.metadata(RESTORING).is_some() {
        return Err(BackupError::Refused(
            "a restore of the log has not come to its end: run `kairo restore` again".into(),
        ));
    }
    let id = info.metadata(LOG_ID).and_then(|id| Uuid::parse_str(id).ok());
    id.ok_or_else(|| BackupError::Refused(format!("the stream {EVENTS_STREAM} is no log of Kairo's")))
}

pub(crate) async fn require_stream(nats: &JetStream, stream: &str) -> Result<LeaderStreamInfo, BackupError> {
    let missing = || BackupError::Refused(format!("there is no stream {stream} on the server: run `kairo provision`"));
    stream_reader::load_stream_info(nats, stream).await?.ok_or_else(missing)
}

async fn add_part(
    nats: &JetStream,
    folder: &Folder,
    manifest: &mut Manifest,
    progress: ProgressCallback<'_>,
) -> Result<BackupPart, BackupError> {
    // Else it would be restored with the log.
    nats.restore_limits().await?;
    let number = manifest.parts.last().map_or(1, |part| part.number + 1);
    let place = folder.create_part_folder(number)?;
    let written = match take_part(nats, folder, manifest, number, &place, progress).await {
        Ok(part) => {
            let replaced = remove_replaced(manifest, &part);
            manifest.parts.push(part.clone());
            folder.write_manifest(manifest).map(|()| (part, replaced))
        }
        Err(error) => Err(error),
    };
    // A disk that is full is not left full of what nobody can restore.
    let (part, replaced) = written.inspect_err(|_| folder.abandon(&place))?;
    replaced.iter().try_for_each(|entry| folder.destroy(entry))?;
    Ok(part)
}

/// Takes the part of this number, and writes its files.
async fn take_part(
    nats: &JetStream,
    folder: &Folder,
    manifest: &Manifest,
    number: u32,
    place: &str,
    progress: ProgressCallback<'_>,
) -> Result<BackupPart, BackupError> {
    let taken = Timestamp::now();
    let taking = PartWriter { nats, folder, manifest, progress, place: place.to_owned() };
    let mut streams = BTreeMap::new();
    // What is acknowledged by now has its effects in the log by the time its end is looked up.
    let mut consumers = BTreeMap::new();
    for stream in [EVENTS_STREAM, HOOKS_STREAM] {
        consumers.insert(stream, stream_reader::load_consumer_positions(nats, stream).await?);
    }
    let routed = stream_reader::load_router_positions(nats, manifest.log).await?;
    for kept in BEFORE {
        streams.extend(taking.write_stream(kept, u64::MAX).await?);
    }
    let through = require_stream(nats, EVENTS_STREAM).await?.last_sequence;
    streams.extend(taking.write_stream(LOG, through).await?);
    for kept in BEHIND {
        streams.extend(taking.write_stream(kept, u64::MAX).await?);
    }
    // Timers went on meanwhile, and the log may have taken from there: no number of a message is used twice.
    for kept in BEFORE {
        if let (Some(part), Some(now)) =
            (streams.get_mut(kept.name), stream_reader::load_stream_info(nats, kept.stream).await?)
        {
            part.last_sequence = part.last_sequence.max(now.last_sequence);
        }
    }
    for (stream, standings) in consumers {
        if let Some(part) = streams.get_mut(stream) {
            part.consumers = standings;
        }
    }
    Ok(BackupPart { number, taken, after: manifest.log_end(), through, routed, streams })
}

/// Takes out of the parts before what the new one replaces; its files.
fn remove_replaced(manifest: &mut Manifest, by: &BackupPart) -> Vec<FileEntry> {
    let names =
        BEHIND.into_iter().filter(|kept| kept.keeping == BackupMode::Replaced && by.streams.contains_key(kept.name));
    let mut replaced = Vec::new();
    for kept in names {
        let before = manifest.parts.iter_mut().filter_map(|part| part.streams.remove(kept.name));
        replaced.extend(before.flat_map(|stream| stream.files));
    }
    replaced
}

struct PartWriter<'t> {
    nats: &'t JetStream,
    folder: &'t Folder,
    manifest: &'t Manifest,
    progress: ProgressCallback<'t>,
    /// The folder of the part.
    place: String,
}

impl PartWriter<'_> {
    /// Keeps a stream and returns its entry in the part; none for a stream that an older version has not made.
    async fn write_stream(
        &self,
        kept: StreamSelection,
        through: u64,
    ) -> Result<Option<(String, StreamPart)>, BackupError> {
        let Some(info) = stream_reader::load_stream_info(self.nats, kept.stream).await? else { return Ok(None) };
        let after = match kept.keeping {
            BackupMode::Grown => self.manifest.newest_stream_part(kept.name).map_or(0, |before| before.last_sequence),
            BackupMode::Whole | BackupMode::Replaced => 0,
        };
        let last_sequence = info.last_sequence.min(through);
        // What is whole is so as of when it is read.
        let through = if kept.keeping == BackupMode::Grown { last_sequence } else { u64::MAX };
        let mut writer = SegmentWriter::new(&self.folder.path, format!("{}/{}", self.place, kept.name));
        stream_reader::read_messages(self.nats, kept.stream, kept.filter, after, through, |line| {
            (self.progress)(kept.stream);
            writer.write(&line)
        })
        .await?;
        if kept == LOG {
            self.check_not_trimmed(info.first_sequence.max(after + 1)).await?;
        }
        let files = writer.finish()?;
        let last_sequence = files.last().map_or(last_sequence, |file| file.last.max(last_sequence));
        let LeaderStreamInfo { config, first_sequence, .. } = info;
        let part = StreamPart { config, first_sequence, last_sequence, consumers: Vec::new(), files };
        Ok(Some((kept.name.to_owned(), part)))
    }

    /// Checks that the log was not trimmed behind `from` while it was read.
    async fn check_not_trimmed(&self, from: u64) -> Result<(), BackupError> {
        let begins = require_stream(self.nats, EVENTS_STREAM).await?.first_sequence;
        match begins > from {
            true => Err(BackupError::Refused(format!(
                "the log was trimmed while it was read: it begins at {begins} by now, and began at {from}; run this again"
            ))),
            false => Ok(()),
        }
    }
}
