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
    error::BackupError,
    folder::{Folder, is_backup},
    manifest::{BEFORE, BEHIND, FORMAT, FileEntry, Keeping, Kept, Kind, LOG, Manifest, Part, StreamPart},
    reading::{self, Info},
    segments::Writer,
};

/// Hears of every message that is read.
pub type Progress<'p> = &'p dyn Fn(&str);

/// Takes a whole backup into a folder that holds none.
///
/// # Errors
/// If the folder holds one, there is no log, or a stream cannot be read to its end. Then there is no backup.
pub async fn whole(nats: &JetStream, path: &Path, progress: Progress<'_>) -> Result<Part, BackupError> {
    let log = log_of(&found(nats, EVENTS_STREAM).await?)?;
    let folder = Folder::create(path)?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let mut manifest = Manifest { kairo: Kind::Backup, format: FORMAT, version, log, parts: Vec::new() };
    add(nats, &folder, &mut manifest, progress).await
}

/// Adds a part with what came since the last one.
///
/// # Errors
/// If the folder holds no backup or one of another log, or a stream cannot be read to its end. Then the backup is what
/// it was.
pub async fn onto(nats: &JetStream, path: &Path, progress: Progress<'_>) -> Result<Part, BackupError> {
    let folder = Folder::open(path, Kind::Backup)?;
    let mut manifest = folder.manifest()?;
    let there = found(nats, EVENTS_STREAM).await?;
    let log = log_of(&there)?;
    if log != manifest.log {
        return Err(BackupError::Refused(format!(
            "{} is of the log {}, and the server has {log}, as after a restore: begin another folder with `kairo backup -o`",
            path.display(),
            manifest.log
        )));
    }
    if there.last_sequence < manifest.through() {
        return Err(BackupError::Refused(format!(
            "the server's log ends at {}, and the backup at {}: the server has lost something; see docs/backup.md",
            there.last_sequence,
            manifest.through()
        )));
    }
    if there.first_sequence > manifest.through() + 1 {
        let (from, to) = (manifest.through() + 1, there.first_sequence - 1);
        return Err(BackupError::Refused(format!(
            "messages {from} to {to} are no longer in the server's log, as after trimming, and not in {}: begin another folder with \
             `kairo backup -o`",
            path.display()
        )));
    }
    manifest.version = env!("CARGO_PKG_VERSION").to_owned();
    add(nats, &folder, &mut manifest, progress).await
}

/// Adds a part to the backup in a folder, or begins one there.
///
/// # Errors
/// As [`whole`] and [`onto`].
pub async fn into(nats: &JetStream, path: &Path, progress: Progress<'_>) -> Result<Part, BackupError> {
    if is_backup(path) { onto(nats, path, progress).await } else { whole(nats, path, progress).await }
}

pub(crate) fn log_of(info: &Info) -> Result<Uuid, BackupError> {
    if info.metadata(RESTORING).is_some() {
        return Err(BackupError::Refused(
            "a restore of the log has not come to its end: run `kairo restore` again".into(),
        ));
    }
    let id = info.metadata(LOG_ID).and_then(|id| Uuid::parse_str(id).ok());
    id.ok_or_else(|| BackupError::Refused(format!("the stream {EVENTS_STREAM} is no log of Kairo's")))
}

pub(crate) async fn found(nats: &JetStream, stream: &str) -> Result<Info, BackupError> {
    let missing = || BackupError::Refused(format!("there is no stream {stream} on the server: run `kairo provision`"));
    reading::info(nats, stream).await?.ok_or_else(missing)
}

async fn add(
    nats: &JetStream,
    folder: &Folder,
    manifest: &mut Manifest,
    progress: Progress<'_>,
) -> Result<Part, BackupError> {
    // Else it would be restored with the log.
    nats.put_back().await?;
    let number = manifest.parts.last().map_or(1, |part| part.number + 1);
    let place = folder.begin(number)?;
    let written = match take(nats, folder, manifest, number, &place, progress).await {
        Ok(part) => {
            let replaced = replace(manifest, &part);
            manifest.parts.push(part.clone());
            folder.write(manifest).map(|()| (part, replaced))
        }
        Err(error) => Err(error),
    };
    // A disk that is full is not left full of what nobody can restore.
    let (part, replaced) = written.inspect_err(|_| folder.abandon(&place))?;
    replaced.iter().try_for_each(|entry| folder.destroy(entry))?;
    Ok(part)
}

