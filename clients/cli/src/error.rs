//! Errors of commands.

use std::{io, process::ExitCode};

use kairo_local::LocalError;

use crate::client::ClientError;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Local(#[from] LocalError),
    #[error("cannot write the answer: {0}")]
    Output(#[from] io::Error),
    #[error("cannot {action} {path}: {source}", path = path.display())]
    File {
        action: &'static str,
        path: std::path::PathBuf,
        #[source]
        source: io::Error,
    },
    /// Something that the user can mend.
    #[error("{0}")]
    Advice(String),
    /// A request that makes no sense, such as a file that is no report.
    #[error("{0}")]
    Usage(String),
    /// A file that is not as it was written.
    #[error("{0}")]
    Damaged(String),
    /// A log from which personal data cannot be removed.
    #[error("{0}")]
    NotRedacted(#[from] kairo_replay::incident::redaction::RedactionError),
    /// There is no server where one is needed.
    #[error(transparent)]
    Unavailable(ClientError),
}

/// The status of a command line that cannot be used, as sysexits has it.
pub const USAGE: u8 = 64;
/// The status where what is personal cannot be taken out of a log.
const NOT_REDACTED: u8 = 4;
/// The status where a server is needed and none is there, as sysexits has it.
const UNAVAILABLE: u8 = 69;

impl Error {
    /// For `map_err`: what was being done to which file.
    pub(crate) fn file(action: &'static str, path: impl Into<std::path::PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }

    /// For `map_err`: a file that the command line names cannot be read.
    pub(crate) fn unreadable(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Usage(format!("cannot read {}: {source}", path.display()))
    }

    /// For `map_err`: tells that there is no server from what a server says.
    pub(crate) fn into_unavailable(self) -> Self {
        match self {
            Self::Client(error @ ClientError::Unreachable { .. }) => Self::Unavailable(error),
            other => other,
        }
    }

    /// The status that the command ends with.
    pub(crate) fn exit_status(&self) -> ExitCode {
        match self {
            Self::Usage(_) | Self::Damaged(_) => ExitCode::from(USAGE),
            Self::NotRedacted(_) => ExitCode::from(NOT_REDACTED),
            Self::Unavailable(_) => ExitCode::from(UNAVAILABLE),
            Self::Client(_) | Self::Local(_) | Self::Output(_) | Self::File { .. } | Self::Advice(_) => {
                ExitCode::FAILURE
            }
        }
    }

    /// Returns true if the reader of our output has gone, as `head` does: no failure of ours.
    pub(crate) fn is_closed_output(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
