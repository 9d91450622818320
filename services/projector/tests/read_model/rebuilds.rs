//! Other generations of the tables, built beside the live one: while it is used, and under fire.

use kairo_local::Service::Projector;
use kairo_read_model::{GenerationDigest, READ_MODEL};
use sqlx::AssertSqlSafe;

use crate::{
    history::{Turn, defined},
    world::World,
};

/// Turns of several agents and users, so that they are in several partitions.
fn turns(from: usize, to: usize) -> impl Iterator<Item = Turn> {
    (from..to).map(|number| Turn::new(&format!("user-{}", number % 5), &format!("agent-{}", number % 7), number))
}

async fn publish(world: &World, from: usize, to: usize) {
    for event in turns(from, to).flat_map(|turn| turn.events()) {
        world.publish(&event).await;
    }
}

async fn digests(world: &World, generation: i64) -> GenerationDigest {
    world.model.generation_digest(generation).await.unwrap().unwrap()
}

#[tokio::test]
async fn queries_are_answered_all_the_time_and_the_position_never_goes_back() {
    let mut world = World::start(&[("KAIRO_PROJECTOR__REBUILD_BATCH", "50")]).await;
    world.stack.start(Projector).await.unwrap();
    publish(&world, 0, 40).await;
    world.caught_up().await;
    let model = world.model.clone();
    let asking = tokio::spawn(async move {
        let mut position = 0;
        let mut answers = 0_u64;
        loop {
            let snapshot = model.snapshot().await.unwrap();
            assert!(snapshot.position() >= position, "{} after {position}", snapshot.position());
            position = snapshot.position();
            let threads = snapshot.list_threads(&Default::default()).await.unwrap();
            assert!(!threads.is_empty());
            answers += 1;
            if answers.is_multiple_of(8) {
                tokio::task::yield_now().await;
            }
        }
    });
    let generation = world.model.request_rebuild(READ_MODEL).await.unwrap().unwrap();
    assert_eq!(world.model.request_rebuild(READ_MODEL).await.unwrap(), None);
    publish(&world, 40, 60).await;
    world.reaches(generation, "live").await;
    assert!(world.model.request_drop(1).await.unwrap());
    world.is_gone(1).await;
    world.caught_up().await;
    assert!(!asking.is_finished(), "{:?}", asking.await);
    asking.abort();
    assert_eq!(world.count("SELECT count(*) FROM messages WHERE sequence IS NOT NULL").await, 120);
    assert!(!world.model.request_drop(generation).await.unwrap(), "what is live stays");
}

#[tokio::test]
async fn a_rebuild_goes_on_wherever_its_projectors_and_postgres_die() {
    let mut world = World::start(&[("KAIRO_PROJECTOR__REBUILD_BATCH", "10")]).await;
    publish(&world, 0, 30).await;
    world.caught_up().await;
    let rows = world.rows().await;
    let mut before = digests(&world, 1).await;
    for state in ["asked", "filling", "indexing", "comparing", "ready"] {
        let generation = world.model.request_rebuild(READ_MODEL).await.unwrap().unwrap();
        // In this state, or already behind it.
        world.until(generation, |found| found.is_some_and(|found| found.state == state || found.state == "live")).await;
        world.stack.kill9(Projector, 0).await.unwrap();
        if state == "filling" || state == "comparing" {
            world.postgres.kill9().await.unwrap();
            world.postgres.restart().await.unwrap();
        }
        world.stack.restart(Projector, 0).await.unwrap();
        world.reaches(generation, "live").await;
        assert_eq!(world.rows().await, rows, "after dying while {state}");
        let after = digests(&world, generation).await;
        assert_eq!((&after.tables, &after.positions), (&before.tables, &before.positions), "after dying while {state}");
        before = after;
    }
}

#[tokio::test]
async fn what_differs_is_swapped_in_only_when_somebody_says_so() {
    let world = World::start(&[]).await;
    world.publish(&defined("bob")).await;
    publish(&world, 0, 3).await;
    world.caught_up().await;
    let rows = world.rows().await;
    let place = world.place().await;
    let tampered = format!("UPDATE {place}.threads SET title = 'by hand'; DELETE FROM {place}.messages");
    sqlx::raw_sql(AssertSqlSafe(tampered)).execute(world.model.pool()).await.unwrap();

    let generation = world.model.request_rebuild(READ_MODEL).await.unwrap().unwrap();
    let found = world.until(generation, |found| found.is_some_and(|found| found.state == "differing")).await.unwrap();
    assert_eq!(found.reason, "differs from generation 1 in messages, threads");
    // It follows the log.
    let end = world.publish(&defined("eve")).await;
    world.until_position(generation, end).await;
    assert_eq!(world.place().await, place);
    assert_eq!(world.model.request_swap(READ_MODEL).await.unwrap(), Some(generation));
    world.reaches(generation, "live").await;
    assert_eq!(world.rows().await["threads"], rows["threads"]);
    assert_eq!(world.rows().await["messages"], rows["messages"]);
    world.reaches(1, "kept").await;
}

#[tokio::test]
async fn one_that_is_built_can_be_dropped() {
    let world = World::start(&[]).await;
    publish(&world, 0, 3).await;
    world.caught_up().await;
    let place = world.place().await;
    let tampered = format!("DELETE FROM {place}.messages");
    sqlx::raw_sql(AssertSqlSafe(tampered)).execute(world.model.pool()).await.unwrap();
    let generation = world.model.request_rebuild(READ_MODEL).await.unwrap().unwrap();
    world.until(generation, |found| found.is_some_and(|found| found.state == "differing")).await;
    assert!(world.model.request_drop(generation).await.unwrap());
    world.is_gone(generation).await;
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'kairo\\_%'";
    assert_eq!(world.count(schemas).await, 1);
    assert!(!world.model.request_drop(generation).await.unwrap());
}

#[tokio::test]
async fn replicas_share_the_partitions_and_take_over_from_each_other() {
    let mut world = World::start(&[]).await;
    let holders = "SELECT count(DISTINCT pid) FROM pg_locks
                   WHERE locktype = 'advisory' AND classid::bigint = 1801519105 AND objid::bigint < 8";
    publish(&world, 0, 10).await;
    for expected in [2, 3] {
        world.stack.start(Projector).await.unwrap();
        world.until_count(holders, expected).await;
    }
    publish(&world, 10, 20).await;
    world.caught_up().await;
    world.stack.kill9(Projector, 0).await.unwrap();
    world.stack.freeze(Projector, 1).unwrap();
    publish(&world, 20, 30).await;
    world.caught_up().await;
    world.stack.thaw(Projector, 1).unwrap();
    world.until_count(holders, 2).await;
    publish(&world, 30, 40).await;
    world.caught_up().await;
    let rows = world.rows().await;
    // The comparison of the rebuild finds them equal, too.
    world.rebuild().await;
    assert_eq!(world.rows().await, rows);
    assert_eq!(world.count("SELECT count(*) FROM messages WHERE sequence IS NOT NULL").await, 80);
}
