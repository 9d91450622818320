//! The launcher: the process at the gate. It puts the limits on itself and, once let through,
//! becomes the program, so that the program never runs a single instruction without them.
//!
//! The limits are not put on the guard: one that runs out of processor time or memory because
//! its process floods it with output would guard nothing.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use landlock::RulesetError;
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};

use super::{
    access,
    namespace::{mount_own_proc, unshare_network},
    privileges::{close_inherited, drop_capabilities},
    system_calls::{self, FilterError},
};
use crate::protocol::{Bounds, MAX_LINE_BYTES, Sockets, Spec};

/// The word from the guard that opens the gate.
pub(super) const GO: &str = "go\n";

/// The descriptor of the program's future standard input, while standard input itself is the gate. The guard has this
/// number open too, so that no file opened to start a process gets it.
pub(super) const INPUT_FD: RawFd = 3;

/// Reads the [`Spec`] from standard input, waits there for the word to go, and becomes the
/// program. Returns only when it does not: the end of input means nothing is to be run, and why a
/// program cannot be started is written back.
///
/// # Errors
/// When standard input is not the socket of a guard.
pub fn run() -> io::Result<()> {
    close_inherited(INPUT_FD)?;
    let input = take_input()?;
    // Duplicates are closed on exec, which tells the guard that the program has started.
    let mut guard = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut lines = BufReader::new(guard.try_clone()?);
    let Some(line) = read_line(&mut lines)? else {
        return Ok(());
    };
    let failure = match serde_json::from_str::<Spec>(&line) {
        Ok(spec) => match launch(&spec, input, &mut lines) {
            Ok(()) => return Ok(()),
            Err(failure) => failure.to_string(),
        },
        Err(error) => format!("the specification cannot be read: {error}"),
    };
    guard.write_all(failure.as_bytes())
}

#[derive(Debug, thiserror::Error)]
enum LaunchError {
    #[error("the process could not be given a /proc of its own: {0}")]
    Proc(#[source] nix::Error),
    #[error("the process could not be given a network of its own: {0}")]
    Network(#[source] nix::Error),
    #[error("the process could not be confined: {0}")]
    Confine(#[from] nix::Error),
    #[error("the process could not be stripped of what root may do: {0}")]
    Capabilities(#[source] io::Error),
    #[error("limit {resource:?} could not be set: {source}")]
    Limit { resource: Resource, source: nix::Error },
    #[error(
        "which files it may open could not be restricted: {0}; let it run on Linux 6.2 or later with Landlock enabled, \
         or configure process_supervisor.landlock.mode otherwise"
    )]
    Access(#[from] RulesetError),
    #[error(
        "its system calls could not be restricted: {0}; let it run on a kernel with seccomp, or configure \
         process_supervisor.seccomp otherwise"
    )]
    SystemCalls(#[from] FilterError),
    #[error("the gate is broken: {0}")]
    Gate(io::Error),
    #[error("{program} could not be started in {cwd}: {source}")]
    Exec { program: String, cwd: String, source: io::Error },
}

/// `Ok` when the gate was closed for good instead of opened.
fn launch(spec: &Spec, input: File, gate: &mut impl BufRead) -> Result<(), LaunchError> {
    if spec.pid_namespace {
        mount_own_proc().map_err(LaunchError::Proc)?;
    }
    if spec.network_namespace {
        unshare_network().map_err(LaunchError::Network)?;
    }
    confine()?;
    let mut command = Command::new(&spec.program);
    command.args(&spec.args).env_clear().envs(&spec.env).current_dir(&spec.cwd).stdin(input);
    if read_line(gate).map_err(LaunchError::Gate)?.as_deref() != Some(GO.trim_end()) {
        return Ok(());
    }
    if let Some(access) = &spec.access {
        access::restrict(access, spec)?;
    }
    if spec.seccomp {
        system_calls::restrict(Sockets::for_access(spec.access.as_ref()))?;
    }
    // Last, because the memory limit may be less than what this process itself has mapped.
    apply_limits(&spec.bounds)?;
    Err(LaunchError::Exec {
        program: spec.program.display().to_string(),
        cwd: spec.cwd.display().to_string(),
        source: command.exec(),
    })
}

fn read_line(input: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    let max = MAX_LINE_BYTES as u64 + 1;
    input.by_ref().take(max).read_line(&mut line)?;
    Ok(line.strip_suffix('\n').map(str::to_owned))
}

/// Opened anew: closed on exec, unlike the file that was handed over.
fn take_input() -> io::Result<File> {
    let input = File::open(format!("/proc/self/fd/{INPUT_FD}"))?;
    nix::unistd::close(INPUT_FD)?;
    Ok(input)
}

fn confine() -> Result<(), LaunchError> {
    // The guard's blocked signals are inherited, over exec too.
    SigSet::empty().thread_set_mask()?;
    // If the guard is killed, this process at least goes with it.
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    // Neither sudo nor any other setuid program gets the tree out of the guard's reach.
    prctl::set_no_new_privs()?;
    // When the machine runs out of memory, the program is a better victim than its supervisor.
    // Not every container has this file, and nothing depends on it.
    std::fs::write("/proc/self/oom_score_adj", "500").ok();
    drop_capabilities().map_err(LaunchError::Capabilities)
}

fn apply_limits(bounds: &Bounds) -> Result<(), LaunchError> {
    lower(Resource::RLIMIT_CORE, 0, 0)?;
    // SIGXCPU first, so that the outcome tells, and SIGKILL for whoever ignores it.
    lower(Resource::RLIMIT_CPU, bounds.cpu_s, bounds.cpu_s.saturating_add(1))?;
    lower(Resource::RLIMIT_NOFILE, bounds.open_files, bounds.open_files)?;
    if let Some(processes) = bounds.processes {
        lower(Resource::RLIMIT_NPROC, processes, processes)?;
    }
    lower(Resource::RLIMIT_AS, bounds.memory_bytes, bounds.memory_bytes)
}

/// Sets a limit, or leaves a stricter one that was inherited.
fn lower(resource: Resource, soft: u64, hard: u64) -> Result<(), LaunchError> {
    let set = || {
        let (_, inherited) = getrlimit(resource)?;
        setrlimit(resource, soft.min(inherited), hard.min(inherited))
    };
    set().map_err(|source| LaunchError::Limit { resource, source })
}
