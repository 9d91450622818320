//! The steps in the life of a generation of the tables: each is one transaction, fenced by the state it begins from, so
//! that it is applied once, by whichever replica, or not at all.

use std::time::Duration;

use kairo_proto::words::GenerationState;
use kairo_read_model::{
    GENERATIONS_CHANNEL, GenerationDigest, INDEXES_SQL, POSITION_CHANNEL, TABLES, TABLES_SQL, readers::grant_generation,
};
use sqlx::{AssertSqlSafe, Connection, PgConnection, Postgres, Transaction, query, query_as, query_scalar, raw_sql};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::{
    connection::{from_bigint, to_bigint},
    partition_progress::PartitionPosition,
    transition::is_level,
};

/// Pause between two looks at how far it is while the live one waits.
const LOOK: Duration = Duration::from_millis(10);

const ENTER_STATE: &str = "
    UPDATE generations SET state = $3, reason = $4, since = now() WHERE generation = $1 AND state = $2";
const TARGET: &str = "UPDATE generations SET target = $2, log = $3 WHERE generation = $1";
/// Adopts generations that were begun by a version that did not tell logs apart.
const ADOPT: &str = "UPDATE generations SET log = $1 WHERE log IS NULL AND state <> 'asked'";
/// Abandons the generations of all versions, including documents, which are made from tables.
const ABANDON: &str = "
    UPDATE generations SET state = 'dropping', reason = 'it was made from another log', since = now()
    WHERE log <> $1 AND state <> 'dropping'";
/// Their sequences are those of other messages by now.
const ABANDON_SET_ASIDE: &str = "DELETE FROM set_aside";
const PLACES: &str = "
    INSERT INTO positions (generation, partition, stop_at) SELECT $1, generate_series(0, $2 - 1), $3";
const STOP: &str = "
    UPDATE positions SET stop_at = new.stop_at FROM UNNEST($2::int[], $3::bigint[]) AS new (partition, stop_at)
    WHERE positions.generation = $1 AND positions.partition = new.partition";
const GO_ON: &str = "UPDATE positions SET stop_at = NULL WHERE generation = $1";
const POSITIONS: &str = "SELECT sequence, stop_at FROM positions WHERE generation = $1 ORDER BY partition";
const HOLD: &str = "SELECT sequence, stop_at FROM positions WHERE generation = $1 ORDER BY partition FOR UPDATE";
const REMOVE: &str = "DELETE FROM generations WHERE generation = $1 AND state = 'dropping'";
/// Drops the documents made from the removed generation too: nothing queries them any more.
const REMOVE_DOCUMENTS: &str =
    "UPDATE generations SET state = 'dropping', since = now() WHERE source = $1 AND state = 'kept'";
/// Messages that Postgres refused are nowhere else.
const HELD: &str = "
    SELECT (SELECT count(*) FROM log WHERE sequence <= $1) + (
        SELECT count(*) FROM set_aside
        WHERE sequence <= $1 AND NOT EXISTS (SELECT FROM log WHERE log.sequence = set_aside.sequence)
    )";
const TELL: &str = "SELECT pg_notify($1, ''), pg_notify($2, '')";
/// Checks for the tables of versions before generations.
const EARLIER: &str = "SELECT to_regclass('public.projections') IS NOT NULL";

/// A generation as the steps need it.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct GenerationBuild {
    pub generation: i64,
    /// The schema of its tables.
    #[sqlx(rename = "place")]
    pub schema: String,
    pub state: String,
    /// The end of the log when the generation was begun.
    #[sqlx(try_from = "i64")]
    pub target: u64,
}

/// Reads the positions of the partitions, in order.
pub async fn read_positions(connection: &mut PgConnection, generation: i64) -> sqlx::Result<Vec<PartitionPosition>> {
    let rows: Vec<(i64, Option<i64>)> = query_as(POSITIONS).bind(generation).fetch_all(connection).await?;
    Ok(rows.into_iter().map(to_position).collect())
}

/// Enters another state. Returns false if it is no longer in the one before.
pub async fn enter_state(
    connection: &mut PgConnection,
    building: &GenerationBuild,
    state: &str,
    reason: &str,
) -> sqlx::Result<bool> {
    let entered = query(ENTER_STATE).bind(building.generation).bind(&building.state).bind(state).bind(reason);
    let entered = entered.execute(&mut *connection).await?.rows_affected() > 0;
    query(TELL).bind(GENERATIONS_CHANNEL).bind(POSITION_CHANNEL).execute(connection).await?;
    Ok(entered)
}

