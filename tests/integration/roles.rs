//! The Postgres permissions of each service: a real server refuses its role the rest. The other tests run with these
//! roles.

mod tls;

use std::time::Duration;

use kairo_core::config::Secret;
use kairo_local::{Postgres, Service, Tools};
use kairo_read_model::{PostgresConfig, READ_MODEL, ReadModel, TABLES, migrate};
use sqlx::{AssertSqlSafe, Connection, PgConnection, raw_sql};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::world::{DEADLINE, Wanted, World, scenario::USUAL};

/// "Permission denied", and for `SET ROLE` and the like, too.
const DENIED: &str = "42501";

/// Statements that only projector may run, with `{place}` for the schema of the live tables.
const OWNERS: [&str; 22] = [
    "INSERT INTO generations (projection, version, place, state) VALUES ('read-model', 99, 'mine', 'live')",
    "UPDATE generations SET state = 'live'",
    "UPDATE generations SET since = now()",
    "UPDATE generations SET place = 'mine'",
    "DELETE FROM generations",
    "UPDATE positions SET sequence = 0",
    "DELETE FROM set_aside",
    "INSERT INTO refused_documents SELECT * FROM refused_documents",
    "SELECT nextval('generations_generation_seq')",
    "SELECT setval('generations_generation_seq', 7)",
    "CREATE SCHEMA mine",
    "CREATE TABLE public.mine (it text)",
    "CREATE TEMPORARY TABLE mine (it text)",
    "CREATE TABLE {place}.mine (it text)",
    "CREATE VIEW {place}.mine AS SELECT 1",
    "CREATE FUNCTION public.now() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    "DROP SCHEMA {place} CASCADE",
    "UPDATE {place}.memories SET content = 'forged'",
    "UPDATE {place}.threads SET user_id = 'mine'",
    "SELECT * FROM kairo.threads",
    "SET ROLE kairo_projector",
    "SELECT * FROM _sqlx_migrations",
];

/// Statements that no service may run, whatever it owns.
const SUPERUSERS: [&str; 7] = [
    "SELECT rolpassword FROM pg_authid",
    "SELECT pg_read_file('/etc/passwd')",
    "COPY (SELECT 1) TO PROGRAM 'cat'",
    "COPY (SELECT 1) TO '/tmp/mine'",
    "CREATE ROLE mine",
    "SET ROLE kairo",
    "CREATE DATABASE mine",
];

async fn connect(world: &World, service: Service) -> PgConnection {
    PgConnection::connect(world.database.service_url(service).unwrap()).await.unwrap()
}

async fn attempt(connection: &mut PgConnection, sql: &str) -> Result<(), sqlx::Error> {
    raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await.map(|_| ())
}

async fn is_refused(connection: &mut PgConnection, sql: &str) {
    let refused = attempt(connection, sql).await.expect_err(sql);
    let code = refused.as_database_error().and_then(|error| error.code().map(|code| code.into_owned()));
    assert_eq!(code.as_deref(), Some(DENIED), "{sql}: {refused}");
}

