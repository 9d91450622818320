//! Tests the limit on processes, and the fate of orders beyond it.

use kairo_core::subjects::PROCESS_SPAWNED;

use super::{Kairo, in_time, shell, tell, until_told};

#[tokio::test]
async fn an_agent_has_so_many_processes_and_no_more() {
    let mut kairo = Kairo::start().await;
    kairo.limit("PER_AGENT", 2);
    // The limit holds over all replicas.
    for _ in 0..2 {
        kairo.replica().await;
    }
    let pipes = ["one", "two"].map(|name| kairo.dir.path().join(name));
    let mut actions = Vec::new();
    for pipe in &pipes {
        let action = kairo.spawn(&until_told(pipe)).await;
        in_time(kairo.spawned(action)).await;
        actions.push(action);
    }
    let marker = kairo.dir.path().join("marker");
    let touch = shell(&format!(": >{}", marker.display()));
    let third = kairo.spawn(&touch).await;
    let exited = in_time(kairo.exited(third)).await;
    assert_eq!((exited.outcome.as_str(), exited.background), ("refused", true));
    assert!(exited.reason.contains("2 processes of this agent run"), "{}", exited.reason);
    assert!(!marker.exists(), "its gate stayed closed");
    assert_eq!(kairo.all(&PROCESS_SPAWNED).await.len(), 2, "what is spawned counts as started");
    tell(&pipes[0]);
    in_time(kairo.exited(actions[0])).await;
    let fourth = kairo.spawn(&touch).await;
    assert_eq!(in_time(kairo.exited(fourth)).await.outcome, "exited");
    assert!(marker.exists());
    tell(&pipes[1]);
    in_time(kairo.exited(actions[1])).await;
    kairo.stop().await;
}

#[tokio::test]
async fn what_one_supervisor_has_no_room_for_another_runs() {
    let mut kairo = Kairo::start().await;
    kairo.limit("CONCURRENT", 1);
    kairo.patience_ms(100);
    kairo.replica().await;
    let pipe = kairo.dir.path().join("pipe");
    let first = kairo.spawn(&until_told(&pipe)).await;
    let first_of = in_time(kairo.spawned(first)).await.supervisor;
    let second = kairo.spawn(&shell(":")).await;
    kairo.replica().await;
    // The first goes on until it is told.
    let exited = in_time(kairo.exited(second)).await;
    assert_eq!(exited.outcome, "exited", "{}", exited.reason);
    assert_ne!(exited.supervisor, first_of);
    tell(&pipe);
    in_time(kairo.exited(first)).await;
    kairo.stop().await;
}

#[tokio::test]
async fn what_waits_for_room_can_be_canceled() {
    let mut kairo = Kairo::start().await;
    kairo.limit("CONCURRENT", 1);
    kairo.patience_ms(100);
    kairo.replica().await;
    let pipe = kairo.dir.path().join("pipe");
    let first = kairo.spawn(&until_told(&pipe)).await;
    in_time(kairo.spawned(first)).await;
    let second = kairo.spawn(&shell(":")).await;
    kairo.decide_to_stop(second).await;
    let exited = in_time(kairo.exited(second)).await;
    assert_eq!(exited.outcome, "canceled", "{}", exited.reason);
    tell(&pipe);
    in_time(kairo.exited(first)).await;
    kairo.stop().await;
}
