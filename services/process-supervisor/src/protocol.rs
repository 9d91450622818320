//! The protocol between a supervisor and its guard: JSON, one value a line, commands on the guard's standard input and
//! reports on its standard output.
//!
//! Both ends are the same binary, so this needs no versions; a line that cannot be read is a
//! broken peer, and the guard then kills what it guards.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use kairo_proto::words::ProcessOutcome;
use serde::{Deserialize, Serialize};

/// The longest line of either direction in bytes. A line that is longer breaks the connection.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// One process: what to run, within which bounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Absolute path; `PATH` is never searched.
    pub program: PathBuf,
    /// Given to the program as they are: there is no shell.
    pub args: Vec<String>,
    pub cwd: PathBuf,
    /// The whole environment: nothing is inherited.
    pub env: BTreeMap<String, String>,
    /// True if standard input is a pipe that [`GuardCommand::Write`] writes to; else it is empty.
    pub stdin: bool,
    /// The files and ports that the program may reach; without this, all that its user may.
    pub access: Option<Access>,
    /// True if it sees and can signal only processes that it has started itself.
    pub pid_namespace: bool,
    /// True if its system calls are filtered.
    pub seccomp: bool,
    /// True if it has a network of its own, with nobody in it. Only with `pid_namespace`.
    pub network_namespace: bool,
    pub bounds: Bounds,
    /// Without a beat for this long, by [`crate::clock`], the supervisor counts as lost and everything is killed.
    pub lease_ms: u64,
}

/// The files a program may open, besides its working folder and its own executable, and the TCP ports it may use. Files
/// that do not exist are passed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// True if the program must not run when the kernel cannot enforce the rules on files.
    pub required: bool,
    /// May be read and executed, with all that is beneath.
    pub read: Vec<PathBuf>,
    /// May be written too, with all that is beneath.
    pub write: Vec<PathBuf>,
    /// TCP ports, on any machine, that it may connect to.
    pub connect: Vec<u16>,
    /// TCP ports that it may take.
    pub listen: Vec<u16>,
}

/// The sockets that a program may open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sockets {
    /// All that its user may.
    Any,
    /// Those of TCP, on the ports that are listed, of UDP, and of the machine.
    Ports,
    /// Those of the machine alone: Unix sockets.
    None,
}

impl Sockets {
    /// Of a program that may reach this much.
    pub fn for_access(access: Option<&Access>) -> Self {
        match access {
            None => Self::Any,
            Some(access) if access.connect.is_empty() && access.listen.is_empty() => Self::None,
            Some(_) => Self::Ports,
        }
    }
}

/// The limits of one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// From the start of the program until it is asked to end.
    pub time_ms: u64,
    /// From being asked to end (SIGTERM) until it is killed.
    pub grace_ms: u64,
    /// Address space of each process of the tree.
    pub memory_bytes: u64,
    /// Processor time of each process of the tree.
    pub cpu_s: u64,
    /// Open files of each process of the tree.
    pub open_files: u64,
    /// Processes of the operating-system user as a whole, which is how Linux counts them; it does
    /// not bind root. `None` leaves the inherited limit.
    pub processes: Option<u64>,
    /// Over both streams; what comes after is counted and thrown away.
    pub output_bytes: u64,
    /// Of input that the program has not read, beyond what its pipe holds.
    pub stdin_bytes: usize,
}

/// From the supervisor to the guard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cmd", rename_all = "snake_case")]
pub enum GuardCommand {
    /// Always first: make the process, but do not let it run its program.
    Prepare { spec: Box<Spec> },
    /// The gate: run the program.
    Go,
    /// The supervisor still held its lease at this time of [`crate::clock`], in milliseconds.
    Beat { at_ms: u64 },
    /// Pass a signal to the program's process group.
    Signal { signal: Signal },
    /// Ask the process group to end, and kill it after the grace period.
    Cancel { grace_ms: u64 },
    /// Pass `text` to the program's standard input, and `close` it when all has been passed on.
    Write { text: String, close: bool },
}

/// From the guard to the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// The process exists, leads a group of its own id, and waits at the gate.
    Ready {
        pid: u32,
    },
    /// The program runs.
    Started,
    Output(Output),
    /// This much of what [`GuardCommand::Write`] brought has reached the program's standard input.
    InputTaken {
        bytes: usize,
    },
    /// The program has closed its standard input.
    InputClosed,
    /// Always last: nothing of the process is left.
    Exited(Exit),
}

/// A piece of what a process wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    pub stream: Stream,
    /// Counted from 0 over both streams, in the order they were read.
    pub seq: u64,
    /// UTF-8 that Postgres can store too: what is not, and NUL, became U+FFFD.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    /// The name used in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        }
    }
}

/// The signals that may be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Signal {
    Hup,
    Int,
    Quit,
    Usr1,
    Usr2,
    Term,
    Kill,
    Stop,
    Cont,
}

/// The end of a process and of all its descendants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    pub outcome: ExitOutcome,
    pub usage: ResourceUsage,
    pub output: OutputTotals,
    /// Descendants that were still not dead when the guard gave up, which happens only when the
    /// kernel holds them (a hanging file system).
    pub survivors: u32,
}

/// The end of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitOutcome {
    Exited {
        code: i32,
    },
    Signaled {
        signal: i32,
    },
    TimedOut,
    Canceled,
    /// The program never ran.
    SpawnFailed {
        reason: String,
    },
    /// The supervisor died or did not renew its lease.
    SupervisorLost,
}

impl ExitOutcome {
    /// As events say it.
    pub fn to_process_outcome(&self) -> ProcessOutcome {
        match self {
            ExitOutcome::Exited { .. } => ProcessOutcome::Exited,
            ExitOutcome::Signaled { .. } => ProcessOutcome::Signaled,
            ExitOutcome::TimedOut => ProcessOutcome::TimedOut,
            ExitOutcome::Canceled => ProcessOutcome::Canceled,
            ExitOutcome::SpawnFailed { .. } => ProcessOutcome::SpawnFailed,
            ExitOutcome::SupervisorLost => ProcessOutcome::SupervisorLost,
        }
    }
}

/// Resources used by the process and all its descendants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceUsage {
    pub wall_ms: u64,
    pub user_ms: u64,
    pub system_ms: u64,
    /// Of the largest process of the tree. Never below the few MiB of the launcher, which the
    /// program replaced.
    pub max_rss_bytes: u64,
}

/// Bytes written, kept or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputTotals {
    pub stdout_bytes: u64,
    pub stderr_bytes: u64,
    /// Of both streams, beyond the output limit.
    pub discarded_bytes: u64,
}

impl Spec {
    pub fn lease(&self) -> Duration {
        Duration::from_millis(self.lease_ms)
    }
}

impl Bounds {
    pub fn time(&self) -> Duration {
        Duration::from_millis(self.time_ms)
    }

    pub fn grace(&self) -> Duration {
        Duration::from_millis(self.grace_ms)
    }
}
