//! Table `processes`. The first event about a process makes its row, whichever it is: a refused process was never
//! spawned, and one may be asked to end before it began. Events of one batch are written kind by kind, so what a row
//! holds must not depend on which kind came first.

use std::collections::BTreeMap;

use sqlx::{PgConnection, query};
use uuid::Uuid;

use super::column;
use crate::changes::{Advance, Canceled, Exited, Spawned, Usage};

/// The supervisor that spawned it is the one it belongs to, whoever was there first to end it.
const SPAWN: &str = "
    INSERT INTO processes (process_id, sequence, action_id, agent, supervisor, started_at, tool, background, pid, program,
                           arguments)
    SELECT process_id, sequence, action_id, agent, supervisor, started_at, tool, background, pid, program,
           arguments::jsonb
    FROM UNNEST($1::uuid[], $2::bigint[], $3::uuid[], $4::text[], $5::text[], $6::timestamptz[], $7::text[],
                $8::boolean[], $9::bigint[], $10::text[], $11::text[])
        AS new (process_id, sequence, action_id, agent, supervisor, started_at, tool, background, pid, program, arguments)
    ON CONFLICT (process_id) DO UPDATE
    SET sequence = least(processes.sequence, EXCLUDED.sequence), supervisor = EXCLUDED.supervisor,
        started_at = EXCLUDED.started_at, tool = EXCLUDED.tool,
        background = EXCLUDED.background, pid = EXCLUDED.pid, program = EXCLUDED.program, arguments = EXCLUDED.arguments
    WHERE processes.started_at IS NULL";

const ADVANCE: &str = "
    UPDATE processes
    SET progress_at = new.progress_at, fraction = new.fraction, progress_message = new.message, tail = new.tail
    FROM UNNEST($1::uuid[], $2::timestamptz[], $3::float8[], $4::text[], $5::text[])
        AS new (process_id, progress_at, fraction, message, tail)
    WHERE processes.process_id = new.process_id
        AND (processes.progress_at IS NULL OR processes.progress_at < new.progress_at)";

const CANCEL: &str = "
    INSERT INTO processes (process_id, sequence, action_id, agent, supervisor, background, cancel_requested_at,
                           cancel_requested_by)
    SELECT process_id, sequence, action_id, agent, supervisor, false, requested_at, requested_by
    FROM UNNEST($1::uuid[], $2::bigint[], $3::uuid[], $4::text[], $5::text[], $6::timestamptz[], $7::uuid[])
        AS new (process_id, sequence, action_id, agent, supervisor, requested_at, requested_by)
    ON CONFLICT (process_id) DO UPDATE
    SET sequence = least(processes.sequence, EXCLUDED.sequence), cancel_requested_at = EXCLUDED.cancel_requested_at,
        cancel_requested_by = EXCLUDED.cancel_requested_by
    WHERE processes.cancel_requested_at IS NULL";

const EXIT: &str = "
    INSERT INTO processes (process_id, sequence, action_id, agent, supervisor, ended_at, tool, background, program,
                           outcome, code, signal, reason, wall_ms, user_ms, system_ms, max_rss_bytes, stdout_tail,
                           stderr_tail, stdout_bytes, stderr_bytes)
    SELECT * FROM UNNEST($1::uuid[], $2::bigint[], $3::uuid[], $4::text[], $5::text[], $6::timestamptz[], $7::text[],
                         $8::boolean[], $9::text[], $10::text[], $11::int[], $12::int[], $13::text[], $14::bigint[],
                         $15::bigint[], $16::bigint[], $17::bigint[], $18::text[], $19::text[], $20::bigint[],
                         $21::bigint[])
    ON CONFLICT (process_id) DO UPDATE
    SET sequence = least(processes.sequence, EXCLUDED.sequence),
        supervisor = CASE WHEN processes.started_at IS NULL THEN EXCLUDED.supervisor ELSE processes.supervisor END,
        ended_at = EXCLUDED.ended_at, tool = coalesce(processes.tool, EXCLUDED.tool),
        background = processes.background OR EXCLUDED.background,
        program = coalesce(processes.program, EXCLUDED.program), outcome = EXCLUDED.outcome, code = EXCLUDED.code,
        signal = EXCLUDED.signal, reason = EXCLUDED.reason, wall_ms = EXCLUDED.wall_ms, user_ms = EXCLUDED.user_ms,
        system_ms = EXCLUDED.system_ms, max_rss_bytes = EXCLUDED.max_rss_bytes, stdout_tail = EXCLUDED.stdout_tail,
        stderr_tail = EXCLUDED.stderr_tail, stdout_bytes = EXCLUDED.stdout_bytes, stderr_bytes = EXCLUDED.stderr_bytes
    WHERE processes.ended_at IS NULL";

