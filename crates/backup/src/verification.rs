//! Holding a backup to what it says of itself, and its log to the digests that decisions carry. No server is needed.

use std::{collections::BTreeSet, path::Path};

use kairo_proto::v1::LogMessage;
use kairo_replay::proof::{LogExtent, Proof, Prover};

use crate::{
    backup_folder,
    error::BackupError,
    manifest::{FileEntry, LOG, Manifest},
    message_line::MessageLine,
    segments::{self, SegmentLines},
};

/// The result of comparing a backup with its manifest.
#[derive(Debug)]
pub struct VerificationReport {
    pub manifest: Manifest,
    pub files: usize,
    pub messages: u64,
    /// Files that are not what they were, each with why; the log is proven only where there are none.
    pub damaged: Vec<String>,
    pub proof: Option<Proof>,
}

impl VerificationReport {
    /// Returns true if all of it is as it was written, and its hash chains fit.
    pub fn is_intact(&self) -> bool {
        self.damaged.is_empty() && self.proof.as_ref().is_some_and(|proof| proof.first_misfit().is_none())
    }
}

pub use backup_folder::{is_backup, read_manifest};

/// Verifies a backup; `progress` hears of every message of the log.
///
/// # Errors
/// If there is no backup that can be read at all.
pub fn verify(path: &Path, progress: &dyn Fn(&str)) -> Result<VerificationReport, BackupError> {
    let manifest = read_manifest(path)?;
    let mut damaged = find_damaged_files(path, &manifest);
    let mut proof = None;
    if damaged.is_empty() {
        match prove(path, &manifest, progress) {
            Ok(proven) => proof = Some(proven),
            Err(error) => damaged.push(error.to_string()),
        }
    }
    let (files, messages) = manifest.files().fold((0, 0), |(files, all), file| (files + 1, all + file.messages));
    Ok(VerificationReport { manifest, files, messages, damaged, proof })
}

/// Every file that is not what it was, with why.
pub fn find_damaged_files(path: &Path, manifest: &Manifest) -> Vec<String> {
    let hold = |entry: &FileEntry| segments::verify_file(path, entry).err().map(|error| error.to_string());
    manifest.files().filter_map(hold).collect()
}

fn prove(path: &Path, manifest: &Manifest, progress: &dyn Fn(&str)) -> Result<Proof, BackupError> {
    let mut proving = Prover::new(BTreeSet::new(), LogExtent::Whole, None);
    for line in read_log(path, manifest) {
        progress(LOG.stream);
        proving.apply(&line?.to_log_message()).map_err(|error| BackupError::damaged_file(path, error.to_string()))?;
    }
    Ok(proving.finish())
}

/// The log of a backup, as it is stored.
pub fn read_log(path: &Path, manifest: &Manifest) -> impl Iterator<Item = Result<MessageLine, BackupError>> + use<> {
    SegmentLines::new(path, manifest.stream_files(LOG.name))
}

/// Returns the log of a backup as messages that are handed out.
///
/// # Errors
/// If there is no backup that can be read.
pub fn read_log_messages(
    path: &Path,
) -> Result<impl Iterator<Item = Result<LogMessage, BackupError>> + use<>, BackupError> {
    let manifest = read_manifest(path)?;
    Ok(read_log(path, &manifest).map(|line| line.map(|line| line.to_log_message())))
}

/// The last message that a folder holds of the log.
///
/// # Errors
/// If it cannot be read.
pub fn last_log_message(path: &Path, manifest: &Manifest) -> Result<Option<MessageLine>, BackupError> {
    let last = manifest.stream_files(LOG.name).pop();
    last.into_iter().flat_map(|file| SegmentLines::new(path, vec![file])).last().transpose()
}
