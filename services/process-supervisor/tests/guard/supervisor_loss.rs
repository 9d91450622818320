//! Tests that a process ends whose supervisor is gone, frozen, or never let it start.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use kairo_process_supervisor::clock;
use kairo_process_supervisor::guarded_process::GuardedError;
use kairo_process_supervisor::protocol::{self, ExitOutcome, Report, Spec};
use tempfile::tempdir;

use crate::witness::Witness;
use crate::{BINARY, guards, in_time, shell, start};

/// A supervisor reduced to a process that holds the pipe to its guard: `cat`, which passes on
/// what the test tells it, and can be killed and frozen like any other.
pub(crate) struct Supervisor {
    process: Child,
    commands: ChildStdin,
    pub(crate) guard: Child,
    /// Of the program; also of its group.
    program: u32,
    reports: BufReader<ChildStdout>,
}

impl Supervisor {
    pub(crate) fn prepare(spec: Spec) -> Self {
        let mut process = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("cat");
        let pipe = process.stdout.take().expect("a pipe");
        let mut guard = Command::new(BINARY).arg("guard").stdin(pipe).stdout(Stdio::piped()).spawn().expect("a guard");
        let mut supervisor = Self {
            commands: process.stdin.take().expect("a pipe"),
            process,
            reports: BufReader::new(guard.stdout.take().expect("a pipe")),
            guard,
            program: 0,
        };
        supervisor.tell(protocol::GuardCommand::Prepare { spec: Box::new(spec) });
        match supervisor.report() {
            Report::Ready { pid } => Self { program: pid, ..supervisor },
            report => panic!("{report:?}"),
        }
    }

    pub(crate) fn tell(&mut self, command: protocol::GuardCommand) {
        let line = serde_json::to_string(&command).expect("JSON");
        writeln!(self.commands, "{line}").expect("written");
    }

    fn report(&mut self) -> Report {
        let mut line = String::new();
        self.reports.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).expect("a report")
    }

    fn signal(&self, signal: &str) {
        let pid = self.process.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.expect("kill").success());
    }

    /// The last report, with the guard gone and the stand-in taken in.
    fn exit(mut self) -> protocol::Exit {
        let exit = loop {
            if let Report::Exited(exit) = self.report() {
                break exit;
            }
        };
        let status = self.guard.wait().expect("the guard ends");
        assert!(status.success());
        self.process.kill().expect("killed");
        self.process.wait().expect("taken in");
        exit
    }
}

/// The supervisor is alive now.
fn beat() -> protocol::GuardCommand {
    protocol::GuardCommand::Beat { at_ms: u64::try_from(clock::now().as_millis()).expect("milliseconds") }
}

#[tokio::test]
async fn a_process_and_its_daemon_die_with_a_killed_supervisor() {
    let dir = tempdir().expect("a directory");
    let mut witness = Witness::new(dir.path());
    // Nobody reads what it writes: the guard must not wait for that to find out.
    let mut spec = shell(&format!("trap '' TERM; {}; yes", witness.daemon()));
    spec.bounds.output_bytes = 64 << 20;
    let mut supervisor = Supervisor::prepare(spec);
    supervisor.tell(protocol::GuardCommand::Go);
    in_time(witness.alive()).await;

    supervisor.signal("-KILL");
    in_time(witness.dead()).await;
    assert_eq!(supervisor.exit().outcome, ExitOutcome::SupervisorLost);
}

#[tokio::test]
async fn a_process_dies_when_its_supervisor_freezes() {
    let dir = tempdir().expect("a directory");
    let mut witness = Witness::new(dir.path());
    let mut spec = shell(&witness.command());
    spec.lease_ms = 5_000;
    let mut supervisor = Supervisor::prepare(spec);
    supervisor.tell(protocol::GuardCommand::Go);
    in_time(witness.alive()).await;

    supervisor.signal("-STOP");
    // It never gets there, and the pipe stays open.
    supervisor.tell(beat());
    in_time(witness.dead()).await;
    assert_eq!(supervisor.exit().outcome, ExitOutcome::SupervisorLost);
}