/// Has everything removed that was made from another log than this. Returns false if there is nothing.
pub async fn abandon_foreign(connection: &mut PgConnection, log: Uuid) -> sqlx::Result<bool> {
    let mut transaction = connection.begin().await?;
    query(ADOPT).bind(log).execute(&mut *transaction).await?;
    let abandoned = query(ABANDON).bind(log).execute(&mut *transaction).await?.rows_affected();
    if abandoned > 0 {
        query(ABANDON_SET_ASIDE).execute(&mut *transaction).await?;
        query(TELL).bind(GENERATIONS_CHANNEL).bind(POSITION_CHANNEL).execute(&mut *transaction).await?;
        tracing::warn!(abandoned, %log, "read models were made from another log, and are made again");
    }
    transaction.commit().await?;
    Ok(abandoned > 0)
}

/// Makes its tables, to be filled up to the end of the log. Where there is nothing to fill them with, and nothing live,
/// it is live at once.
pub async fn create_tables(
    connection: &mut PgConnection,
    building: &GenerationBuild,
    partitions: u32,
    end: u64,
    log: Uuid,
    is_first: bool,
) -> sqlx::Result<bool> {
    let mut transaction = connection.begin().await?;
    let place = &building.schema;
    // Quietly, as each DROP says that there was nothing before.
    let make = format!(
        "SET LOCAL client_min_messages = warning; DROP SCHEMA IF EXISTS {place} CASCADE; CREATE SCHEMA {place}"
    );
    raw_sql(AssertSqlSafe(make)).execute(&mut *transaction).await?;
    set_search_path(&mut transaction, place).await?;
    raw_sql(TABLES_SQL).execute(&mut *transaction).await?;
    grant_generation(&mut transaction, place).await?;
    let at_once = is_first && end == 0;
    let partitions = i32::try_from(partitions).unwrap_or(i32::MAX);
    let positions = query(PLACES).bind(building.generation).bind(partitions).bind((!at_once).then_some(to_bigint(end)));
    positions.execute(&mut *transaction).await?;
    query(TARGET).bind(building.generation).bind(to_bigint(end)).bind(log).execute(&mut *transaction).await?;
    if at_once {
        raw_sql(INDEXES_SQL).execute(&mut *transaction).await?;
        publish_views(&mut transaction, place).await?;
    }
    let entered = enter_state(
        &mut transaction,
        building,
        if at_once { GenerationState::Live.known_word() } else { GenerationState::Filling.known_word() },
        "",
    )
    .await?;
    finish_transaction(transaction, entered).await
}

