//! The service on a real nats-server, with real replicas and real processes. Nothing here sleeps: each test waits for
//! something to happen, and fails when it has not within [`DEADLINE`].

#![expect(clippy::expect_used, reason = "the helpers of tests are tests too")]

mod control;
mod kairo;
mod orders;
mod paused;
mod room;
mod spawn;
#[path = "../guard/witness.rs"]
mod witness;

use std::{fs::File, io::Write, path::Path, process::Command, time::Duration};

use futures::StreamExt;
use kairo::{Kairo, PROGRAMS};
use kairo_core::{
    event_json::invocation_id,
    subjects::{PROCESS_EXITED, PROCESS_SPAWNED},
};
use kairo_proto::Body;
use serde_json::json;
use uuid::Uuid;
use witness::Witness;

/// The deadline for operations that take milliseconds or an ack wait, on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

async fn in_time<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, what).await.expect("it happens before the deadline")
}

fn shell(script: &str) -> String {
    json!({"program": "sh", "args": ["-c", script]}).to_string()
}

/// Returns a script that ends with code 7 when [`report_progress`] writes to the pipe at `path`.
fn until_told(path: &Path) -> String {
    let status = Command::new("mkfifo").arg(path).status().expect("mkfifo");
    assert!(status.success());
    shell(&format!("read line <{}; exit 7", path.display()))
}

fn tell(path: &Path) {
    writeln!(File::options().write(true).open(path).expect("somebody listens"), "go").expect("told");
}

#[tokio::test]
async fn a_process_is_recorded_before_it_runs_and_when_it_has_ended() {
    let mut kairo = Kairo::start().await;
    let mut live = kairo.live().await;
    kairo.replica().await;
    let action = Uuid::now_v7();
    kairo.invoke(&[(action, &shell("pwd; echo err >&2; exit 3"))]).await;

    let exited = in_time(kairo.last(&PROCESS_EXITED)).await;
    let spawned = in_time(kairo.last(&PROCESS_SPAWNED)).await;
    assert!(spawned.sequence < exited.sequence);
    assert_eq!(spawned.envelope.causation_id, Some(invocation_id(action)));
    assert_eq!(exited.envelope.causation_id, Some(spawned.envelope.id));
    assert_eq!(exited.envelope.thread_id.as_deref(), Some("t-1"));
    let (Body::ProcessSpawned(spawned), Body::ProcessExited(exited)) = (spawned.body, exited.body) else {
        panic!("other bodies");
    };
    assert_eq!((spawned.program.as_str(), spawned.arguments[0].as_str()), ("/bin/sh", "-c"));
    assert_eq!((exited.outcome.as_str(), exited.code), ("exited", Some(3)));
    assert_eq!(exited.process_id, spawned.process_id);
    let workplace = kairo.dir.path().join("work/ann");
    assert_eq!(exited.stdout_tail, format!("{}\n", workplace.display()));
    assert_eq!((exited.stderr_tail.as_str(), exited.stderr_bytes), ("err\n", 4));
    assert!(in_time(live.next()).await.is_some(), "output goes out as it appears");
    kairo.stop().await;
}

#[tokio::test]
async fn what_may_not_or_cannot_run_ends_with_the_reason() {
    let mut kairo = Kairo::start().await;
    kairo.replica().await;
    let cases = [
        (json!({"program": "/bin/sh"}), "refused"),
        (json!({"program": "sh", "shell": true}), "refused"),
        (json!({"program": "gone"}), "spawn_failed"),
        (json!({"program": "sh", "args": ["-c", "while :; do :; done"], "timeout_ms": 1}), "timed_out"),
    ];
    let asked: Vec<(Uuid, String)> = cases.iter().map(|(args, _)| (Uuid::now_v7(), args.to_string())).collect();
    let asked: Vec<(Uuid, &str)> = asked.iter().map(|(action, args)| (*action, args.as_str())).collect();
    kairo.invoke(&asked).await;
    for ((action, _), (arguments, outcome)) in asked.iter().zip(&cases) {
        let exited = in_time(kairo.exited(*action)).await;
        assert_eq!(exited.outcome, *outcome, "{arguments}: {}", exited.reason);
        assert!(!exited.reason.is_empty());
    }
    kairo.stop().await;
}

