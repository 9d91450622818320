//! Errors of taking, verifying and restoring a backup.

use std::{io, path::PathBuf};

use kairo_core::bus::{BusError, port::StoreError};

#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error("cannot {action} {path}: {source}", path = path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A file that is not as it was written.
    #[error("{path}: {why}", path = path.display())]
    Damaged { path: PathBuf, why: String },
    /// Somebody has to decide or to mend something first.
    #[error("{0}")]
    Refused(String),
    /// The server did not take what it was given.
    #[error("the server does not take the stream {stream}: {why}")]
    NotTaken { stream: String, why: String },
    /// The server does not answer, or breaks off again and again.
    #[error("cannot read the stream {stream}: {why}")]
    NotRead { stream: String, why: String },
    /// Storage of objects does not answer, or does not let it be done.
    #[error("{place} cannot {doing}: {source}")]
    Storage {
        place: String,
        doing: &'static str,
        #[source]
        source: Box<object_store::Error>,
    },
}

impl BackupError {
    pub(crate) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }

    pub(crate) fn damaged_file(path: impl Into<PathBuf>, why: impl Into<String>) -> Self {
        Self::Damaged { path: path.into(), why: why.into() }
    }

    pub(crate) fn not_read(stream: &str) -> impl FnOnce(StoreError) -> Self {
        let stream = stream.to_owned();
        move |error| Self::NotRead { stream, why: error.to_string() }
    }
}
