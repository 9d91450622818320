//! Table `actions`.

use std::collections::BTreeMap;

use sqlx::{PgConnection, query};
use uuid::Uuid;

use super::column;
use crate::changes::{Action, Begun, Ended};

const DECIDE: &str = "
    INSERT INTO actions (action_id, sequence, agent, thread_id, correlation_id, tool, arguments, decided_at)
    SELECT action_id, sequence, agent, thread_id, correlation_id, tool, arguments::jsonb, decided_at
    FROM UNNEST($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::uuid[], $6::text[], $7::text[], $8::timestamptz[])
        AS new (action_id, sequence, agent, thread_id, correlation_id, tool, arguments, decided_at)
    ON CONFLICT DO NOTHING";

const BEGIN: &str = "
    UPDATE actions SET invoked_at = new.invoked_at, runner = new.runner, executor = new.executor
    FROM UNNEST($1::uuid[], $2::timestamptz[], $3::text[], $4::text[]) AS new (action_id, invoked_at, runner, executor)
    WHERE actions.action_id = new.action_id AND actions.invoked_at IS NULL";

const END: &str = "
    UPDATE actions
    SET ended_at = new.ended_at, ok = new.ok, result = new.result::jsonb, error_kind = new.error_kind,
        error_message = new.error_message, duration_ms = new.duration_ms
    FROM UNNEST($1::uuid[], $2::timestamptz[], $3::boolean[], $4::text[], $5::text[], $6::text[], $7::bigint[])
        AS new (action_id, ended_at, ok, result, error_kind, error_message, duration_ms)
    WHERE actions.action_id = new.action_id AND actions.ended_at IS NULL";

pub async fn decide(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Action>) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(DECIDE)
        .bind(column(rows, |(id, _)| *id))
        .bind(column(rows, |(_, row)| row.sequence))
        .bind(column(rows, |(_, row)| &row.agent))
        .bind(column(rows, |(_, row)| row.thread_id.as_ref()))
        .bind(column(rows, |(_, row)| row.correlation_id))
        .bind(column(rows, |(_, row)| &row.tool))
        .bind(column(rows, |(_, row)| &row.arguments))
        .bind(column(rows, |(_, row)| row.decided_at))
        .execute(connection)
        .await?;
    Ok(())
}

pub async fn begin(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Begun>) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(BEGIN)
        .bind(column(rows, |(id, _)| *id))
        .bind(column(rows, |(_, row)| row.invoked_at))
        .bind(column(rows, |(_, row)| &row.runner))
        .bind(column(rows, |(_, row)| &row.executor))
        .execute(connection)
        .await?;
    Ok(())
}

pub async fn end(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Ended>) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(END)
        .bind(column(rows, |(id, _)| *id))
        .bind(column(rows, |(_, row)| row.ended_at))
        .bind(column(rows, |(_, row)| row.ok))
        .bind(column(rows, |(_, row)| row.result.as_ref()))
        .bind(column(rows, |(_, row)| row.error_kind.as_ref()))
        .bind(column(rows, |(_, row)| row.error_message.as_ref()))
        .bind(column(rows, |(_, row)| row.duration_ms))
        .execute(connection)
        .await?;
    Ok(())
}
