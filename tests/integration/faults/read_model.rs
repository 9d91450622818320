//! The tables against the log they were made from.

use std::collections::BTreeMap;

use kairo_core::subjects::EVENTS_STREAM;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, PgConnection, query_scalar};
use tokio::time::timeout;

use crate::world::{DEADLINE, World};

const TABLES: [&str; 6] = ["events", "agents", "threads", "messages", "actions", "processes"];

/// Waits until the projection has read the whole log, and sees that a rebuild gives the same rows.
pub async fn is_that_of_the_log(world: &World) {
    caught_up(world).await;
    let rows = rows(world).await;
    assert!(rows.values().all(|rows| !rows.is_empty()), "{rows:?}");
    let (status, answer) = world.post("/v1/projections/rebuild", &json!({})).await;
    assert_eq!(status, 202, "{answer}");
    caught_up(world).await;
    assert_eq!(self::rows(world).await, rows);
}

async fn caught_up(world: &World) {
    let stream = world.bus.jetstream.get_stream(EVENTS_STREAM).await.unwrap();
    let end = i64::try_from(stream.cached_info().state.last_sequence).unwrap();
    let mut postgres = connect(world).await;
    let position = async {
        let mut position = 0;
        while position < end {
            // Nobody says when it moves: asking is all there is.
            position = query_scalar("SELECT sequence FROM projections").fetch_one(&mut postgres).await.unwrap();
        }
    };
    timeout(DEADLINE, position).await.expect("the projection never caught up");
}

/// All rows of all tables, as text.
async fn rows(world: &World) -> BTreeMap<&'static str, String> {
    let mut postgres = connect(world).await;
    let mut rows = BTreeMap::new();
    for table in TABLES {
        let sql = format!("SELECT coalesce(string_agg(t::text, E'\\n' ORDER BY t::text), '') FROM {table} t");
        rows.insert(table, query_scalar(AssertSqlSafe(sql)).fetch_one(&mut postgres).await.unwrap());
    }
    rows
}

async fn connect(world: &World) -> PgConnection {
    PgConnection::connect(&world.postgres.url("kairo")).await.unwrap()
}
