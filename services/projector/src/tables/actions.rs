//! Table `actions`.

use std::collections::BTreeMap;

use sqlx::{PgConnection, query};
use uuid::Uuid;

use super::column;
use crate::changes::{Action, Begun, Cancel, Ended, Progress, Spawned, Verdict};

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
        error_message = new.error_message, duration_ms = new.duration_ms, ended_sequence = new.sequence
    FROM UNNEST($1::uuid[], $2::timestamptz[], $3::boolean[], $4::text[], $5::text[], $6::text[], $7::bigint[],
                $8::bigint[])
        AS new (action_id, ended_at, ok, result, error_kind, error_message, duration_ms, sequence)
    WHERE actions.action_id = new.action_id AND actions.ended_at IS NULL";

const ADVANCE: &str = "
    UPDATE actions SET progress_at = new.progress_at, fraction = new.fraction, progress_message = new.message
    FROM UNNEST($1::uuid[], $2::timestamptz[], $3::float8[], $4::text[])
        AS new (action_id, progress_at, fraction, message)
    WHERE actions.action_id = new.action_id
        AND (actions.progress_at IS NULL OR actions.progress_at < new.progress_at)";

const CANCEL: &str = "
    UPDATE actions SET cancel_requested_at = new.requested_at, cancel_requested_by = new.requested_by
    FROM UNNEST($1::uuid[], $2::timestamptz[], $3::uuid[]) AS new (action_id, requested_at, requested_by)
    WHERE actions.action_id = new.action_id AND actions.cancel_requested_at IS NULL";

const BECOME: &str = "
    UPDATE actions SET process_id = new.process_id
    FROM UNNEST($1::uuid[], $2::uuid[]) AS new (process_id, action_id)
    WHERE actions.action_id = new.action_id AND actions.process_id IS NULL";

/// The first that was given after the action was in doubt. Which that is must not depend on where a batch ends, so it is
/// told from the sequences, and from what this batch has written already.
const RESOLVE: &str = "
    UPDATE actions
    SET verdict = first.verdict, resolved_by = first.user_id, resolution_note = first.note, resolved_at = first.ts
    FROM (
        SELECT DISTINCT ON (new.action_id) new.*
        FROM UNNEST($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[])
            AS new (action_id, sequence, agent, verdict, user_id, note, ts)
        JOIN actions ON actions.action_id = new.action_id AND actions.agent = new.agent
            AND actions.error_kind = 'in_doubt' AND actions.ended_sequence < new.sequence
        ORDER BY new.action_id, new.sequence
    ) AS first
    WHERE actions.action_id = first.action_id AND actions.verdict IS NULL";

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
        .bind(column(rows, |(_, row)| row.sequence))
        .execute(connection)
        .await?;
    Ok(())
}

pub async fn advance(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Progress>) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(ADVANCE)
        .bind(column(rows, |(id, _)| *id))
        .bind(column(rows, |(_, row)| row.at))
        .bind(column(rows, |(_, row)| row.fraction))
        .bind(column(rows, |(_, row)| &row.message))
        .execute(connection)
        .await?;
    Ok(())
}

pub async fn cancel(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Cancel>) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(CANCEL)
        .bind(column(rows, |(id, _)| *id))
        .bind(column(rows, |(_, row)| row.at))
        .bind(column(rows, |(_, row)| row.by))
        .execute(connection)
        .await?;
    Ok(())
}

/// The processes that actions became.
pub async fn become_processes(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Spawned>) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(BECOME)
        .bind(column(rows, |(process, _)| *process))
        .bind(column(rows, |(_, row)| row.event.action_id))
        .execute(connection)
        .await?;
    Ok(())
}

pub async fn resolve(connection: &mut PgConnection, rows: &[Verdict]) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(RESOLVE)
        .bind(column(rows, |row| row.action_id))
        .bind(column(rows, |row| row.sequence))
        .bind(column(rows, |row| &row.agent))
        .bind(column(rows, |row| &row.verdict))
        .bind(column(rows, |row| &row.user))
        .bind(column(rows, |row| &row.note))
        .bind(column(rows, |row| row.at))
        .execute(connection)
        .await?;
    Ok(())
}