#[tokio::test]
async fn an_invoke_delivered_again_while_its_process_runs_begins_nothing() {
    let mut kairo = Kairo::start().await;
    for _ in 0..2 {
        kairo.replica().await;
    }
    let pipe = kairo.dir.path().join("pipe");
    let action = Uuid::now_v7();
    let mut acks = kairo.acks().await;
    let invoke = kairo.invoke(&[(action, &until_told(&pipe))]).await;
    in_time(kairo.last(&PROCESS_SPAWNED)).await;
    // Given up in the holder's name, so that it is delivered again at once.
    kairo.refuse(in_time(acks.next()).await.expect("a sign of life")).await;
    in_time(async {
        while let Some(ack) = acks.next().await {
            if kairo::delivery(&ack) == (invoke, 2) {
                return;
            }
        }
    })
    .await;
    tell(&pipe);
    assert_eq!(in_time(kairo.exited(action)).await.code, Some(7));
    kairo.stop().await;
    assert_eq!(kairo.all(&PROCESS_SPAWNED).await.len(), 1);
    assert_eq!(kairo.all(&PROCESS_EXITED).await.len(), 1);
}

#[tokio::test]
async fn a_killed_supervisor_takes_its_process_along_and_another_records_it() {
    let mut kairo = Kairo::start().await;
    let first = kairo.replica().await;
    let mut witness = Witness::new(kairo.dir.path());
    let action = Uuid::now_v7();
    kairo.invoke(&[(action, &shell(&format!("{}; tail -f /dev/null", witness.daemon())))]).await;
    in_time(witness.alive()).await;
    kairo.replica().await;
    kairo.kill9(first).await;
    in_time(witness.dead()).await;
    let exited = in_time(kairo.exited(action)).await;
    assert_eq!(exited.outcome, "supervisor_lost");
    let Body::ProcessSpawned(spawned) = in_time(kairo.last(&PROCESS_SPAWNED)).await.body else { panic!("no body") };
    assert_ne!(exited.supervisor, spawned.supervisor);
    assert!(exited.reason.contains(&spawned.supervisor), "{}", exited.reason);
    kairo.stop().await;
}

#[tokio::test]
async fn a_supervisor_that_is_told_to_stop_records_the_end_itself() {
    let mut kairo = Kairo::start().await;
    kairo.replica().await;
    let mut witness = Witness::new(kairo.dir.path());
    let action = Uuid::now_v7();
    kairo.invoke(&[(action, &shell(&witness.command()))]).await;
    in_time(witness.alive()).await;
    kairo.stop().await;
    in_time(witness.dead()).await;
    // Nobody is left to record it now.
    let exited = in_time(kairo.exited(action)).await;
    assert_eq!(exited.outcome, "canceled", "{}", exited.reason);
    assert!(exited.reason.contains("supervisor was told to stop"), "{}", exited.reason);
}

#[tokio::test]
async fn a_process_outlives_an_absence_of_nats_and_its_end_is_kept() {
    let mut kairo = Kairo::start().await;
    kairo.replica().await;
    let action = Uuid::now_v7();
    let mut witness = Witness::new(kairo.dir.path());
    // The pipe's end is the process's: it ends while the server is away.
    let pipe = kairo.dir.path().join("pipe");
    until_told(&pipe);
    let script = format!("exec 3>{}; echo alive >&3; read line <{}; exit 7", witness.path().display(), pipe.display());
    kairo.invoke(&[(action, &shell(&script))]).await;
    in_time(witness.alive()).await;
    kairo.nats.kill9().await.expect("killed");
    tell(&pipe);
    in_time(witness.dead()).await;
    // By the time that this has failed, the supervisor's first attempts to write have too.
    in_time(kairo.bus.last_message(&PROCESS_EXITED.of_owner(&kairo.agent))).await.expect_err("nats is away");
    kairo.nats.restart().await.expect("restarted");
    let exited = in_time(kairo.exited(action)).await;
    assert_eq!((exited.outcome.as_str(), exited.code), ("exited", Some(7)), "{}", exited.reason);
    kairo.stop().await;
    assert_eq!(kairo.all(&PROCESS_EXITED).await.len(), 1);
}

#[tokio::test]
async fn programs_are_offered_and_withdrawn() {
    let mut kairo = Kairo::start().await;
    kairo.programs("{}");
    kairo.replica().await;
    kairo.stop().await;
    assert_eq!(kairo.offers().await, Vec::<usize>::new(), "nothing to withdraw");
    for programs in [PROGRAMS, PROGRAMS, "{}", "{}"] {
        kairo.programs(programs);
        kairo.replica().await;
        kairo.stop().await;
    }
    assert_eq!(kairo.offers().await, [2, 0]);
}
