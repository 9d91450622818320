//! A database of an older version is brought up.

use std::path::Path;

use kairo_cli::local::Service::Projector;
use kairo_read_model::ReadErrorKind;
use sqlx::migrate::Migrator;

use crate::{
    history::{Turn, defined},
    world::{TELL, World},
};

/// Empties the database and makes the schema of the first version in it, at this position.
async fn go_back_to_the_first_version(world: &World, position: u64) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../read-model/migrations");
    sqlx::raw_sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public").execute(world.model.pool()).await.unwrap();
    Migrator::new(folder).await.unwrap().run_to(1, world.model.pool()).await.unwrap();
    let moved = "UPDATE projections SET sequence = $1, judged = $1 WHERE name = 'read-model'";
    let position = i64::try_from(position).unwrap();
    assert_eq!(sqlx::query(moved).bind(position).execute(world.model.pool()).await.unwrap().rows_affected(), 1);
    sqlx::raw_sql(TELL).execute(world.model.pool()).await.unwrap();
}

#[tokio::test]
async fn an_older_database_holds_the_rows_of_a_new_one_once_it_is_brought_up() {
    let mut world = World::start(&[]).await;
    let (done, running) = (Turn::new("ann", "bob", 1), Turn::new("ann", "bob", 2));
    for event in [defined("bob")].iter().chain(&done.events()).chain(&running.until_invoked()) {
        world.publish(event).await;
    }
    for event in running.until_canceled() {
        world.publish(&event).await;
    }
    world.caught_up().await;
    let rows = world.rows().await;

    world.stack.stop_one(Projector, 0).await.unwrap();
    go_back_to_the_first_version(&world, world.end_of_log().await).await;
    // A row as the first version left it, which knew nothing of progress.
    let old = "INSERT INTO agents (agent, profile, sequence, defined_at) VALUES ('gone', '{}', 1, now())";
    sqlx::raw_sql(old).execute(world.model.pool()).await.unwrap();
    // Nobody is answered from it, or empties it, before it is brought up.
    assert_eq!(world.model.position().await.unwrap_err().kind, ReadErrorKind::Unavailable);
    assert_eq!(world.model.rebuild().await.unwrap_err().kind, ReadErrorKind::Unavailable);
    assert_eq!(world.count("SELECT count(*) FROM agents").await, 1);
    world.stack.start(Projector).await.unwrap();
    world.caught_up().await;
    assert_eq!(world.rows().await, rows);
    assert_eq!(world.count("SELECT count(*) FROM actions WHERE fraction = 0.6").await, 2);
    // What replicas of the first version write under.
    assert_eq!(world.count("SELECT count(*) FROM projections WHERE name = 'read-model'").await, 0);
}