pub async fn spawn(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Spawned>) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(SPAWN)
        .bind(column(rows, |(id, _)| *id))
        .bind(column(rows, |(_, row)| row.event.sequence))
        .bind(column(rows, |(_, row)| row.event.action_id))
        .bind(column(rows, |(_, row)| &row.event.agent))
        .bind(column(rows, |(_, row)| &row.event.supervisor))
        .bind(column(rows, |(_, row)| row.event.at))
        .bind(column(rows, |(_, row)| row.tool.as_ref()))
        .bind(column(rows, |(_, row)| row.background))
        .bind(column(rows, |(_, row)| row.pid))
        .bind(column(rows, |(_, row)| &row.program))
        .bind(column(rows, |(_, row)| &row.arguments))
        .execute(connection)
        .await?;
    Ok(())
}

pub async fn advance(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Advance>) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(ADVANCE)
        .bind(column(rows, |(id, _)| *id))
        .bind(column(rows, |(_, row)| row.progress.at))
        .bind(column(rows, |(_, row)| row.progress.fraction))
        .bind(column(rows, |(_, row)| &row.progress.message))
        .bind(column(rows, |(_, row)| &row.tail))
        .execute(connection)
        .await?;
    Ok(())
}

pub async fn cancel(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Canceled>) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(CANCEL)
        .bind(column(rows, |(id, _)| *id))
        .bind(column(rows, |(_, row)| row.event.sequence))
        .bind(column(rows, |(_, row)| row.event.action_id))
        .bind(column(rows, |(_, row)| &row.event.agent))
        .bind(column(rows, |(_, row)| &row.event.supervisor))
        .bind(column(rows, |(_, row)| row.event.at))
        .bind(column(rows, |(_, row)| row.by))
        .execute(connection)
        .await?;
    Ok(())
}

pub async fn exit(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Exited>) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let used = |value: fn(Usage) -> i64| column(rows, move |(_, row)| row.usage.map(value));
    query(EXIT)
        .bind(column(rows, |(id, _)| *id))
        .bind(column(rows, |(_, row)| row.event.sequence))
        .bind(column(rows, |(_, row)| row.event.action_id))
        .bind(column(rows, |(_, row)| &row.event.agent))
        .bind(column(rows, |(_, row)| &row.event.supervisor))
        .bind(column(rows, |(_, row)| row.event.at))
        .bind(column(rows, |(_, row)| row.tool.as_ref()))
        .bind(column(rows, |(_, row)| row.background))
        .bind(column(rows, |(_, row)| row.program.as_ref()))
        .bind(column(rows, |(_, row)| &row.outcome))
        .bind(column(rows, |(_, row)| row.code))
        .bind(column(rows, |(_, row)| row.signal))
        .bind(column(rows, |(_, row)| &row.reason))
        .bind(used(|usage| usage.wall_ms))
        .bind(used(|usage| usage.user_ms))
        .bind(used(|usage| usage.system_ms))
        .bind(used(|usage| usage.max_rss_bytes))
        .bind(column(rows, |(_, row)| &row.stdout_tail))
        .bind(column(rows, |(_, row)| &row.stderr_tail))
        .bind(column(rows, |(_, row)| row.stdout_bytes))
        .bind(column(rows, |(_, row)| row.stderr_bytes))
        .execute(connection)
        .await?;
    Ok(())
}
