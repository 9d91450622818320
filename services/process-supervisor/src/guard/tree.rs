//! Finding and killing the descendants of this process, daemons included.
//!
//! The guard is a child subreaper: a process whose parent ends becomes the guard's child instead
//! of init's, whatever sessions and groups it made. So the guard's descendants are everything the
//! program ever started, and there are none left when the guard has no children.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// How long a killed process may take to die before it is given up. Only the kernel can keep one
/// that long.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// No news of a death for this long: look again for what there is to kill.
const RESCAN: u16 = 200;

/// Kills all descendants and waits until they are dead. Returns how many would not die.
///
/// # Errors
/// When `/proc` cannot be read.
pub(super) fn kill_all(deaths: &SignalFd) -> io::Result<u32> {
    let deadline = Instant::now() + KILL_TIMEOUT;
    loop {
        // Before the scan: a death during it must still be news afterwards.
        clear(deaths);
        if !reap() {
            return Ok(0);
        }
        let alive = descendants(Pid::this())?;
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
fn reap() -> bool {
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
pub(super) fn clear(signals: &SignalFd) {
    while let Ok(Some(_)) = signals.read_signal() {}
}

pub(super) fn ignore_interruption(error: Errno) -> nix::Result<i32> {
    match error {
        Errno::EINTR => Ok(0),
        error => Err(error),
    }
}

/// Every descendant of `root`.
///
/// `/proc/<pid>/task/<tid>/children` would be quicker, but not every kernel is built with it.
fn descendants(root: Pid) -> io::Result<BTreeSet<Pid>> {
    let mut children: BTreeMap<Pid, Vec<Pid>> = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let Ok(name) = entry?.file_name().into_string() else {
            continue;
        };
        let Ok(pid) = name.parse().map(Pid::from_raw) else {
            continue;
        };
        // A process that ended since the directory was read has no file any more.
        let stat = fs::read(format!("/proc/{name}/stat")).unwrap_or_default();
        if let Some(parent) = parent_of(&String::from_utf8_lossy(&stat)) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = BTreeSet::new();
    let mut next = vec![root];
    while let Some(parent) = next.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            found.insert(child);
            next.push(child);
        }
    }
    Ok(found)
}

/// The parent in a line of `/proc/<pid>/stat`, which reads `pid (name) state parent …`. The name
/// is the program's to choose and may hold spaces and parentheses.
///
/// The dead count too: a zombie thread-group leader may have living threads.
fn parent_of(stat: &str) -> Option<Pid> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let parent = fields.split(' ').nth(1)?;
    parent.parse().ok().map(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_cannot_hide_by_its_name() {
        assert_eq!(parent_of("17 (sh) S 4 17 4 0 -1"), Some(Pid::from_raw(4)));
        assert_eq!(parent_of("17 (a) S 1 (b) R 4 17 4 0 -1"), Some(Pid::from_raw(4)));
        assert_eq!(parent_of(""), None);
    }

    #[test]
    fn descendants_are_found_and_others_are_not() {
        let mut child =
            std::process::Command::new("/bin/cat").stdin(std::process::Stdio::piped()).spawn().expect("cat");
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid"));

        let found = descendants(Pid::this()).expect("/proc");
        assert!(found.contains(&pid));
        assert!(!found.contains(&Pid::this()));
        assert!(!found.contains(&Pid::parent()));

        drop(child.stdin.take());
        child.wait().expect("cat ends at the end of its input");
        assert!(!descendants(Pid::this()).expect("/proc").contains(&pid));
    }
}
