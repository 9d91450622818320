//! Errors of running a stack on this machine.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::process::Exit;

/// Every text says what to do next; a process's own words are quoted from the end of its log.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    #[error("{program} does not exist: run scripts/setup, or build it with cargo build --bins")]
    MissingProgram { program: PathBuf },

    #[error("no .kairo/tools/env in {start} or above: run scripts/setup")]
    NoTools { start: PathBuf },

    #[error("{path} has no {key}: run scripts/setup --tests")]
    MissingTool { key: &'static str, path: PathBuf },

    #[error("setpriv is missing, and without it processes could outlive us: install Debian's util-linux")]
    MissingSetpriv,

    #[error("cannot start {name}: {source}")]
    Spawn {
        name: String,
        #[source]
        source: io::Error,
    },

    #[error("{name} ended ({exit}) before it was ready; the end of {log}:\n{tail}")]
    Exited { name: String, exit: Exit, log: PathBuf, tail: String },

    #[error("{name} was not ready within {deadline:?}; the end of {log}:\n{tail}")]
    NotReady { name: String, deadline: Duration, log: PathBuf, tail: String },

    #[error("{name} says it is ready in words that are not understood: {line:?}; build all binaries together")]
    BadAnnouncement { name: String, line: String },

    #[error("{name} did not end within {deadline:?} of being killed; look at it with ps")]
    Unkillable { name: String, deadline: Duration },

    #[error("no free port on 127.0.0.1 from {first} to {last}: stop something that listens there")]
    NoFreePort { first: u16, last: u16 },

    #[error("{action} {path}: {source}")]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },

    #[error("{path} is in use by another kairo on this machine: stop that one first")]
    InUse { path: PathBuf },

    #[error("{path} belongs to another user, who could read or change the data: remove it, then try again")]
    ForeignDirectory { path: PathBuf },

    #[error("{program} failed ({exit}): {stderr}")]
    CommandFailed { program: String, exit: std::process::ExitStatus, stderr: String },

    #[error(
        "{path} was written by PostgreSQL {found} and this is {installed}: start afresh, or install PostgreSQL {found}"
    )]
    PostgresVersion { path: PathBuf, found: String, installed: String },

    #[error("postgres: {0}")]
    Database(#[from] sqlx::Error),

    #[error("a database name is 1 to 63 of a-z, 0-9 and _, not starting with a digit, not {name:?}")]
    DatabaseName { name: String },

    #[error("there is no replica {index} of {service}")]
    NoSuchReplica { service: &'static str, index: usize },
}

impl LocalError {
    /// For `map_err`: what was being done (`"cannot read"`), and to which file.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
