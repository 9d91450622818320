//! Supervisor, guard and program stopped together, as when their machine sleeps, until another replica has written the
//! process off.

use std::{
    fs::{self, File},
    os::fd::AsFd,
    path::Path,
};

use kairo_core::subjects::{PROCESS_EXITED, PROCESS_SPAWNED};
use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};
use uuid::Uuid;

use super::{Kairo, Witness, in_time, shell};

/// The process that started another one.
fn parent(pid: Pid) -> Pid {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("alive");
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).expect("a parent");
    Pid::from_raw(parent.trim().parse().expect("a process id"))
}

/// Waits until a process that stands still has something to read on its standard input.
async fn has_been_told(pid: Pid) {
    let pipe = File::open(format!("/proc/{pid}/fd/0")).expect("its end of the pipe");
    loop {
        let mut fds = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
        if poll(&mut fds, PollTimeout::ZERO).expect("polled") > 0 {
            return;
        }
        tokio::task::yield_now().await;
    }
}

async fn grown(file: &Path, beyond: u64) {
    while size(file) <= beyond {
        tokio::task::yield_now().await;
    }
}

fn size(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |file| file.len())
}

async fn paused_as_a_whole(program_wakes_first: bool) {
    let mut kairo = Kairo::start().await;
    let first = kairo.replica().await;
    let mut witness = Witness::new(kairo.dir.path());
    let lines = kairo.dir.path().join("lines");
    let (pipe, file) = (witness.path().display(), lines.display());
    let script = format!("exec 3>{pipe}; echo alive >&3; while :; do echo line >>{file}; sleep 0.05; done");
    let action = Uuid::now_v7();
    kairo.invoke(&[(action, &shell(&script))]).await;
    in_time(witness.alive()).await;
    in_time(grown(&lines, 0)).await;
    let spawned = in_time(kairo.spawned(action)).await;
    let program = Pid::from_raw(i32::try_from(spawned.pid).expect("a process id"));
    let guard = parent(program);

    kairo.freeze(first);
    kill(guard, Signal::SIGSTOP).expect("stopped");
    killpg(program, Signal::SIGSTOP).expect("stopped");
    kairo.replica().await;
    let exited = in_time(kairo.exited(action)).await;
    assert_eq!(exited.outcome, "supervisor_lost");
    assert_ne!(exited.supervisor, spawned.supervisor);
    let before = size(&lines);

    // The supervisor is the first to be back, and knows nothing yet: it gives the sign of life that is due.
    kairo.thaw(first);
    in_time(has_been_told(guard)).await;
    if program_wakes_first {
        killpg(program, Signal::SIGCONT).expect("still there");
        in_time(grown(&lines, before)).await;
    }
    kill(guard, Signal::SIGCONT).expect("still there");
    in_time(witness.dead()).await;
    // Its guard needs no program that is awake to kill it.
    assert_eq!(size(&lines) > before, program_wakes_first);

    kairo.stop().await;
    assert_eq!(kairo.all(&PROCESS_SPAWNED).await.len(), 1);
    assert_eq!(kairo.all(&PROCESS_EXITED).await.len(), 1, "what was written is the end of it");
}

#[tokio::test]
async fn what_was_written_off_while_all_stood_still_is_killed_before_it_wakes() {
    paused_as_a_whole(false).await;
}

#[tokio::test]
async fn what_was_written_off_while_all_stood_still_and_wakes_first_is_killed() {
    paused_as_a_whole(true).await;
}
