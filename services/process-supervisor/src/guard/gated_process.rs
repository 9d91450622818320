//! The process that a guard holds: its gate, its input and output, its end.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ExitStatus, Stdio};

use command_fds::{CommandFdExt, FdMapping};
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use super::launch::{GO, INPUT_FD};
use super::namespace::Namespace;
use super::own_binary::own_binary_command;
use super::program_input::ProgramInput;
use crate::protocol::{ExitOutcome, Spec, Stream};
use crate::watch::Cause;

const READ_BYTES: usize = 16 << 10;

/// Leader of a process group of its own: first the launcher, then the program.
pub(super) struct GatedProcess {
    child: Child,
    pid: Pid,
    _namespace: Option<Namespace>,
    /// Until the program has replaced the launcher.
    gate: Option<UnixStream>,
    pub(super) input: ProgramInput,
    /// The launcher's reason for not becoming the program; empty if it did.
    failure: String,
    status: Option<ExitStatus>,
}

impl GatedProcess {
    /// Starts the launcher, which then waits at the gate.
    pub(super) fn spawn(spec: &Spec) -> io::Result<Self> {
        let (mut gate, launcher) = UnixStream::pair()?;
        let (input, read_by_program) = ProgramInput::open(spec.stdin)?;
        let namespace = spec.pid_namespace.then(Namespace::enter).transpose()?;
        let child = own_binary_command("launch")
            .stdin(OwnedFd::from(launcher))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .fd_mappings(vec![FdMapping { parent_fd: read_by_program, child_fd: INPUT_FD }])
            .map_err(io::Error::other)?
            .spawn()?;
        let mut line = serde_json::to_vec(spec)?;
        line.push(b'\n');
        gate.write_all(&line)?;
        Ok(Self {
            pid: Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?),
            child,
            _namespace: namespace,
            gate: Some(gate),
            input,
            failure: String::new(),
            status: None,
        })
    }

    /// Also the id of its group.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Opens the gate. That the launcher is gone shows when it is waited for.
    pub(super) fn open_gate(&mut self) {
        if let Some(gate) = &mut self.gate {
            gate.write_all(GO.as_bytes()).ok();
        }
    }

    /// Reads what the launcher says. `true` when the program has taken its place.
    pub(super) fn read_gate(&mut self) -> bool {
        let Some(gate) = &mut self.gate else {
            return false;
        };
        let mut bytes = [0; 1024];
        match gate.read(&mut bytes) {
            Ok(count @ 1..) => {
                let text = bytes.get(..count).unwrap_or_default();
                self.failure.push_str(&String::from_utf8_lossy(text));
                false
            }
            Ok(0) | Err(_) => {
                self.gate = None;
                self.failure.is_empty()
            }
        }
    }

    pub(super) fn gate(&self) -> Option<BorrowedFd<'_>> {
        self.gate.as_ref().map(AsFd::as_fd)
    }

    /// The reading end of a stream that has not ended.
    pub(super) fn output(&self, stream: Stream) -> Option<BorrowedFd<'_>> {
        match stream {
            Stream::Stdout => self.child.stdout.as_ref().map(AsFd::as_fd),
            Stream::Stderr => self.child.stderr.as_ref().map(AsFd::as_fd),
        }
    }

    /// Reads a stream once. Empty at its end, after which it is gone.
    pub(super) fn read_output(&mut self, stream: Stream) -> Vec<u8> {
        let mut bytes = vec![0; READ_BYTES];
        let read = match stream {
            Stream::Stdout => self.child.stdout.as_mut().map(|pipe| read_once(pipe, &mut bytes)),
            Stream::Stderr => self.child.stderr.as_mut().map(|pipe| read_once(pipe, &mut bytes)),
        };
        let count = read.and_then(Result::ok).unwrap_or(0);
        if count == 0 {
            match stream {
                Stream::Stdout => drop(self.child.stdout.take()),
                Stream::Stderr => drop(self.child.stderr.take()),
            }
        }
        bytes.truncate(count);
        bytes
    }

    /// Signals the process group.
    pub(super) fn signal(&self, signal: Signal) {
        // The id of a group is only surely ours while its leader has not been waited for.
        if self.status.is_none() {
            // A group that is gone needs no signal.
            killpg(self.pid, signal).ok();
        }
    }

    /// Returns true if the process has ended. If so, its group is killed before the id becomes free.
    pub(super) fn has_ended(&mut self) -> io::Result<bool> {
        if self.status.is_none() {
            let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
            if waitid(Id::Pid(self.pid), flags) == Ok(WaitStatus::StillAlive) {
                return Ok(false);
            }
            self.signal(Signal::SIGKILL);
            self.status = self.child.try_wait()?;
        }
        Ok(true)
    }

    /// Reaps orphans of the tree that have died, so that no zombies pile up.
    pub(super) fn reap_orphans(&self) {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        while let Ok(status) = waitid(Id::All, flags) {
            match status.pid() {
                Some(pid) if pid != self.pid => {
                    nix::sys::wait::waitpid(pid, Some(WaitPidFlag::WNOHANG)).ok();
                }
                // Nobody, or the process itself, whose end is looked at with care.
                _ => return,
            }
        }
    }

    /// Returns the outcome, once the process is over for this `cause`.
    pub(super) fn outcome(&self, cause: Cause) -> ExitOutcome {
        match cause {
            Cause::TimedOut => ExitOutcome::TimedOut,
            Cause::Canceled => ExitOutcome::Canceled,
            Cause::SupervisorLost => ExitOutcome::SupervisorLost,
            Cause::Ended if !self.failure.is_empty() => ExitOutcome::SpawnFailed { reason: self.failure.clone() },
            Cause::Ended => match self.status.map(|s| (s.code(), s.signal())) {
                Some((Some(code), _)) => ExitOutcome::Exited { code },
                Some((None, Some(signal))) => ExitOutcome::Signaled { signal },
                _ => ExitOutcome::SpawnFailed { reason: "its exit status could not be read".to_owned() },
            },
        }
    }
}

/// A read that was interrupted is not the end.
fn read_once(pipe: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    loop {
        match pipe.read(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}
