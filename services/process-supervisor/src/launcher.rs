//! Starts guards.
//!
//! Everything a supervisor needs from the machine to run a program is behind [`Launch`]: folders, processes, and a
//! clock that they share. Its exchange with a guard ([`crate::protocol`]) needs none of that, so a simulation can play
//! the guard's side.

mod orphans;
mod workplace;

use std::{
    fmt::Debug,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use kairo_core::ids::Name;
use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    process::{Child, Command},
};

use self::orphans::{GuardRegistration, Orphans};
pub use self::workplace::WorkplaceError;
use crate::{clock, confinement::KernelConfinement, guarded_process::GuardedError};

/// Starts guards.
pub trait Launch: Debug + Send + Sync {
    /// Makes sure that there is a folder of `agent` in `root` for its processes to start in.
    fn ensure_workplace<'a>(
        &'a self,
        root: &'a Path,
        agent: &'a Name,
    ) -> BoxFuture<'a, Result<PathBuf, WorkplaceError>>;

    /// Starts a guard. What it is to run, it is told.
    ///
    /// # Errors
    /// When there is none; nothing of it is left then.
    fn start(&self) -> Result<LaunchedGuard, GuardedError>;

    /// Returns the restrictions that the machine can enforce.
    fn kernel_confinement(&self) -> KernelConfinement;

    /// Returns the time of the clock by which supervisor and guards measure the age of a beat.
    fn now(&self) -> Duration;
}

/// A guard that was started.
pub struct LaunchedGuard {
    /// The guard's input. When this is dropped, the guard kills what it guards.
    pub commands: Box<dyn AsyncWrite + Send + Unpin>,
    /// The guard's output.
    pub reports: Box<dyn AsyncRead + Send + Unpin>,
    pub clear_up: GuardCleanup,
}

/// Sees to what is left of a guard after its last report; when that is done, nothing is. If it went without saying how
/// its process ended, it is given the process group of that.
pub type GuardCleanup = Box<dyn FnOnce(Option<u32>) -> BoxFuture<'static, ()> + Send>;

/// Starts guards as processes of this machine.
#[derive(Debug)]
pub struct Launcher {
    program: PathBuf,
    orphans: Arc<Orphans>,
}

impl Default for Launcher {
    /// Guards of the running binary, also when a new version has taken its place.
    fn default() -> Self {
        Self::new("/proc/self/exe")
    }
}

impl Launcher {
    /// Guards of another binary: that of this crate, which `program` names.
    pub fn new(program: impl AsRef<Path>) -> Self {
        Self { program: program.as_ref().to_owned(), orphans: Arc::default() }
    }

    /// Kills also what is left by a guard that was itself killed. For a process that starts nothing but guards:
    /// whatever else becomes a child of it counts as left by one.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn adopting_orphans(mut self) -> nix::Result<Self> {
        let mut orphans = Orphans::default();
        orphans.become_subreaper()?;
        self.orphans = Arc::new(orphans);
        Ok(self)
    }
}

impl Launch for Launcher {
    fn ensure_workplace<'a>(
        &'a self,
        root: &'a Path,
        agent: &'a Name,
    ) -> BoxFuture<'a, Result<PathBuf, WorkplaceError>> {
        workplace::prepare(root, agent).boxed()
    }

    fn start(&self) -> Result<LaunchedGuard, GuardedError> {
        let start = |source| GuardedError::Start { program: self.program.display().to_string(), source };
        // Never `kill_on_drop`: it is the guard that kills, and it does so when the pipe closes.
        let mut command = Command::new(&self.program);
        // Nor is anything of our environment its business: the token of NATS stands there.
        command.arg0(env!("CARGO_PKG_NAME")).arg("guard").env_clear().stdin(Stdio::piped()).stdout(Stdio::piped());
        let (mut guard, known) = self.orphans.start(&mut command).map_err(start)?;
        let commands = guard.stdin.take().ok_or(GuardedError::Lost)?;
        let reports = guard.stdout.take().ok_or(GuardedError::Lost)?;
        let orphans = self.orphans.clone();
        Ok(LaunchedGuard {
            commands: Box::new(commands),
            reports: Box::new(reports),
            clear_up: Box::new(move |lost| clean_up_guard(guard, known, orphans, lost).boxed()),
        })
    }

    fn kernel_confinement(&self) -> KernelConfinement {
        KernelConfinement::detect(&self.program)
    }

    fn now(&self) -> Duration {
        clock::now()
    }
}

async fn clean_up_guard(guard: Child, known: GuardRegistration, orphans: Arc<Orphans>, lost: Option<u32>) {
    if let Some(group) = lost {
        kill_group(group);
    }
    reap(guard).await;
    drop(known);
    if lost.is_some()
        && let Err(error) = orphans.kill().await
    {
        tracing::error!(%error, "not all that a killed guard left behind could be killed");
    }
}

/// A guard that is gone took its process along; this is for the rest of the group.
fn kill_group(pid: u32) {
    if let Ok(group) = i32::try_from(pid) {
        killpg(Pid::from_raw(group), Signal::SIGKILL).ok();
    }
}

async fn reap(mut guard: Child) {
    match guard.wait().await {
        Ok(status) if status.success() => {}
        Ok(status) => tracing::error!(%status, "a guard failed"),
        Err(error) => tracing::error!(%error, "a guard could not be waited for"),
    }
}