/// Takes the part of this number, and writes its files.
async fn take(
    nats: &JetStream,
    folder: &Folder,
    manifest: &Manifest,
    number: u32,
    place: &str,
    progress: Progress<'_>,
) -> Result<Part, BackupError> {
    let taken = Timestamp::now();
    let taking = Taking { nats, folder, manifest, progress, place: place.to_owned() };
    let mut streams = BTreeMap::new();
    // What is acknowledged by now has its effects in the log by the time its end is looked up.
    let mut consumers = BTreeMap::new();
    for stream in [EVENTS_STREAM, HOOKS_STREAM] {
        consumers.insert(stream, reading::standings(nats, stream).await?);
    }
    let routed = reading::routed(nats, manifest.log).await?;
    for kept in BEFORE {
        streams.extend(taking.stream(kept, u64::MAX).await?);
    }
    let through = found(nats, EVENTS_STREAM).await?.last_sequence;
    streams.extend(taking.stream(LOG, through).await?);
    for kept in BEHIND {
        streams.extend(taking.stream(kept, u64::MAX).await?);
    }
    // Timers went on meanwhile, and the log may have taken from there: no number of a message is used twice.
    for kept in BEFORE {
        if let (Some(part), Some(now)) = (streams.get_mut(kept.name), reading::info(nats, kept.stream).await?) {
            part.last_sequence = part.last_sequence.max(now.last_sequence);
        }
    }
    for (stream, standings) in consumers {
        if let Some(part) = streams.get_mut(stream) {
            part.consumers = standings;
        }
    }
    Ok(Part { number, taken, after: manifest.through(), through, routed, streams })
}

/// Takes out of the parts before what the new one replaces; its files.
fn replace(manifest: &mut Manifest, by: &Part) -> Vec<FileEntry> {
    let names =
        BEHIND.into_iter().filter(|kept| kept.keeping == Keeping::Replaced && by.streams.contains_key(kept.name));
    let mut replaced = Vec::new();
    for kept in names {
        let before = manifest.parts.iter_mut().filter_map(|part| part.streams.remove(kept.name));
        replaced.extend(before.flat_map(|stream| stream.files));
    }
    replaced
}

struct Taking<'t> {
    nats: &'t JetStream,
    folder: &'t Folder,
    manifest: &'t Manifest,
    progress: Progress<'t>,
    /// The folder of the part.
    place: String,
}

impl Taking<'_> {
    /// Keeps a stream and returns its entry in the part; none for a stream that an older version has not made.
    async fn stream(&self, kept: Kept, through: u64) -> Result<Option<(String, StreamPart)>, BackupError> {
        let Some(info) = reading::info(self.nats, kept.stream).await? else { return Ok(None) };
        let after = match kept.keeping {
            Keeping::Grown => self.manifest.newest(kept.name).map_or(0, |before| before.last_sequence),
            Keeping::Whole | Keeping::Replaced => 0,
        };
        let last_sequence = info.last_sequence.min(through);
        // What is whole is so as of when it is read.
        let through = if kept.keeping == Keeping::Grown { last_sequence } else { u64::MAX };
        let mut writer = Writer::new(&self.folder.path, format!("{}/{}", self.place, kept.name));
        reading::read(self.nats, kept.stream, kept.filter, after, through, |line| {
            (self.progress)(kept.stream);
            writer.write(&line)
        })
        .await?;
        if kept == LOG {
            self.is_whole(info.first_sequence.max(after + 1)).await?;
        }
        let files = writer.finish()?;
        let last_sequence = files.last().map_or(last_sequence, |file| file.last.max(last_sequence));
        let Info { config, first_sequence, .. } = info;
        let part = StreamPart { config, first_sequence, last_sequence, consumers: Vec::new(), files };
        Ok(Some((kept.name.to_owned(), part)))
    }

    /// Checks that the log was not trimmed behind `from` while it was read.
    async fn is_whole(&self, from: u64) -> Result<(), BackupError> {
        let begins = found(self.nats, EVENTS_STREAM).await?.first_sequence;
        match begins > from {
            true => Err(BackupError::Refused(format!(
                "the log was trimmed while it was read: it begins at {begins} by now, and began at {from}; run this again"
            ))),
            false => Ok(()),
        }
    }
}
