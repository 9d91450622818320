//! Holding a backup to what it says of itself, and its log to the digests that decisions carry. No server is needed.

use std::{collections::BTreeSet, path::Path};

use kairo_proto::v1::LogMessage;
use kairo_replay::proving::{Extent, Proof, Proving};

use crate::{
    error::BackupError,
    folder,
    line::Line,
    manifest::{FileEntry, LOG, Manifest},
    segments::{self, Lines},
};

/// The result of comparing a backup with its manifest.
#[derive(Debug)]
pub struct Verified {
    pub manifest: Manifest,
    pub files: usize,
    pub messages: u64,
    /// Files that are not what they were, each with why; the log is proven only where there are none.
    pub damaged: Vec<String>,
    pub proof: Option<Proof>,
}

impl Verified {
    /// Returns true if all of it is as it was written, and its hash chains fit.
    pub fn fits(&self) -> bool {
        self.damaged.is_empty() && self.proof.as_ref().is_some_and(|proof| proof.first_misfit().is_none())
    }
}

pub use folder::{is_backup, manifest};

/// Verifies a backup; `progress` hears of every message of the log.
///
/// # Errors
/// If there is no backup that can be read at all.
pub fn verify(path: &Path, progress: &dyn Fn(&str)) -> Result<Verified, BackupError> {
    let manifest = manifest(path)?;
    let mut damaged = damaged(path, &manifest);
    let mut proof = None;
    if damaged.is_empty() {
        match prove(path, &manifest, progress) {
            Ok(proven) => proof = Some(proven),
            Err(error) => damaged.push(error.to_string()),
        }
    }
    let (files, messages) = manifest.files().fold((0, 0), |(files, all), file| (files + 1, all + file.messages));
    Ok(Verified { manifest, files, messages, damaged, proof })
}

/// Every file that is not what it was, with why.
pub fn damaged(path: &Path, manifest: &Manifest) -> Vec<String> {
    let hold = |entry: &FileEntry| segments::hold(path, entry).err().map(|error| error.to_string());
    manifest.files().filter_map(hold).collect()
}

fn prove(path: &Path, manifest: &Manifest, progress: &dyn Fn(&str)) -> Result<Proof, BackupError> {
    let mut proving = Proving::new(BTreeSet::new(), Extent::Whole, None);
    for line in log(path, manifest) {
        progress(LOG.stream);
        proving.take(&line?.to_log_message()).map_err(|error| BackupError::damaged(path, error.to_string()))?;
    }
    Ok(proving.end())
}

/// The log of a backup, as it is stored.
pub fn log(path: &Path, manifest: &Manifest) -> impl Iterator<Item = Result<Line, BackupError>> + use<> {
    Lines::of(path, manifest.grown(LOG.name))
}

/// Returns the log of a backup as messages that are handed out.
///
/// # Errors
/// If there is no backup that can be read.
pub fn messages(path: &Path) -> Result<impl Iterator<Item = Result<LogMessage, BackupError>> + use<>, BackupError> {
    let manifest = manifest(path)?;
    Ok(log(path, &manifest).map(|line| line.map(|line| line.to_log_message())))
}

/// The last message that a folder holds of the log.
///
/// # Errors
/// If it cannot be read.
pub fn ending(path: &Path, manifest: &Manifest) -> Result<Option<Line>, BackupError> {
    let last = manifest.grown(LOG.name).pop();
    last.into_iter().flat_map(|file| Lines::of(path, vec![file])).last().transpose()
}
