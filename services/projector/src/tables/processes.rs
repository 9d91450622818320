//! Table `processes`. Either half of a row may come alone: a refused process was never spawned.

use std::collections::BTreeMap;

use sqlx::{PgConnection, query};
use uuid::Uuid;

use super::column;
use crate::changes::{Exited, Spawned};

const SPAWN: &str = "
    INSERT INTO processes (process_id, action_id, agent, supervisor, pid, program, arguments, started_at)
    SELECT process_id, action_id, agent, supervisor, pid, program, arguments::jsonb, started_at
    FROM UNNEST($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::timestamptz[])
        AS new (process_id, action_id, agent, supervisor, pid, program, arguments, started_at)
    ON CONFLICT (process_id) DO UPDATE
    SET pid = EXCLUDED.pid, program = EXCLUDED.program, arguments = EXCLUDED.arguments,
        started_at = EXCLUDED.started_at
    WHERE processes.started_at IS NULL";

const EXIT: &str = "
    INSERT INTO processes (process_id, action_id, agent, supervisor, ended_at, outcome, code, signal, reason)
    SELECT * FROM UNNEST($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::timestamptz[], $6::text[], $7::int[],
                         $8::int[], $9::text[])
    ON CONFLICT (process_id) DO UPDATE
    SET ended_at = EXCLUDED.ended_at, outcome = EXCLUDED.outcome, code = EXCLUDED.code, signal = EXCLUDED.signal,
        reason = EXCLUDED.reason
    WHERE processes.ended_at IS NULL";

pub async fn spawn(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Spawned>) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(SPAWN)
        .bind(column(rows, |(id, _)| *id))
        .bind(column(rows, |(_, row)| row.action_id))
        .bind(column(rows, |(_, row)| &row.agent))
        .bind(column(rows, |(_, row)| &row.supervisor))
        .bind(column(rows, |(_, row)| row.pid))
        .bind(column(rows, |(_, row)| &row.program))
        .bind(column(rows, |(_, row)| &row.arguments))
        .bind(column(rows, |(_, row)| row.started_at))
        .execute(connection)
        .await?;
    Ok(())
}

pub async fn exit(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Exited>) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(EXIT)
        .bind(column(rows, |(id, _)| *id))
        .bind(column(rows, |(_, row)| row.action_id))
        .bind(column(rows, |(_, row)| &row.agent))
        .bind(column(rows, |(_, row)| &row.supervisor))
        .bind(column(rows, |(_, row)| row.ended_at))
        .bind(column(rows, |(_, row)| &row.outcome))
        .bind(column(rows, |(_, row)| row.code))
        .bind(column(rows, |(_, row)| row.signal))
        .bind(column(rows, |(_, row)| &row.reason))
        .execute(connection)
        .await?;
    Ok(())
}
