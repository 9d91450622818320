//! Table `processes`. The first event about a process makes its row, whichever it is: a refused process was never
//! spawned, and one may be asked to end before it began. Events of one batch are written kind by kind, so what a row
//! holds must not depend on which kind came first.

use std::collections::BTreeMap;

use sqlx::PgConnection;
use uuid::Uuid;

use super::write_rows;
use crate::changes::{Advance, Canceled, Exited, Spawned};

/// The supervisor that spawned it is the one it belongs to, whoever was there first to end it.
pub async fn spawn(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Spawned>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
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
        WHERE processes.started_at IS NULL",
        |(id, row)| (
            *id,
            row.event.sequence,
            row.event.action_id,
            &row.event.agent,
            &row.event.supervisor,
            row.event.at,
            row.tool.as_ref(),
            row.background,
            row.pid,
            &row.program,
            &row.arguments,
        )
    )
}

pub async fn advance(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Advance>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        UPDATE processes
        SET progress_at = new.progress_at, fraction = new.fraction, progress_message = new.message, tail = new.tail
        FROM UNNEST($1::uuid[], $2::timestamptz[], $3::float8[], $4::text[], $5::text[])
            AS new (process_id, progress_at, fraction, message, tail)
        WHERE processes.process_id = new.process_id
            AND (processes.progress_at IS NULL OR processes.progress_at < new.progress_at)",
        |(id, row)| (*id, row.progress.at, row.progress.fraction, &row.progress.message, &row.tail,)
    )
}

pub async fn cancel(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Canceled>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        INSERT INTO processes (process_id, sequence, action_id, agent, supervisor, background, cancel_requested_at,
                               cancel_requested_by)
        SELECT process_id, sequence, action_id, agent, supervisor, false, requested_at, requested_by
        FROM UNNEST($1::uuid[], $2::bigint[], $3::uuid[], $4::text[], $5::text[], $6::timestamptz[], $7::uuid[])
            AS new (process_id, sequence, action_id, agent, supervisor, requested_at, requested_by)
        ON CONFLICT (process_id) DO UPDATE
        SET sequence = least(processes.sequence, EXCLUDED.sequence), cancel_requested_at = EXCLUDED.cancel_requested_at,
            cancel_requested_by = EXCLUDED.cancel_requested_by
        WHERE processes.cancel_requested_at IS NULL",
        |(id, row)| (
            *id,
            row.event.sequence,
            row.event.action_id,
            &row.event.agent,
            &row.event.supervisor,
            row.event.at,
            row.by,
        )
    )
}

pub async fn exit(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Exited>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
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
        WHERE processes.ended_at IS NULL",
        |(id, row)| (
            *id,
            row.event.sequence,
            row.event.action_id,
            &row.event.agent,
            &row.event.supervisor,
            row.event.at,
            row.tool.as_ref(),
            row.background,
            row.program.as_ref(),
            &row.outcome,
            row.code,
            row.signal,
            &row.reason,
            row.usage.map(|usage| usage.wall_ms),
            row.usage.map(|usage| usage.user_ms),
            row.usage.map(|usage| usage.system_ms),
            row.usage.map(|usage| usage.max_rss_bytes),
            &row.stdout_tail,
            &row.stderr_tail,
            row.stdout_bytes,
            row.stderr_bytes,
        )
    )
}
