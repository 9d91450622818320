//! A supervisor's side of a guard that is none: what is said and heard goes through memory.

use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::ready;
use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream, duplex, split};

use super::*;
use crate::{
    confinement::KernelConfinement,
    policy::{Policy, ProgramRequest},
    protocol::{ExitOutcome, OutputTotals, ResourceUsage},
};

/// Hands out one guard, whose side of the pipe the test has.
#[derive(Debug)]
struct Staged {
    pipe: Mutex<Option<DuplexStream>>,
    now: AtomicU64,
    /// The argument of the clean-up, once that is done.
    cleared_up: watch::Sender<Option<Option<u32>>>,
}

impl Launch for Staged {
    fn ensure_workplace<'a>(&'a self, root: &'a Path, _: &'a Name) -> BoxFuture<'a, Result<PathBuf, WorkplaceError>> {
        ready(Ok(root.to_owned())).boxed()
    }

    fn start(&self) -> Result<LaunchedGuard, GuardedError> {
        let (reports, commands) = split(self.pipe.lock().unwrap().take().ok_or(GuardedError::Lost)?);
        let told = self.cleared_up.clone();
        let clear_up = move |lost| {
            told.send_replace(Some(lost));
            ready(()).boxed()
        };
        Ok(LaunchedGuard { commands: Box::new(commands), reports: Box::new(reports), clear_up: Box::new(clear_up) })
    }

    fn kernel_confinement(&self) -> KernelConfinement {
        KernelConfinement { files: true, ports: true, signals: true, pids: true, network: true, system_calls: true }
    }

    fn now(&self) -> Duration {
        Duration::from_millis(self.now.load(Ordering::Relaxed))
    }
}

fn staged() -> (Arc<Staged>, GuardFleet, BufReader<DuplexStream>) {
    let (ours, theirs) = duplex(1 << 16);
    let launcher = Arc::new(Staged {
        pipe: Mutex::new(Some(ours)),
        now: AtomicU64::default(),
        cleared_up: watch::Sender::new(None),
    });
    (launcher.clone(), GuardFleet::new(launcher), BufReader::new(theirs))
}

fn spec() -> Spec {
    let policy = Policy { programs: serde_json::from_str(r#"{"echo": "/bin/echo"}"#).unwrap(), ..Policy::default() };
    let request = ProgramRequest { program: "echo".to_owned(), ..ProgramRequest::default() };
    policy.admit(request, Path::new("/work"), &crate::limits::ProcessLimits::default(), 1_000).unwrap()
}

async fn hear(guard: &mut BufReader<DuplexStream>) -> GuardCommand {
    let mut line = String::new();
    guard.read_line(&mut line).await.unwrap();
    serde_json::from_str(&line).unwrap()
}

async fn report(guard: &mut BufReader<DuplexStream>, report: Report) {
    let mut line = serde_json::to_vec(&report).unwrap();
    line.push(b'\n');
    guard.write_all(&line).await.unwrap();
}

/// A process that was let go.
async fn going(guards: &GuardFleet, guard: &mut BufReader<DuplexStream>) -> GuardedProcess {
    let prepared = async {
        assert!(matches!(hear(guard).await, GuardCommand::Prepare { .. }));
        report(guard, Report::Ready { pid: 7 }).await;
    };
    let (guarded, ()) = tokio::join!(guards.prepare(spec()), prepared);
    let guarded = guarded.unwrap();
    guarded.open_gate().await.unwrap();
    assert!(matches!(hear(guard).await, GuardCommand::Go));
    guarded
}

#[tokio::test]
async fn beats_tell_the_launchers_time_and_an_end_that_was_told_leaves_no_group_to_kill() {
    let (launcher, guards, mut guard) = staged();
    let guarded = going(&guards, &mut guard).await;
    launcher.now.store(40, Ordering::Relaxed);
    guards.send_heartbeat();
    assert!(matches!(hear(&mut guard).await, GuardCommand::Beat { at_ms: 40 }));
    let exit = Exit {
        outcome: ExitOutcome::Exited { code: 0 },
        usage: ResourceUsage::default(),
        output: OutputTotals::default(),
        survivors: 0,
    };
    report(&mut guard, Report::Exited(exit.clone())).await;
    assert_eq!(guarded.wait().await.unwrap(), exit);
    assert_eq!(*launcher.cleared_up.borrow(), Some(None));
}

#[tokio::test]
async fn of_a_guard_that_says_nothing_more_the_group_is_cleared_up() {
    let (launcher, guards, mut guard) = staged();
    let guarded = going(&guards, &mut guard).await;
    drop(guard);
    assert!(matches!(guarded.wait().await, Err(GuardedError::Lost)));
    assert_eq!(*launcher.cleared_up.borrow(), Some(Some(7)));
}

#[tokio::test]
async fn to_drop_a_process_is_to_close_the_pipe_of_its_guard() {
    let (launcher, guards, mut guard) = staged();
    drop(going(&guards, &mut guard).await);
    assert_eq!(guard.read_line(&mut String::new()).await.unwrap(), 0);
    assert_eq!(*launcher.cleared_up.borrow(), None);
}