/// The schema of the live tables.
async fn place(world: &World) -> String {
    let generations = world.projection("read-model").await["generations"].clone();
    let live = generations.as_array().unwrap().iter().find(|it| it["state"] == "live").unwrap().clone();
    live["place"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn readers_are_refused_whatever_they_do_not_need() {
    let world = Wanted::new(USUAL).start().await;
    world.define("default").await;
    world.ask("default", "hello").await;
    // Of which the second generation was let be read when it was made.
    world.verified().await;
    let place = place(&world).await;
    for service in [Service::Gateway, Service::ToolRunner] {
        let mut reader = connect(&world, service).await;
        for table in TABLES {
            for sql in [
                "DELETE FROM",
                "TRUNCATE",
                "INSERT INTO {} DEFAULT VALUES; --",
                "ALTER TABLE {} RENAME TO mine; --",
                "DO 'BEGIN LOCK TABLE {}; END' --",
            ] {
                let table = format!("{place}.{table}");
                is_refused(&mut reader, &format!("{} {table}", sql.replace("{}", &table))).await;
            }
        }
        for sql in OWNERS.into_iter().chain(SUPERUSERS) {
            is_refused(&mut reader, &sql.replace("{place}", &place)).await;
        }
    }
    let mut projector = connect(&world, Service::Projector).await;
    for sql in SUPERUSERS {
        is_refused(&mut projector, sql).await;
    }
    world.digests_are_equal().await;
    world.end().await;
}

#[tokio::test]
async fn gateway_reads_all_and_tool_runner_what_memory_search_needs() {
    let world = Wanted::new(USUAL).start().await;
    let place = place(&world).await;
    let (mut gateway, mut tool_runner) =
        (connect(&world, Service::Gateway).await, connect(&world, Service::ToolRunner).await);
    for table in TABLES {
        let all = format!("SELECT * FROM {place}.{table}");
        attempt(&mut gateway, &all).await.unwrap();
        match table {
            "memories" => attempt(&mut tool_runner, &all).await.unwrap(),
            _ => is_refused(&mut tool_runner, &all).await,
        }
    }
    attempt(&mut tool_runner, &format!("SELECT user_id FROM {place}.threads WHERE agent = 'a'")).await.unwrap();
    for sql in [
        "SELECT title FROM {place}.threads",
        "SELECT * FROM set_aside",
        "SELECT request_rebuild('read-model', 99)",
        "SELECT request_swap('read-model', 99)",
        "SELECT request_drop(1)",
    ] {
        is_refused(&mut tool_runner, &sql.replace("{place}", &place)).await;
    }
    world.end().await;
}

/// The gateway can order from projector only what `kairo projections` offers.
#[tokio::test]
async fn what_is_live_is_not_dropped_whoever_asks() {
    let world = Wanted::new(USUAL).start().await;
    let mut gateway = connect(&world, Service::Gateway).await;
    let dropped: bool = sqlx::query_scalar("SELECT request_drop(1)").fetch_one(&mut gateway).await.unwrap();
    assert!(!dropped);
    // Nor is what stands for another function or table found first.
    attempt(&mut gateway, "SET search_path = pg_temp, kairo_1; SELECT public.request_drop(1)").await.unwrap();
    assert_eq!(place(&world).await, "kairo_1");
    world.end().await;
}

/// As of before there were roles: one role made and owned everything, and was everybody.
#[tokio::test]
async fn a_database_of_a_single_role_becomes_that_of_three() {
    let mut world = Wanted::new(USUAL).start().await;
    world.define("default").await;
    let before = world.postgres.create_database("before").await.unwrap();
    restart(&mut world, |_| before.clone()).await;
    world.database.url = before;
    world.ask("default", "hello").await;
    world.projected().await;

    let database = world.postgres.create_kairo_database("before").await.unwrap();
    restart(&mut world, |service| database.service_url(service).unwrap().to_owned()).await;
    assert_eq!(place(&world).await, "kairo_1", "it is not built anew");
    world.database = database;
    // projector may read, write, build and remove what another role made.
    world.ask("default", "hello again").await;
    world.verified().await;
    assert_eq!(world.delete("/v1/projections/read-model/generations/1").await.0, 202);
    world.generation_until("read-model", 1, |found| !found["projections"].is_null()).await;
    world.end().await;
}

/// Restarts whoever goes to Postgres with another URL.
async fn restart(world: &mut World, url: impl Fn(Service) -> String) {
    for service in [Service::Projector, Service::ToolRunner, Service::Gateway] {
        world.stack.service(service).env("KAIRO_POSTGRES__URL", url(service));
        world.stack.restart(service, 0).await.unwrap();
    }
}

#[tokio::test]
async fn a_gateway_that_may_not_read_says_what_is_missing() {
    let mut world = Wanted::new(USUAL).start().await;
    let foreign = world.database.service_url(Service::ToolRunner).unwrap().to_owned();
    let wrong = foreign.replace("kairo_tool_runner:", "kairo_gateway:");
    for (url, said) in [(&foreign, "permission denied for"), (&wrong, "password authentication failed")] {
        world.stack.service(Service::Gateway).env("KAIRO_POSTGRES__URL", url);
        world.stack.restart(Service::Gateway, 0).await.unwrap();
        let (status, answer) = world.get("/v1/threads?user=ann").await;
        assert_eq!((status, answer.to_string().contains("log of the gateway")), (503, true), "{answer}");
        let role = if url == &foreign { "kairo_tool_runner" } else { "kairo_gateway" };
        let role = format!("role=\"{role}\"");
        let log = logged(&world, &[said, "deploy/postgres-roles.sql", &role]).await;
        assert!(!log.contains(password(url)), "the password is in the log");
    }
}

/// The end of the gateway's log, once all of this stands there.
async fn logged(world: &World, parts: &[&str]) -> String {
    let process = world.stack.replica(Service::Gateway, 0).unwrap().process();
    let written = async {
        loop {
            let log = process.log_tail();
            if parts.iter().all(|part| log.contains(part)) {
                return log;
            }
            // Nobody tells that it was written: looking is all there is.
            sleep(Duration::from_millis(20)).await;
        }
    };
    let written = timeout(DEADLINE, written).await;
    written.unwrap_or_else(|_| panic!("{parts:?} is not in {}", process.log_tail()))
}

fn password(url: &str) -> &str {
    url.split([':', '@']).nth(2).unwrap()
}

/// Without the services' roles, a single role does everything, as before.
#[tokio::test]
async fn a_role_that_is_not_there_is_passed_over() {
    let folder: TempDir = tempfile::tempdir().unwrap();
    let tools = Tools::of_this_checkout().expect("run ./scripts/test");
    let options = tools.ephemeral_postgres_in(folder.path().join("postgres")).unwrap();
    let postgres = Postgres::start(options).await.unwrap();
    let url = postgres.create_database("kairo").await.unwrap();
    let config = PostgresConfig { url: Secret::new(url), ..Default::default() };
    migrate(&config).await.unwrap();
    let model = ReadModel::open(&config).unwrap();
    assert_eq!(model.request_rebuild(READ_MODEL).await.unwrap(), Some(1));
    // One that is made later is let in at the next start.
    postgres.create_kairo_database("kairo").await.unwrap();
    migrate(&config).await.unwrap();
    let granted = "SELECT has_table_privilege('kairo_gateway', 'public.generations', 'SELECT')";
    assert!(sqlx::query_scalar::<_, bool>(granted).fetch_one(model.pool()).await.unwrap());
    assert_eq!(model.postgres_role(), "kairo");
}
