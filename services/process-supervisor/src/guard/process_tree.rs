//! Finding and killing the descendants of this process, daemons included.
//!
//! The guard is a child subreaper: a process whose parent ends becomes the guard's child instead
//! of init's, whatever sessions and groups it made. So the guard's descendants are everything the
//! program ever started, and there are none left when the guard has no children.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::process_table::ProcessTable;

/// The longest time for a killed process to die before it is given up. Only the kernel can keep one that long.
pub(crate) const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Milliseconds without a death after which the guard looks again for processes to kill.
pub(crate) const RESCAN: u16 = 200;

/// Kills all descendants and waits until they are dead. Returns how many would not die.
///
/// # Errors
/// When `/proc` cannot be read.
pub(super) fn kill_descendants(deaths: &SignalFd) -> io::Result<u32> {
    let deadline = Instant::now() + KILL_TIMEOUT;
    loop {
        // Before the scan: a death during it must still be news afterwards.
        drain_signals(deaths);
        if !reap() {
            return Ok(0);
        }
        let alive = ProcessTable::scan()?.descendants(Pid::this());
        if Instant::now() >= deadline {
            return Ok(u32::try_from(alive.len()).unwrap_or(u32::MAX));
        }
        for pid in alive {
            // Whoever is gone already is what we want.
            kill(pid, Signal::SIGKILL).ok();
        }
        if !reap() {
            return Ok(0);
        }
        let mut news = [PollFd::new(deaths.as_fd(), PollFlags::POLLIN)];
        poll(&mut news, PollTimeout::from(RESCAN)).or_else(ignore_interruption)?;
    }
}

/// Takes in every child that is dead. `false` when no child is left, dead or alive.
pub(super) fn reap() -> bool {
    loop {
        match waitpid(None::<Pid>, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return true,
            Err(Errno::ECHILD) => return false,
            // A child was reaped; `EINVAL` is one that a real-time signal ended.
            Ok(_) | Err(_) => {}
        }
    }
}

/// Forgets the signals that have arrived.
pub(super) fn drain_signals(signals: &SignalFd) {
    while let Ok(Some(_)) = signals.read_signal() {}
}

pub(super) fn ignore_interruption(error: Errno) -> nix::Result<i32> {
    match error {
        Errno::EINTR => Ok(0),
        error => Err(error),
    }
}
