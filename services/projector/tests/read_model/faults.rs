//! Crashes, replicas and retellings: the rows are those of an undisturbed run.

use kairo_local::Service::Projector;
use kairo_read_model::READ_MODEL;

use crate::{
    history::{Turn, defined},
    planned::Planned,
    world::World,
};

#[tokio::test]
async fn telling_everything_twice_changes_nothing_but_the_log_itself() {
    let (once, twice) = tokio::join!(World::start(&[]), World::start(&[]));
    let mut history = vec![defined("bob")];
    history.extend((0..20).flat_map(|number| Turn::new("ann", "bob", number).events()));
    history.extend((0..5).flat_map(|number| Planned::new(number).events()));
    for event in &history {
        // At the same sequences in both, so that rows can be compared.
        once.publish(event).await;
        twice.publish(event).await;
    }
    for event in history.iter().filter(|event| !event.subject.ends_with(".defined")) {
        twice.publish_again(event).await;
    }
    once.caught_up().await;
    twice.caught_up().await;
    let mut rows = once.rows().await;
    let mut again = twice.rows().await;
    // Both tellings are in the log, and the second made the threads younger and changed the tasks again.
    for changed in ["events", "tasks", "threads"] {
        assert_ne!(rows.remove(changed), again.remove(changed));
    }
    assert_eq!(rows, again);
    assert_eq!(once.count("SELECT count(*) FROM messages WHERE message_id LIKE 'm-%'").await, 40);
    assert_eq!(twice.count("SELECT count(*) FROM threads").await, 6);
    assert_eq!(twice.count("SELECT count(*) FROM tasks WHERE fired = 1 AND status = 'canceled'").await, 5);
}

#[tokio::test]
async fn a_rebuild_gives_equal_rows_however_the_log_is_cut() {
    let world = World::start(&[("KAIRO_PROJECTOR__BATCH", "1"), ("KAIRO_PROJECTOR__REBUILD_BATCH", "3")]).await;
    for event in [defined("bob")].into_iter().chain((0..30).flat_map(|n| Turn::new("ann", "bob", n).events())) {
        world.publish(&event).await;
    }
    for event in (0..5).flat_map(|number| Planned::new(number).events()) {
        world.publish(&event).await;
    }
    world.caught_up().await;
    let rows = world.rows().await;
    world.rebuild().await;
    assert_eq!(world.rows().await, rows);

    let mut world = world;
    world.stack.common().env("KAIRO_PROJECTOR__REBUILD_BATCH", "1000");
    world.stack.stop_one(Projector, 0).await.unwrap();
    let generation = world.model.request_rebuild(READ_MODEL).await.unwrap().unwrap();
    world.stack.start(Projector).await.unwrap();
    world.reaches(generation, "live").await;
    assert_eq!(world.rows().await, rows);
}

#[tokio::test]
async fn another_replica_takes_over_from_a_frozen_and_from_a_killed_one() {
    let mut world = World::start(&[]).await;
    world.publish(&defined("bob")).await;
    // Having written this, the first replica leads; the second stands by.
    world.caught_up().await;
    world.stack.start(Projector).await.unwrap();

    world.stack.freeze(Projector, 0).unwrap();
    for event in Turn::new("ann", "bob", 1).events() {
        world.publish(&event).await;
    }
    world.caught_up().await;
    world.stack.thaw(Projector, 0).unwrap();
    for event in Turn::new("ann", "bob", 2).events() {
        world.publish(&event).await;
    }
    world.caught_up().await;

    world.stack.kill9(Projector, 1).await.unwrap();
    for event in Turn::new("ann", "bob", 3).events() {
        world.publish(&event).await;
    }
    world.caught_up().await;
    let rows = world.rows().await;
    assert_eq!(world.count("SELECT count(*) FROM messages").await, 6);
    world.rebuild().await;
    assert_eq!(world.rows().await, rows);
}

#[tokio::test]
async fn crashes_of_everything_leave_the_rows_of_an_undisturbed_run() {
    let mut world = World::start(&[("KAIRO_PROJECTOR__BATCH", "7")]).await;
    world.stack.start(Projector).await.unwrap();
    world.publish(&defined("bob")).await;
    let history: Vec<Turn> = (0..200).map(|number| Turn::new("ann", "bob", number)).collect();
    for (round, turns) in history.chunks(50).enumerate() {
        for event in turns.iter().flat_map(Turn::events) {
            world.publish(&event).await;
        }
        // In the middle of the work that was just published.
        match round {
            0 => _ = world.postgres.kill9().await.unwrap(),
            1 => _ = world.nats.kill9().await.unwrap(),
            2 => world.stack.kill9(Projector, 0).await.unwrap(),
            _ => {}
        }
        match round {
            0 => world.postgres.restart().await.unwrap(),
            1 => world.nats.restart().await.unwrap(),
            2 => world.stack.restart(Projector, 0).await.unwrap(),
            _ => {}
        }
    }
    world.caught_up().await;
    assert_eq!(world.count("SELECT count(*) FROM messages").await, 400);
    assert_eq!(world.count("SELECT count(*) FROM actions WHERE status = 'done'").await, 200);
    let rows = world.rows().await;
    world.rebuild().await;
    assert_eq!(world.rows().await, rows);
}
