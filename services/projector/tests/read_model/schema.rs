//! Another version's read model, and the layout of before there were generations, stay as they are while this version's
//! is built beside them.

use kairo_local::Service::Projector;
use kairo_read_model::{READ_MODEL, ReadErrorKind};

use crate::{
    history::{Turn, defined},
    world::World,
};

/// The schema of versions before generations: tables in the default schema, with their own migrations.
const EARLIER: &str = "
    DROP SCHEMA public CASCADE; CREATE SCHEMA public;
    DROP SCHEMA kairo CASCADE;
    CREATE TABLE _sqlx_migrations (
        version bigint PRIMARY KEY, description text NOT NULL, installed_on timestamptz NOT NULL DEFAULT now(),
        success boolean NOT NULL, checksum bytea NOT NULL, execution_time bigint NOT NULL
    );
    INSERT INTO _sqlx_migrations SELECT version, 'earlier', now(), true, '\\x00', 1 FROM generate_series(1, 4) AS version;
    CREATE TABLE projections (name text PRIMARY KEY, sequence bigint NOT NULL);
    INSERT INTO projections VALUES ('read-model', 7);
    CREATE TABLE agents (agent text PRIMARY KEY, gone integer);
    INSERT INTO agents VALUES ('of-the-earlier-layout', 1);
    CREATE TABLE events (sequence bigint PRIMARY KEY);";

#[tokio::test]
async fn a_database_of_an_earlier_layout_is_brought_up_and_left_to_its_readers() {
    let mut world = World::start(&[]).await;
    let turn = Turn::new("ann", "bob", 1);
    for event in [defined("bob")].iter().chain(&turn.events()) {
        world.publish(event).await;
    }
    world.caught_up().await;
    let rows = world.rows().await;

    world.stack.stop_one(Projector, 0).await.unwrap();
    sqlx::raw_sql(EARLIER).execute(world.model.pool()).await.unwrap();
    // Nobody is answered before it is brought up.
    assert_eq!(world.model.position().await.unwrap_err().kind, ReadErrorKind::Unavailable);
    assert_eq!(world.model.request_rebuild(READ_MODEL).await.unwrap_err().kind, ReadErrorKind::Unavailable);
    // It is ready when there is something to be asked, and not before.
    world.stack.start(Projector).await.unwrap();
    assert_eq!(world.model.position().await.unwrap(), world.end_of_log().await);
    assert_eq!(world.now().await.list_agents().await.unwrap().len(), 1);
    assert_eq!(world.count("SELECT count(*) FROM public.agents WHERE gone = 1").await, 1);
    assert_eq!(world.count("SELECT sequence FROM public.projections").await, 7);
    // What its replicas ask for by name is what it was.
    assert_eq!(world.count("SELECT count(*) FROM pg_namespace WHERE nspname = 'kairo'").await, 0);
    sqlx::raw_sql("DROP TABLE public.projections").execute(world.model.pool()).await.unwrap();
    world.rebuild().await;
    assert_eq!(world.rows().await, rows);
}

#[tokio::test]
async fn a_new_version_is_built_beside_the_one_before_which_still_answers_its_readers() {
    let mut world = World::start(&[]).await;
    world.publish(&defined("bob")).await;
    world.caught_up().await;
    let old = world.place().await;
    world.stack.stop_one(Projector, 0).await.unwrap();
    // As if it were of the version before, whose projectors follow it no longer.
    let earlier = "UPDATE generations SET version = version - 1 WHERE projection = 'read-model'";
    sqlx::raw_sql(earlier).execute(world.model.pool()).await.unwrap();
    world.publish(&defined("eve")).await;
    world.stack.start(Projector).await.unwrap();
    world.caught_up().await;
    assert_eq!(world.now().await.list_agents().await.unwrap().len(), 2);
    let states = "SELECT count(*) FROM generations WHERE state = 'live' AND projection = 'read-model'";
    assert_eq!(world.count(states).await, 2);
    let agents = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {old}.agents"));
    assert_eq!(sqlx::query_scalar::<_, i64>(agents).fetch_one(world.model.pool()).await.unwrap(), 1);
    // Its readers being gone, it can go too.
    let generation = old.trim_start_matches("kairo_").parse().unwrap();
    assert!(world.model.request_drop(generation).await.unwrap());
    world.is_gone(generation).await;
}
