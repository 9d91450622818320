//! Supervisor, guard and program stopped together until another replica has written the process off.

use std::{fs, path::Path};

use kairo_core::subjects::{PROCESS_EXITED, PROCESS_SPAWNED};
use nix::{
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

/// Waits until it stands still.
async fn stopped(pid: Pid) {
    let state = || fs::read_to_string(format!("/proc/{pid}/status")).expect("alive");
    while !state().contains("State:\tT") {
        tokio::task::yield_now().await;
    }
}

fn size(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |file| file.len())
}

#[tokio::test]
async fn what_was_written_off_while_all_stood_still_is_dead_and_did_nothing_more() {
    let mut kairo = Kairo::start().await;
    let first = kairo.replica().await;
    let mut witness = Witness::new(kairo.dir.path());
    let lines = kairo.dir.path().join("lines");
    let pipe = witness.path().display();
    let file = lines.display();
    // With a child that lets nothing but SIGKILL end it, and a daemon, which is in no group of the program's.
    let stubborn = "trap '' HUP TERM CONT; tail -f /dev/null";
    let script = format!(
        "exec 3>{pipe}; echo alive >&3; ({stubborn}) & setsid sh -c \"{stubborn}\" & \
         while :; do echo line >>{file}; done"
    );
    let action = Uuid::now_v7();
    kairo.invoke(&[(action, &shell(&script))]).await;
    in_time(witness.alive()).await;
    let spawned = in_time(kairo.spawned(action)).await;
    let program = Pid::from_raw(i32::try_from(spawned.pid).expect("a process id"));
    let guard = parent(program);

    kairo.freeze(first);
    kill(guard, Signal::SIGSTOP).expect("stopped");
    killpg(program, Signal::SIGSTOP).expect("stopped");
    in_time(stopped(program)).await;
    let written = size(&lines);
    kairo.replica().await;
    let exited = in_time(kairo.exited(action)).await;
    assert_eq!(exited.outcome, "supervisor_lost");
    assert_ne!(exited.supervisor, spawned.supervisor);
    // All three still stand: nobody was told to go on. The pipe ends when the last that had it is dead.
    in_time(witness.dead()).await;
    assert_eq!(size(&lines), written, "it died without going on");

    kairo.thaw(first);
    kairo.stop().await;
    assert_eq!(kairo.all(&PROCESS_SPAWNED).await.len(), 1);
    assert_eq!(kairo.all(&PROCESS_EXITED).await.len(), 1, "what was written is the end of it");
}
