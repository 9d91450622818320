//! Tests spawned processes: their start, the progress they report, and their output and events.

use kairo_core::{
    event_json::invocation_id,
    subjects::{PROCESS_EXITED, PROCESS_PROGRESS, PROCESS_SPAWNED},
};
use kairo_proto::{Body, v1::ProcessProgress};
use serde_json::json;
use uuid::Uuid;

use super::{Kairo, in_time, shell, tell, until_told};

#[tokio::test]
async fn a_spawned_process_is_in_the_log_before_it_ends() {
    let mut kairo = Kairo::start().await;
    kairo.replica().await;
    let pipe = kairo.dir.path().join("pipe");
    let action = kairo.spawn(&until_told(&pipe)).await;
    let spawned = in_time(kairo.spawned(action)).await;
    assert!(spawned.background);
    assert_eq!((spawned.tool.as_str(), spawned.decision_sequence), ("process.spawn", 1));
    assert!(kairo.all(&PROCESS_EXITED).await.is_empty(), "it waits to be told");
    tell(&pipe);
    let exited = in_time(kairo.exited(action)).await;
    assert_eq!((exited.code, exited.background, exited.tool.as_str()), (Some(7), true, "process.spawn"));
    assert_eq!((exited.decision_sequence, exited.program), (1, spawned.program));
    kairo.stop().await;
}

#[tokio::test]
async fn a_run_process_says_that_its_action_ends_with_it() {
    let mut kairo = Kairo::start().await;
    kairo.replica().await;
    let action = Uuid::now_v7();
    kairo.invoke(&[(action, &shell(":"))]).await;
    let exited = in_time(kairo.exited(action)).await;
    let spawned = in_time(kairo.spawned(action)).await;
    assert!(!spawned.background && !exited.background);
    assert_eq!((spawned.tool.as_str(), exited.tool.as_str()), ("process.run", "process.run"));
    kairo.stop().await;
}

#[tokio::test]
async fn nobody_could_write_to_a_process_that_is_waited_for() {
    let mut kairo = Kairo::start().await;
    kairo.replica().await;
    let arguments = json!({"program": "sh", "stdin": true}).to_string();
    let action = Uuid::now_v7();
    kairo.call("process.run", &[(action, &arguments)]).await;
    let exited = in_time(kairo.exited(action)).await;
    assert_eq!(exited.outcome, "refused");
    assert!(exited.reason.contains("process.spawn"), "{}", exited.reason);
    kairo.call("process.fork", &[(invocation_id(action), &arguments)]).await;
    let exited = in_time(kairo.exited(invocation_id(action))).await;
    assert!(exited.reason.contains("process.fork"), "{}", exited.reason);
    kairo.stop().await;
}

fn progress_at(fraction: f64) -> impl Fn(&Body) -> Option<ProcessProgress> {
    move |body| ProcessProgress::of(body).filter(|progress| progress.fraction == Some(fraction)).cloned()
}

#[tokio::test]
async fn progress_is_told_and_is_no_output() {
    let mut kairo = Kairo::start().await;
    kairo.replica().await;
    let mut live = kairo.listen().await;
    // Two: with one, the second reading could begin before the first writer has closed it, and end with that.
    let [first_pipe, second_pipe] = ["first", "second"].map(|name| kairo.dir.path().join(name));
    until_told(&first_pipe);
    until_told(&second_pipe);
    let script = format!(
        "echo before; echo '::progress 1/4 one'; echo '::progress fast'; read line <{}; \
         for n in 30 40 50 60 70 80 90; do echo \"::progress $n%\" >&2; done; echo '::progress 100% all of it' >&2; \
         read line <{}; echo after",
        first_pipe.display(),
        second_pipe.display()
    );
    let action = kairo.spawn(&shell(&script)).await;
    let spawned_id = in_time(kairo.last(&PROCESS_SPAWNED)).await.envelope.id;
    let first = in_time(kairo.until(&PROCESS_PROGRESS, progress_at(0.25))).await;
    assert_eq!((first.message.as_str(), first.action_id), ("one", action.to_string()));
    assert!(first.tail.starts_with("before\n"), "{:?}", first.tail);
    tell(&first_pipe);
    let last = in_time(kairo.until(&PROCESS_PROGRESS, progress_at(1.0))).await;
    assert_eq!((last.message.as_str(), last.tail.as_str()), ("all of it", "before\n::progress fast\n"));
    tell(&second_pipe);
    let exited = in_time(kairo.exited(action)).await;
    let output = "before\n::progress fast\nafter\n";
    assert_eq!((exited.stdout_tail.as_str(), exited.stderr_tail.as_str()), (output, ""));
    assert_eq!((exited.stdout_bytes, exited.stderr_bytes), (output.len() as u64, 0));
    in_time(live.until("after\n")).await;
    assert_eq!(live.text(), output);
    let told = kairo.all(&PROCESS_PROGRESS).await;
    assert!(told.iter().all(|record| record.envelope.causation_id == Some(spawned_id)), "it follows from its process");
    kairo.stop().await;
}

#[tokio::test]
async fn whoever_comes_late_hears_what_was_said_and_then_what_follows() {
    let mut kairo = Kairo::start().await;
    kairo.replica().await;
    let mut early = kairo.listen().await;
    let pipe = kairo.dir.path().join("pipe");
    until_told(&pipe);
    let script = format!("echo one; echo two >&2; read line <{}; echo three", pipe.display());
    let action = kairo.spawn(&shell(&script)).await;
    in_time(early.until("two\n")).await;
    let mut late = kairo.listen().await;
    let tail = in_time(kairo.tail("two\n")).await;
    assert_eq!(tail.pieces, early.pieces);
    tell(&pipe);
    in_time(late.until("three\n")).await;
    assert_eq!(late.text(), "three\n");
    assert_eq!(tail.sequences(), (0..tail.pieces.len() as u64).collect::<Vec<_>>());
    assert_eq!(late.pieces[0].sequence, tail.pieces.len() as u64);
    in_time(kairo.exited(action)).await;
    kairo.stop().await;
}
