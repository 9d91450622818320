//! Tests that a daemon ends although its program has killed its guard. It is a program of its own because the process
//! of the test must start nothing but guards.

#![expect(clippy::expect_used, reason = "the helpers of tests are tests too")]

#[path = "../guard/witness.rs"]
mod witness;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use kairo_process_supervisor::guarded_process::{GuardFleet, GuardedError, GuardedProcess};
use kairo_process_supervisor::launcher::Launcher;
use kairo_process_supervisor::protocol::{Bounds, ExitOutcome, Spec};
use tempfile::tempdir;
use witness::Witness;

const BINARY: &str = env!("CARGO_BIN_EXE_kairo-process-supervisor");

/// The deadline for operations that take milliseconds, on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

async fn in_time<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, what).await.expect("it happens before the deadline")
}

async fn start(guards: &GuardFleet, script: &str) -> GuardedProcess {
    let spec = Spec {
        program: "/bin/sh".into(),
        args: vec!["-c".to_owned(), script.to_owned()],
        cwd: "/".into(),
        env: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        stdin: false,
        access: None,
        pid_namespace: false,
        seccomp: false,
        network_namespace: false,
        bounds: Bounds {
            time_ms: 600_000,
            grace_ms: 600_000,
            memory_bytes: 4 << 30,
            cpu_s: 600,
            open_files: 256,
            processes: None,
            output_bytes: 1 << 20,
            stdin_bytes: 1,
        },
        lease_ms: 600_000,
    };
    let guarded = in_time(guards.prepare(spec)).await.expect("prepared");
    guarded.open_gate().await.expect("the guard listens");
    guarded
}

#[tokio::test]
async fn a_daemon_whose_guard_was_killed_dies_and_others_do_not() {
    let dir = tempdir().expect("a directory");
    let mut witness = Witness::new(dir.path());
    let launcher = Launcher::new(BINARY).adopting_orphans().expect("adopted");
    let guards = GuardFleet::new(Arc::new(launcher));
    let other = start(&guards, "tail -f /dev/null").await;

    // The program waits for its daemon to be up.
    let up = witness.path().with_file_name("up");
    let daemon = witness.daemon();
    let killer = format!("mkfifo {0}; {daemon}; read line < {0}; kill -9 $PPID; tail -f /dev/null", up.display());
    let killer = start(&guards, &killer).await;
    in_time(witness.alive()).await;
    let told = tokio::task::spawn_blocking(move || std::fs::write(up, "up\n"));
    in_time(told).await.expect("joined").expect("written");

    let lost = in_time(killer.wait()).await;
    assert!(matches!(lost, Err(GuardedError::Lost)), "{lost:?}");
    in_time(witness.dead()).await;

    other.control().cancel(Duration::ZERO).await.expect("the guard listens");
    let exit = in_time(other.wait()).await.expect("an exit");
    assert_eq!(exit.outcome, ExitOutcome::Canceled);
}