/// Counts the messages that the generation holds or has set aside, up to its target.
pub async fn count_held(connection: &mut PgConnection, building: &GenerationBuild) -> sqlx::Result<u64> {
    let mut transaction = connection.begin().await?;
    raw_sql("SET LOCAL statement_timeout = 0").execute(&mut *transaction).await?;
    set_search_path(&mut transaction, &building.schema).await?;
    let held = query_scalar(HELD).bind(to_bigint(building.target));
    let held: i64 = held.fetch_one(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(from_bigint(held))
}

/// Makes its indexes, and has Postgres count its rows for planning.
pub async fn create_indexes(connection: &mut PgConnection, building: &GenerationBuild) -> sqlx::Result<bool> {
    let mut transaction = connection.begin().await?;
    raw_sql("SET LOCAL statement_timeout = 0").execute(&mut *transaction).await?;
    set_search_path(&mut transaction, &building.schema).await?;
    raw_sql(INDEXES_SQL).execute(&mut *transaction).await?;
    let analyze = TABLES.map(|table| format!("ANALYZE {table};")).concat();
    raw_sql(AssertSqlSafe(analyze)).execute(&mut *transaction).await?;
    let entered = enter_state(&mut transaction, building, GenerationState::Comparing.known_word(), "").await?;
    finish_transaction(transaction, entered).await
}

/// Has it read up to where the live one was when it was measured.
pub async fn stop_at(
    connection: &mut PgConnection,
    building: &GenerationBuild,
    live: &GenerationDigest,
) -> sqlx::Result<()> {
    let partitions: Vec<i32> = live.positions.keys().copied().collect();
    let stops: Vec<i64> = live.positions.values().map(|stop| to_bigint(*stop)).collect();
    query(STOP).bind(building.generation).bind(partitions).bind(stops).execute(&mut *connection).await?;
    query(TELL).bind(GENERATIONS_CHANNEL).bind(POSITION_CHANNEL).execute(connection).await?;
    Ok(())
}

/// Has it follow the log from here on.
pub async fn resume_following(
    connection: &mut PgConnection,
    building: &GenerationBuild,
    state: &str,
    reason: &str,
) -> sqlx::Result<bool> {
    let mut transaction = connection.begin().await?;
    query(GO_ON).bind(building.generation).execute(&mut *transaction).await?;
    let entered = enter_state(&mut transaction, building, state, reason).await?;
    finish_transaction(transaction, entered).await
}

/// Makes it the live one in the place of another, for which nothing may be written meanwhile, and which it must have
/// reached; `patience` is how long it may take to. Returns false if that was too short.
pub async fn swap_in(
    connection: &mut PgConnection,
    building: &GenerationBuild,
    live: Option<&GenerationBuild>,
    is_foreign: bool,
    patience: Duration,
) -> sqlx::Result<bool> {
    let deadline = Instant::now() + patience;
    let mut transaction = connection.begin().await?;
    let limit = format!("SET LOCAL lock_timeout = {}", patience.as_millis().max(1));
    raw_sql(AssertSqlSafe(limit)).execute(&mut *transaction).await?;
    if let Some(live) = live {
        let held: Vec<(i64, Option<i64>)> = query_as(HOLD).bind(live.generation).fetch_all(&mut *transaction).await?;
        let held: Vec<PartitionPosition> = held.into_iter().map(to_position).collect();
        while !is_foreign && !is_level(&read_positions(&mut transaction, building.generation).await?, &held, 0) {
            if Instant::now() >= deadline {
                transaction.rollback().await?;
                return Ok(false);
            }
            sleep(LOOK).await;
        }
        if !enter_state(&mut transaction, live, GenerationState::Kept.known_word(), "").await? {
            transaction.rollback().await?;
            return Ok(false);
        }
    }
    let entered = enter_state(&mut transaction, building, GenerationState::Live.known_word(), "").await?;
    publish_views(&mut transaction, &building.schema).await?;
    finish_transaction(transaction, entered).await
}

/// Removes it, once nobody looks at anything: for as long as that takes nobody else may begin to, so that is not waited
/// for longer than `patience`.
pub async fn drop_generation(
    connection: &mut PgConnection,
    building: &GenerationBuild,
    patience: Duration,
) -> sqlx::Result<bool> {
    let mut transaction = connection.begin().await?;
    let hold = format!(
        "SET LOCAL client_min_messages = warning; SET LOCAL lock_timeout = {}; \
         LOCK TABLE generations IN ACCESS EXCLUSIVE MODE; DROP SCHEMA IF EXISTS {} CASCADE",
        patience.as_millis().max(1),
        building.schema
    );
    raw_sql(AssertSqlSafe(hold)).execute(&mut *transaction).await?;
    let removed = query(REMOVE).bind(building.generation).execute(&mut *transaction).await?.rows_affected() > 0;
    query(REMOVE_DOCUMENTS).bind(building.generation).execute(&mut *transaction).await?;
    query(TELL).bind(GENERATIONS_CHANNEL).bind(POSITION_CHANNEL).execute(&mut *transaction).await?;
    finish_transaction(transaction, removed).await
}

async fn finish_transaction(transaction: Transaction<'_, Postgres>, done: bool) -> sqlx::Result<bool> {
    match done {
        true => transaction.commit().await?,
        false => transaction.rollback().await?,
    }
    Ok(done)
}

/// Until the end of the transaction its tables are the ones that names stand for.
async fn set_search_path(transaction: &mut Transaction<'_, Postgres>, schema: &str) -> sqlx::Result<()> {
    let path = "SELECT set_config('search_path', $1 || ', ' || current_setting('search_path'), true)";
    query(path).bind(schema).execute(&mut **transaction).await?;
    Ok(())
}

/// For people and their tools: the live tables under one name, `kairo.threads` and so on. No role but the owner may read
/// them by itself.
async fn publish_views(transaction: &mut Transaction<'_, Postgres>, schema: &str) -> sqlx::Result<()> {
    // A user of that name would see the views instead of the tables that they had before there were generations, and
    // replicas of that time may still be at work.
    let is_earlier: bool = query_scalar(EARLIER).fetch_one(&mut **transaction).await?;
    if is_earlier {
        return Ok(());
    }
    let views = TABLES.map(|table| format!("CREATE VIEW kairo.{table} AS SELECT * FROM {schema}.{table};"));
    let show = format!(
        "SET LOCAL client_min_messages = warning; DROP SCHEMA IF EXISTS kairo CASCADE; CREATE SCHEMA kairo; {}",
        views.concat()
    );
    raw_sql(AssertSqlSafe(show)).execute(&mut **transaction).await?;
    Ok(())
}

fn to_position((at, stop_at): (i64, Option<i64>)) -> PartitionPosition {
    PartitionPosition { sequence: from_bigint(at), stop_at: stop_at.map(from_bigint) }
}
