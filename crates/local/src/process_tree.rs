//! Killing a server together with the processes it forked, as a power cut would.
//!
//! Postgres puts each backend into a session of its own, so its process group is not enough; and
//! after the death of their parent the backends still hold its shared memory for a moment, in which
//! it cannot be started again. Hence: freeze the parent so that it forks no more, kill all, and wait
//! for all.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

/// Sends SIGKILL to a child of ours and to its children, and returns descriptors of the latter.
pub(crate) fn kill_with_children(parent: Pid) -> Vec<OwnedFd> {
    // Each may have ended meanwhile, which is as well.
    let _ = kill_process(parent, Signal::STOP);
    let children: Vec<OwnedFd> =
        children_of(parent).filter_map(|child| pidfd_open(child, PidfdFlags::NONBLOCK).ok()).collect();
    for child in &children {
        let _ = pidfd_send_signal(child, Signal::KILL);
    }
    let _ = kill_process(parent, Signal::KILL);
    children
}

/// Blocks until none of these processes runs, or the deadline has passed; says whether they are gone.
pub(crate) fn wait_until_gone(processes: &[OwnedFd], deadline: Duration) -> bool {
    let end = Instant::now() + deadline;
    processes.iter().all(|process| {
        let left = end.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).ok();
        // A process's descriptor becomes readable when the process ends.
        let mut ended = [PollFd::new(process, PollFlags::IN)];
        matches!(poll(&mut ended, left.as_ref()), Ok(1..))
    })
}

/// Descriptors of the processes whose working directory is this one. Those that have ended have none.
pub(crate) fn processes_working_in(dir: &Path) -> Vec<OwnedFd> {
    let works_here = |pid: &Pid| {
        let cwd = fs::read_link(format!("/proc/{}/cwd", pid.as_raw_nonzero()));
        cwd.is_ok_and(|cwd| cwd == dir)
    };
    let found = pids().filter(works_here);
    found.filter_map(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK).ok()).collect()
}

fn pids() -> impl Iterator<Item = Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten();
    processes.filter_map(|entry| Pid::from_raw(entry.ok()?.file_name().to_str()?.parse().ok()?))
}

fn children_of(parent: Pid) -> impl Iterator<Item = Pid> {
    pids().filter(move |pid| {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        stat.is_ok_and(|stat| parse_parent(&stat) == Some(parent))
    })
}

/// The fourth field of /proc/PID/stat. The second, the program's name, may itself hold spaces and
/// parentheses, so the fields are counted from its last one.
fn parse_parent(stat: &str) -> Option<Pid> {
    let (_, after_name) = stat.rsplit_once(')')?;
    Pid::from_raw(after_name.split_whitespace().nth(1)?.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_read_past_any_program_name() {
        assert_eq!(parse_parent("12 (sh) S 7 12 12 0"), Pid::from_raw(7));
        assert_eq!(parse_parent("12 (a b) S 3) R 9 12"), Pid::from_raw(9));
        assert_eq!(parse_parent("12"), None);
    }
}
