//! Tests writing to the standard input of a process.

use std::path::PathBuf;
use std::time::Duration;

use kairo_process_supervisor::guarded_process::{GuardFleet, GuardedProcess, InputError};
use kairo_process_supervisor::protocol::{ExitOutcome, Signal, Spec};

use crate::{guards, in_time, run, shell, spec};

const MAX_BYTES: usize = 64 << 10;
/// As many bytes as a pipe holds by default.
const PIPE_BYTES: usize = 64 << 10;

fn with_input(mut spec: Spec) -> Spec {
    spec.stdin = true;
    spec.bounds.stdin_bytes = MAX_BYTES;
    spec
}

/// A process and the guards that must outlast it: without them nobody renews its lease.
async fn start(spec: Spec) -> (GuardFleet, GuardedProcess) {
    let guards = guards();
    let guarded = in_time(guards.prepare(with_input(spec))).await.expect("prepared");
    guarded.open_gate().await.expect("the guard listens");
    (guards, guarded)
}

/// Reads until `bytes` have come.
async fn read(guarded: &mut GuardedProcess, bytes: usize) -> String {
    let mut read = String::new();
    while read.len() < bytes {
        read.push_str(&in_time(guarded.next_output()).await.expect("more output").text);
    }
    read
}

/// The files of a process, as `/proc` describes them, without those it was born with.
fn pipes_of(pid: &str) -> Vec<(String, PathBuf)> {
    let folder = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("alive");
    let paths = folder.map(|entry| entry.expect("an entry").path());
    paths
        .filter_map(|path| {
            let number = path.file_name()?.to_str()?.to_owned();
            Some((number, std::fs::read_link(&path).ok()?))
        })
        .collect()
}

#[tokio::test]
async fn what_is_written_is_read_until_it_is_closed() {
    let (_guards, mut guarded) = start(spec("/bin/cat", &[])).await;
    let control = guarded.control();
    control.write("eins\n".to_owned(), false).await.expect("written");
    assert_eq!(read(&mut guarded, 5).await, "eins\n");
    // Echoed in between: it is not the end of the input that lets it through.
    control.write("zwei €\n".to_owned(), false).await.expect("written");
    assert_eq!(read(&mut guarded, 9).await, "zwei €\n");
    control.write("drei".to_owned(), true).await.expect("written");
    assert_eq!(read(&mut guarded, 4).await, "drei");
    assert_eq!(control.write("vier".to_owned(), false).await, Err(InputError::Closed));

    let exit = in_time(guarded.wait()).await.expect("an exit");
    assert_eq!(exit.outcome, ExitOutcome::Exited { code: 0 });
}

#[tokio::test]
async fn what_is_written_before_the_gate_opens_waits_there() {
    let guards = guards();
    let guarded = in_time(guards.prepare(with_input(shell("read line; test \"$line\" = early")))).await;
    let guarded = guarded.expect("prepared");
    guarded.control().write("early\n".to_owned(), true).await.expect("written");
    guarded.open_gate().await.expect("the guard listens");
    let exit = in_time(guarded.wait()).await.expect("an exit");
    assert_eq!(exit.outcome, ExitOutcome::Exited { code: 0 });
}

#[tokio::test]
async fn who_does_not_read_is_not_written_to_for_ever() {
    let script = "trap 'exec cat' USR1; echo ready; while :; do tail -f /dev/null & wait; done";
    let (_guards, mut guarded) = start(shell(script)).await;
    let control = guarded.control();
    assert_eq!(read(&mut guarded, 6).await, "ready\n");

    let piece = "x".repeat(4 << 10);
    let mut written = 0;
    let refused = in_time(async {
        loop {
            match control.write(piece.clone(), false).await {
                Ok(()) => written += piece.len(),
                Err(refused) => break refused,
            }
        }
    });
    let refused = refused.await;
    let InputError::Full { bytes, waiting, max: MAX_BYTES } = refused else { panic!("{refused}") };
    assert!(bytes == piece.len() && waiting + bytes > MAX_BYTES && waiting <= MAX_BYTES, "{refused}");
    assert!((MAX_BYTES..=MAX_BYTES + PIPE_BYTES).contains(&written), "{written}");

    // All that was accepted arrives, and then there is room again.
    control.signal(Signal::Usr1).await.expect("the guard listens");
    assert_eq!(read(&mut guarded, written).await, "x".repeat(written));
    control.write("y".repeat(MAX_BYTES), true).await.expect("room again");
    assert_eq!(read(&mut guarded, MAX_BYTES).await, "y".repeat(MAX_BYTES));
    let exit = in_time(guarded.wait()).await.expect("an exit");
    assert_eq!(exit.outcome, ExitOutcome::Exited { code: 0 });
}

#[tokio::test]
async fn a_program_that_closes_its_input_is_not_written_to() {
    let script = "exec <&-; trap 'echo again' USR1; echo closed; while :; do tail -f /dev/null & wait; done";
    // With something that it never reads, and without.
    for early in ["never read", ""] {
        let (_guards, mut guarded) = start(shell(script)).await;
        let control = guarded.control();
        control.write(early.to_owned(), false).await.expect("open, as far as anybody can know");
        assert_eq!(read(&mut guarded, 7).await, "closed\n");
        // By then the guard has looked once more.
        control.signal(Signal::Usr1).await.expect("the guard listens");
        assert_eq!(read(&mut guarded, 6).await, "again\n");
        assert_eq!(control.write("x".to_owned(), false).await, Err(InputError::Closed));

        control.cancel(Duration::ZERO).await.expect("the guard listens");
        let exit = in_time(guarded.wait()).await.expect("an exit");
        assert_eq!(exit.outcome, ExitOutcome::Canceled);
    }
}

#[tokio::test]
async fn a_process_that_has_ended_and_one_without_input_are_not_written_to() {
    let (_guards, mut guarded) = start(shell("exit 0")).await;
    let control = guarded.control();
    assert!(in_time(guarded.next_output()).await.is_none());
    assert_eq!(control.write("x".to_owned(), false).await, Err(InputError::Closed));
    in_time(guarded.wait()).await.expect("an exit");
    assert_eq!(control.write("x".to_owned(), false).await, Err(InputError::Closed));

    let guards = guards();
    let guarded = in_time(guards.prepare(shell("tail -f /dev/null"))).await.expect("prepared");
    assert_eq!(guarded.control().write("x".to_owned(), false).await, Err(InputError::NotOpen));
}

#[tokio::test]
async fn a_program_has_but_one_end_of_its_input() {
    assert_eq!(run(with_input(spec("/bin/ls", &["/proc/self/fd"]))).await.stdout, "0\n1\n2\n3\n");

    let (_guards, mut guarded) = start(shell("echo ready; read line")).await;
    assert_eq!(read(&mut guarded, 6).await, "ready\n");
    let program = pipes_of(&guarded.pid().to_string());
    let stdin = program.iter().find(|(number, _)| number == "0").expect("standard input");
    assert!(stdin.1.display().to_string().starts_with("pipe:"), "{stdin:?}");
    assert_eq!(program.iter().filter(|(_, file)| file == &stdin.1).count(), 1, "{program:?}");
}
