//! Real guards with real processes. Nothing here sleeps or measures time: each test waits for
//! something to happen, and fails when it has not within [`DEADLINE`].

#![expect(clippy::expect_used, clippy::panic, reason = "the helpers of tests are tests too")]

mod access;
mod input;
mod namespace;
mod supervisor_loss;
mod system_calls;
mod witness;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use kairo_process_supervisor::guarded_process::{GuardFleet, GuardedProcess};
use kairo_process_supervisor::launcher::Launcher;
use kairo_process_supervisor::protocol::{Bounds, Exit, ExitOutcome, Signal, Spec, Stream};
use nix::sys::signal::SigSet;
use nix::sys::signalfd::SignalFd;
use tempfile::tempdir;
use witness::Witness;

const BINARY: &str = env!("CARGO_BIN_EXE_kairo-process-supervisor");

/// The deadline for operations that take milliseconds, on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// No limit gets in the way of a test that does not lower it.
fn spec(program: &str, args: &[&str]) -> Spec {
    Spec {
        program: program.into(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
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
            stdin_bytes: 64 << 10,
        },
        lease_ms: 600_000,
    }
}

fn shell(script: &str) -> Spec {
    spec("/bin/sh", &["-c", script])
}

async fn in_time<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, what).await.expect("it happens before the deadline")
}

fn guards() -> GuardFleet {
    GuardFleet::new(Arc::new(Launcher::new(BINARY)))
}

async fn start(spec: Spec) -> GuardedProcess {
    let guarded = guards().prepare(spec).await.expect("prepared");
    guarded.open_gate().await.expect("the guard listens");
    guarded
}

struct Run {
    stdout: String,
    stderr: String,
    exit: Exit,
}

/// Runs to the end.
async fn run(spec: Spec) -> Run {
    // Held to the end: a lease that nobody can renew is not what these tests are about.
    let guards = guards();
    in_time(async {
        let mut guarded = guards.prepare(spec).await.expect("prepared");
        guarded.open_gate().await.expect("the guard listens");
        let mut stdout = String::new();
        let mut stderr = String::new();
        let mut seq = 0;
        while let Some(output) = guarded.next_output().await {
            assert_eq!(output.seq, seq, "no frame is lost or out of order");
            seq += 1;
            match output.stream {
                Stream::Stdout => stdout.push_str(&output.text),
                Stream::Stderr => stderr.push_str(&output.text),
            }
        }
        let exit = guarded.wait().await.expect("an exit");
        assert_eq!(exit.survivors, 0);
        Run { stdout, stderr, exit }
    })
    .await
}

#[tokio::test]
async fn output_and_exit_code_come_back() {
    let run = run(shell("echo out; echo err >&2; exit 3")).await;
    assert_eq!(run.exit.outcome, ExitOutcome::Exited { code: 3 });
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("out\n", "err\n"));
    assert_eq!(run.exit.output.stdout_bytes, 4);
    assert_eq!(run.exit.output.stderr_bytes, 4);
    assert!(run.exit.usage.max_rss_bytes > 0);
}

#[tokio::test]
async fn a_signal_is_told_from_an_exit() {
    let killed = run(shell("kill -9 $$")).await;
    assert_eq!(killed.exit.outcome, ExitOutcome::Signaled { signal: 9 });
    // Real-time signals have no names.
    let real_time = run(shell("kill -40 $$")).await;
    assert_eq!(real_time.exit.outcome, ExitOutcome::Signaled { signal: 40 });
}

#[tokio::test]
async fn arguments_meet_no_shell() {
    let args = ["$(id)", "`id`", "a  b", "; id", "*", "", "'\""];
    let run = run(spec("/usr/bin/printf", &[&["[%s]"], &args[..]].concat())).await;
    assert_eq!(run.stdout, "[$(id)][`id`][a  b][; id][*][]['\"]");
}

#[tokio::test]
async fn the_environment_is_what_was_given_and_input_is_empty() {
    let env = spec("/usr/bin/env", &[]);
    assert_eq!(run(env).await.stdout, "PATH=/usr/bin:/bin\n");
    let cat = run(spec("/bin/cat", &[])).await;
    assert_eq!(cat.exit.outcome, ExitOutcome::Exited { code: 0 });
}

