//! Table `processes`. The first event about a process makes its row, whichever it is: a refused process was never
//! spawned, and one may be asked to end before it began. Events of one batch are written kind by kind, so what a row
//! holds must not depend on which kind came first.

use std::collections::BTreeMap;

use sqlx::PgConnection;
use uuid::Uuid;

use crate::changes::{ProcessAdvance, ProcessCancellation, ProcessExit, ProcessSpawn};

/// The supervisor that spawned it is the one it belongs to, whoever was there first to end it.
pub async fn upsert_spawns(connection: &mut PgConnection, rows: &BTreeMap<Uuid, ProcessSpawn>) -> sqlx::Result<()> {
    upsert_rows!(connection, rows, "processes", |(id, row)| {
        key "process_id": "uuid" = *id,
        set "sequence": "bigint" = row.event.sequence => "least(processes.sequence, excluded.sequence)",
        "action_id": "uuid" = row.event.action_id,
        "agent": "text" = &row.event.agent,
        set "supervisor": "text" = &row.event.supervisor,
        set "started_at": "timestamptz" = row.event.at,
        set "tool": "text" = row.tool.as_ref(),
        set "background": "boolean" = row.background,
        set "pid": "bigint" = row.pid,
        set "program": "text" = &row.program,
        set "arguments": "jsonb" = &row.arguments,
    }, "processes.started_at IS NULL")
}

pub async fn update_progress(connection: &mut PgConnection, rows: &BTreeMap<Uuid, ProcessAdvance>) -> sqlx::Result<()> {
    update_rows!(connection, rows, "processes", |(id, row)| {
        key "process_id": "uuid" = *id,
        set "progress_at": "timestamptz" = row.progress.at,
        set "fraction": "float8" = row.progress.fraction,
        set "progress_message": "text" = &row.progress.message,
        set "tail": "text" = &row.tail,
    }, "processes.progress_at IS NULL OR processes.progress_at < new.progress_at")
}

pub async fn upsert_cancels(
    connection: &mut PgConnection,
    rows: &BTreeMap<Uuid, ProcessCancellation>,
) -> sqlx::Result<()> {
    upsert_rows!(connection, rows, "processes", |(id, row)| {
        key "process_id": "uuid" = *id,
        set "sequence": "bigint" = row.event.sequence => "least(processes.sequence, excluded.sequence)",
        "action_id": "uuid" = row.event.action_id,
        "agent": "text" = &row.event.agent,
        "supervisor": "text" = &row.event.supervisor,
        "background": "boolean" = false,
        set "cancel_requested_at": "timestamptz" = row.event.at,
        set "cancel_requested_by": "uuid" = row.by,
    }, "processes.cancel_requested_at IS NULL")
}

pub async fn upsert_exits(connection: &mut PgConnection, rows: &BTreeMap<Uuid, ProcessExit>) -> sqlx::Result<()> {
    upsert_rows!(connection, rows, "processes", |(id, row)| {
        key "process_id": "uuid" = *id,
        set "sequence": "bigint" = row.event.sequence => "least(processes.sequence, excluded.sequence)",
        "action_id": "uuid" = row.event.action_id,
        "agent": "text" = &row.event.agent,
        if "processes.started_at IS NULL" { "supervisor": "text" = &row.event.supervisor, }
        set "ended_at": "timestamptz" = row.event.at,
        set "tool": "text" = row.tool.as_ref() => "coalesce(processes.tool, excluded.tool)",
        set "background": "boolean" = row.background => "processes.background OR excluded.background",
        set "program": "text" = row.program.as_ref() => "coalesce(processes.program, excluded.program)",
        set "outcome": "text" = &row.outcome,
        set "code": "int" = row.code,
        set "signal": "int" = row.signal,
        set "reason": "text" = &row.reason,
        set "wall_ms": "bigint" = row.usage.map(|usage| usage.wall_ms),
        set "user_ms": "bigint" = row.usage.map(|usage| usage.user_ms),
        set "system_ms": "bigint" = row.usage.map(|usage| usage.system_ms),
        set "max_rss_bytes": "bigint" = row.usage.map(|usage| usage.max_rss_bytes),
        set "stdout_tail": "text" = &row.stdout_tail,
        set "stderr_tail": "text" = &row.stderr_tail,
        set "stdout_bytes": "bigint" = row.stdout_bytes,
        set "stderr_bytes": "bigint" = row.stderr_bytes,
    }, "processes.ended_at IS NULL")
}
