//! Process ids of a program's own. Needs a machine that allows them; says so where it does not.

use std::path::Path;
use std::time::Duration;

use kairo_process_supervisor::confinement::KernelConfinement;
use kairo_process_supervisor::protocol::{ExitOutcome, GuardCommand, Spec};
use tempfile::tempdir;

use crate::supervisor_loss::Supervisor;
use crate::witness::Witness;
use crate::{BINARY, in_time, run, shell, start};

fn allowed() -> bool {
    let allowed = KernelConfinement::detect(Path::new(BINARY)).pids;
    if !allowed {
        eprintln!("SKIPPED: this machine allows no PID namespace with a /proc of its own, so there is nothing to test");
    }
    allowed
}

fn alone(script: &str) -> Spec {
    Spec { pid_namespace: true, ..shell(script) }
}

#[tokio::test]
async fn a_program_sees_and_signals_only_what_it_has_started() {
    if !allowed() {
        return;
    }
    // Besides itself there is the first process, which starts nothing and is not its parent.
    let seen = run(alone("echo /proc/[0-9]*; read -r name </proc/$$/comm; echo $name $$ $PPID")).await;
    assert_eq!((seen.stdout.as_str(), seen.stderr.as_str()), ("/proc/1 /proc/2\nsh 2 0\n", ""));
    let outside = std::process::id();
    let killer = run(alone(&format!("kill -9 {outside}; kill -9 1; tail -f /dev/null & kill $! && exit 7"))).await;
    assert_eq!(killer.exit.outcome, ExitOutcome::Exited { code: 7 }, "its own children it may signal");
    assert!(killer.stderr.contains("No such process"), "{}", killer.stderr);
}

#[tokio::test]
async fn it_ends_in_all_the_ways_it_would_without() {
    if !allowed() {
        return;
    }
    assert_eq!(run(alone("exit 3")).await.exit.outcome, ExitOutcome::Exited { code: 3 });
    assert_eq!(run(alone("kill -9 $$")).await.exit.outcome, ExitOutcome::Signaled { signal: 9 });
    let missing = Spec { program: "/nowhere/at/all".into(), ..alone("") };
    assert!(matches!(run(missing).await.exit.outcome, ExitOutcome::SpawnFailed { .. }));

    // Asked to end, which the first process of a namespace could not be.
    let mut guarded = start(alone("echo up; tail -f /dev/null")).await;
    assert_eq!(in_time(guarded.next_output()).await.expect("output").text, "up\n");
    guarded.control().cancel(Duration::from_secs(600)).await.expect("the guard listens");
    assert_eq!(in_time(guarded.wait()).await.expect("an exit").outcome, ExitOutcome::Canceled);
}

#[tokio::test]
async fn what_is_left_behind_is_taken_in_and_dies_with_the_program() {
    if !allowed() {
        return;
    }
    let dir = tempdir().expect("a directory");
    let mut witness = Witness::new(dir.path());
    // The dead that have no parent any more do not stay.
    let script = format!(
        "{}; (true & true &); while grep -qs ^State:.Z /proc/[0-9]*/status; do :; done; read -r line",
        witness.daemon()
    );
    let guarded = start(Spec { stdin: true, ..alone(&script) }).await;
    in_time(witness.alive()).await;
    guarded.control().write("over\n".to_owned(), true).await.expect("it reads");
    let exit = in_time(guarded.wait()).await.expect("an exit");
    assert_eq!((exit.outcome, exit.survivors), (ExitOutcome::Exited { code: 0 }, 0));
    in_time(witness.dead()).await;
}

/// Without a namespace, the process that adopts orphans would get the daemon.
#[tokio::test]
async fn a_program_and_its_daemon_die_with_a_killed_guard() {
    if !allowed() {
        return;
    }
    let dir = tempdir().expect("a directory");
    let mut witness = Witness::new(dir.path());
    let mut supervisor = Supervisor::prepare(alone(&format!("{}; tail -f /dev/null", witness.daemon())));
    supervisor.tell(GuardCommand::Go);
    in_time(witness.alive()).await;

    supervisor.guard.kill().expect("killed");
    supervisor.guard.wait().expect("taken in");
    in_time(witness.dead()).await;
}