#[tokio::test]
async fn root_s_programs_may_do_no_more_than_an_ordinary_user() {
    let run = run(shell("grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/self/status | tr -d '0\\n\\t'")).await;
    assert_eq!(run.stdout, "CapInh:CapPrm:CapEff:CapAmb:");
}

#[tokio::test]
async fn only_the_three_standard_files_are_open() {
    // Handed to every process that this one starts, guards included.
    let _leak = SignalFd::new(&SigSet::empty()).expect("a file that is not closed on exec");
    // What `ls` itself opens is the directory, as 3.
    let run = run(spec("/bin/ls", &["/proc/self/fd"])).await;
    assert_eq!(run.stdout, "0\n1\n2\n3\n");
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_named() {
    let run = run(spec("/no/such/program", &[])).await;
    let ExitOutcome::SpawnFailed { reason } = run.exit.outcome else {
        panic!("{:?}", run.exit.outcome);
    };
    assert!(reason.contains("/no/such/program"), "{reason}");
}

#[tokio::test]
async fn limits_are_on_the_program() {
    let mut spec = shell("ulimit -n; ulimit -v; ulimit -t; ulimit -c");
    spec.bounds.open_files = 99;
    spec.bounds.memory_bytes = 100 << 20;
    spec.bounds.cpu_s = 7;
    assert_eq!(run(spec).await.stdout, "99\n102400\n7\n0\n");
}

#[tokio::test]
async fn memory_beyond_the_limit_is_refused() {
    let allocate = ["if=/dev/zero", "of=/dev/null", "bs=512M", "count=1"];
    let mut dd = spec("/bin/dd", &allocate);
    let enough = run(dd.clone()).await;
    assert_eq!(enough.exit.outcome, ExitOutcome::Exited { code: 0 });
    assert!(enough.exit.usage.max_rss_bytes > 512 << 20);

    dd.bounds.memory_bytes = 128 << 20;
    let refused = run(dd).await;
    assert_eq!(refused.exit.outcome, ExitOutcome::Exited { code: 1 });
    assert!(refused.stderr.contains("memory"), "{}", refused.stderr);
}

#[tokio::test]
async fn processor_time_is_limited() {
    let mut spec = shell("while :; do :; done");
    spec.bounds.cpu_s = 1;
    const SIGXCPU: i32 = 24;
    let outcome = run(spec).await.exit.outcome;
    assert_eq!(outcome, ExitOutcome::Signaled { signal: SIGXCPU });
}

#[tokio::test]
async fn a_canceled_program_may_say_goodbye() {
    let script = "trap 'echo bye; exit 0' TERM; echo ready; tail -f /dev/null & wait";
    let mut guarded = in_time(start(shell(script))).await;
    let ready = in_time(guarded.next_output()).await.expect("a line");
    assert_eq!(ready.text, "ready\n");
    let canceled = guarded.control().cancel(DEADLINE).await;
    canceled.expect("the guard listens");
    let bye = in_time(guarded.next_output()).await.expect("a line");
    assert_eq!(bye.text, "bye\n");
    let exit = in_time(guarded.wait()).await.expect("an exit");
    assert_eq!(exit.outcome, ExitOutcome::Canceled);
}

#[tokio::test]
async fn who_ignores_the_time_limit_is_killed() {
    let mut spec = shell("trap '' TERM; while :; do :; done");
    spec.bounds.time_ms = 1;
    spec.bounds.grace_ms = 1;
    assert_eq!(run(spec).await.exit.outcome, ExitOutcome::TimedOut);
}

#[tokio::test]
async fn output_beyond_the_limit_is_thrown_away_and_blocks_nobody() {
    let mut spec = shell("head -c 1000000 /dev/zero | tr '\\0' x; echo done >&2; exit 4");
    spec.bounds.output_bytes = 1_000;
    let run = run(spec).await;
    assert_eq!(run.exit.outcome, ExitOutcome::Exited { code: 4 });
    assert_eq!(run.stdout, "x".repeat(1_000));
    assert_eq!(run.exit.output.stdout_bytes, 1_000_000);
    assert_eq!(run.exit.output.discarded_bytes, 1_000_000 - 1_000 + 5);
}

#[tokio::test]
async fn a_flood_that_nobody_reads_does_not_hide_the_end() {
    let mut spec = spec("/usr/bin/yes", &[]);
    spec.bounds.output_bytes = 64 << 20;
    let mut guarded = in_time(start(spec)).await;
    in_time(guarded.next_output()).await.expect("the flood begins");
    let control = guarded.control();
    control.cancel(DEADLINE).await.expect("the guard listens");
    let exit = in_time(guarded.wait()).await.expect("an exit");
    assert_eq!(exit.outcome, ExitOutcome::Canceled);
}

#[tokio::test]
async fn closed_and_binary_output_are_borne() {
    let closed = run(shell("exec >&- 2>&-; exit 5")).await;
    assert_eq!(closed.exit.outcome, ExitOutcome::Exited { code: 5 });
    let binary = run(shell("printf 'a\\377\\000\\342\\202\\254\\342'")).await;
    assert_eq!(binary.stdout, "a\u{FFFD}\u{FFFD}€\u{FFFD}");
}

#[tokio::test]
async fn a_child_left_behind_does_not_hold_up_the_end() {
    let run = run(shell("tail -f /dev/null & echo done")).await;
    assert_eq!(run.exit.outcome, ExitOutcome::Exited { code: 0 });
    assert_eq!(run.stdout, "done\n");
}

#[tokio::test]
async fn a_daemon_dies_when_its_program_ends() {
    let dir = tempdir().expect("a directory");
    let mut witness = Witness::new(dir.path());
    // The program ends when it is told that the daemon is up.
    let script = format!("trap 'exit 6' USR1; {}; tail -f /dev/null & wait", witness.daemon());
    let guarded = in_time(start(shell(&script))).await;
    in_time(witness.alive()).await;
    let control = guarded.control();
    let told = control.signal(Signal::Usr1).await;
    told.expect("the guard listens");
    let exit = in_time(guarded.wait()).await.expect("an exit");
    // `tail` gets the signal too, and the shell runs its trap whichever it sees first.
    assert_eq!(exit.outcome, ExitOutcome::Exited { code: 6 });
    in_time(witness.dead()).await;
}

#[tokio::test]
async fn cancel_kills_who_ignores_it_and_its_daemons() {
    let dir = tempdir().expect("a directory");
    let mut witness = Witness::new(dir.path());
    let script = format!("trap '' TERM; {}; tail -f /dev/null", witness.daemon());
    let guarded = in_time(start(shell(&script))).await;
    in_time(witness.alive()).await;
    let canceled = guarded.control().cancel(Duration::ZERO).await;
    canceled.expect("the guard listens");
    let exit = in_time(guarded.wait()).await.expect("an exit");
    assert_eq!(exit.outcome, ExitOutcome::Canceled);
    in_time(witness.dead()).await;
}

#[tokio::test]
async fn forking_faster_than_one_looks_is_no_escape() {
    let dir = tempdir().expect("a directory");
    let mut witness = Witness::new(dir.path());
    let pipe = witness.path().display();
    // In a session of its own, a chain of processes each of which has ended before its id is of
    // use to anybody. It goes on for as long as the pipe has a name, so that a test that fails
    // leaves nothing behind.
    let link = format!("[ -e {pipe} ] && sh -c \"$0\" \"$0\" &");
    let first = "echo alive >&3; sh -c \"$0\" \"$0\" &";
    let script = format!("exec 3>{pipe}; setsid sh -c '{first}' '{link}'; tail -f /dev/null");
    let guarded = in_time(start(shell(&script))).await;
    in_time(witness.alive()).await;
    let canceled = guarded.control().cancel(Duration::ZERO).await;
    canceled.expect("the guard listens");
    let exit = in_time(guarded.wait()).await.expect("an exit");
    assert_eq!(exit.survivors, 0);
    in_time(witness.dead()).await;
}

#[tokio::test]
async fn many_processes_run_side_by_side() {
    let guards = guards();
    let mut running = Vec::new();
    for code in 0..16 {
        let spec = shell(&format!("exit {code}"));
        running.push(in_time(guards.prepare(spec)).await.expect("prepared"));
    }
    for guarded in &running {
        guarded.open_gate().await.expect("the guard listens");
    }
    for (code, guarded) in (0..).zip(running) {
        let exit = in_time(guarded.wait()).await.expect("an exit");
        assert_eq!(exit.outcome, ExitOutcome::Exited { code });
    }
}
