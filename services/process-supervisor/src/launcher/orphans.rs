//! Handles the processes that a killed guard leaves behind.
//!
//! All descendants of a program fall to its guard. If a program has killed its guard (they may share a user), they fall
//! to the process above that adopts orphans. If that is the supervisor, every child of it that is not a guard was left
//! by one.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, timeout};

use crate::guard::process_table::ProcessTable;
use crate::guard::process_tree::{KILL_TIMEOUT, RESCAN};

/// The guards of this process, and all else that becomes a child of it.
#[derive(Debug, Default)]
pub(super) struct Orphans {
    guards: Guards,
    adopted: bool,
}

type Guards = Arc<Mutex<BTreeSet<Pid>>>;

/// Says that a guard is none, for as long as it is not dropped.
#[derive(Debug)]
pub(super) struct GuardRegistration {
    pid: Pid,
    guards: Guards,
}

impl Drop for GuardRegistration {
    fn drop(&mut self) {
        lock(&self.guards).remove(&self.pid);
    }
}

fn lock(guards: &Guards) -> MutexGuard<'_, BTreeSet<Pid>> {
    guards.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Orphans {
    /// From now on they become children of this process.
    pub(super) fn become_subreaper(&mut self) -> nix::Result<()> {
        prctl::set_child_subreaper(true)?;
        self.adopted = true;
        Ok(())
    }

    /// Starts a guard.
    pub(super) fn start(&self, guard: &mut Command) -> io::Result<(Child, GuardRegistration)> {
        // Nobody looks for orphans between its birth and its being known.
        let mut guards = lock(&self.guards);
        let child = guard.spawn()?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).map(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("it has no process id"))?;
        guards.insert(pid);
        Ok((child, GuardRegistration { pid, guards: self.guards.clone() }))
    }

    /// Kills all orphans with their descendants, if this process has adopted them, and waits until they are dead.
    ///
    /// # Errors
    /// When it cannot be seen which there are, or they do not die.
    pub(super) async fn kill(&self) -> io::Result<()> {
        if !self.adopted {
            return Ok(());
        }
        // Before the first look: a death during it must still be news afterwards.
        let mut deaths = signal(SignalKind::child())?;
        let deadline = Instant::now() + KILL_TIMEOUT;
        while let Some(alive) = self.sweep()? {
            if Instant::now() >= deadline {
                return Err(io::Error::other(format!("{alive} processes hang in the kernel")));
            }
            if alive > 0 {
                // Without news, another look.
                timeout(Duration::from_millis(RESCAN.into()), deaths.recv()).await.ok();
            }
        }
        Ok(())
    }

    /// Kills what there is, and takes in what is dead. `None` when there was nothing; else how many are still alive.
    fn sweep(&self) -> io::Result<Option<usize>> {
        let guards = lock(&self.guards);
        let family = ProcessTable::scan()?;
        let orphans = family.children(Pid::this()).iter().filter(|pid| !guards.contains(pid));
        let mut alive = None;
        for orphan in orphans {
            for pid in family.descendants(*orphan).into_iter().chain([*orphan]) {
                // Whoever is gone already is what we want.
                kill(pid, Signal::SIGKILL).ok();
            }
            let still = matches!(waitpid(*orphan, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::StillAlive));
            alive = Some(alive.unwrap_or(0) + usize::from(still));
        }
        Ok(alive)
    }
}