#[tokio::test]
async fn what_stands_still_as_a_whole_dies_with_its_lease_before_it_does_any_more() {
    let dir = tempdir().expect("a directory");
    let mut witness = Witness::new(dir.path());
    let lines = dir.path().join("lines");
    let pipe = witness.path().display();
    let file = lines.display();
    let script = format!("exec 3>{pipe}; echo line >{file}; echo alive >&3; while :; do echo line >>{file}; done");
    let mut spec = shell(&script);
    spec.lease_ms = 5_000;
    let mut supervisor = Supervisor::prepare(spec);
    supervisor.tell(protocol::GuardCommand::Go);
    in_time(witness.alive()).await;

    supervisor.signal("-STOP");
    for pid in [supervisor.guard.id().to_string(), format!("-{}", supervisor.program)] {
        let sent = Command::new("kill").args(["-STOP", "--", &pid]).status();
        assert!(sent.expect("kill").success());
    }
    let state = || std::fs::read_to_string(format!("/proc/{}/status", supervisor.program)).expect("alive");
    while !state().contains("State:\tT") {
        tokio::task::yield_now().await;
    }
    let written = std::fs::metadata(&lines).expect("written").len();
    // Nobody is told to go on, but the kernel wakes the guard.
    in_time(witness.dead()).await;
    assert_eq!(std::fs::metadata(&lines).expect("written").len(), written);
    assert_eq!(supervisor.exit().outcome, ExitOutcome::SupervisorLost);
}

#[tokio::test]
async fn nothing_runs_when_the_supervisor_dies_before_the_gate_opens() {
    let dir = tempdir().expect("a directory");
    let effect = dir.path().join("effect");
    let script = format!("echo done > {}", effect.display());

    let supervisor = Supervisor::prepare(shell(&script));
    supervisor.signal("-KILL");
    assert_eq!(supervisor.exit().outcome, ExitOutcome::SupervisorLost);
    assert!(!effect.exists());

    // The same script does have its effect once it may run.
    let mut supervisor = Supervisor::prepare(shell(&script));
    supervisor.tell(protocol::GuardCommand::Go);
    assert_eq!(supervisor.exit().outcome, ExitOutcome::Exited { code: 0 });
    assert!(effect.exists());
}

#[tokio::test]
async fn garbage_from_the_supervisor_ends_the_process() {
    let mut supervisor = Supervisor::prepare(shell("tail -f /dev/null"));
    supervisor.tell(protocol::GuardCommand::Go);
    writeln!(supervisor.commands, "garbage").expect("written");
    assert_eq!(supervisor.exit().outcome, ExitOutcome::SupervisorLost);
}

#[tokio::test]
async fn dropping_the_handle_kills() {
    let dir = tempdir().expect("a directory");
    let mut witness = Witness::new(dir.path());
    let guarded = in_time(start(shell(&witness.command()))).await;
    in_time(witness.alive()).await;
    drop(guarded);
    in_time(witness.dead()).await;
}

#[tokio::test]
async fn a_lease_that_is_not_renewed_ends_the_process_and_beats_renew_it() {
    let mut spec = shell("tail -f /dev/null");
    spec.lease_ms = 2_000;
    let guards = guards();
    let silent = in_time(guards.prepare(spec.clone())).await.expect("prepared");
    let exit = in_time(silent.wait()).await.expect("an exit");
    assert_eq!(exit.outcome, ExitOutcome::SupervisorLost);

    // A process that lasts longer than its lease, with beats in between.
    spec.bounds.time_ms = 3_000;
    let beating = in_time(guards.prepare(spec)).await.expect("prepared");
    beating.open_gate().await.expect("the guard listens");
    let beats = async {
        let mut clock = tokio::time::interval(std::time::Duration::from_millis(50));
        loop {
            clock.tick().await;
            guards.send_heartbeat();
        }
    };
    let exit = tokio::select! {
        exit = in_time(beating.wait()) => exit.expect("an exit"),
        () = beats => unreachable!("beats go on"),
    };
    assert_eq!(exit.outcome, ExitOutcome::TimedOut);
}

#[tokio::test]
async fn a_process_goes_with_a_killed_guard() {
    let dir = tempdir().expect("a directory");
    let mut witness = Witness::new(dir.path());
    let guarded = in_time(start(shell(&witness.command()))).await;
    in_time(witness.alive()).await;

    let status = std::fs::read_to_string(format!("/proc/{}/status", guarded.pid())).expect("alive");
    let guard = status.lines().find_map(|line| line.strip_prefix("PPid:")).expect("a parent");
    let sent = Command::new("kill").args(["-KILL", guard.trim()]).status();
    assert!(sent.expect("kill").success());

    let lost = in_time(guarded.wait()).await;
    assert!(matches!(lost, Err(GuardedError::Lost)), "{lost:?}");
    in_time(witness.dead()).await;
}
