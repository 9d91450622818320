//! Table `actions`.

use std::collections::BTreeMap;

use sqlx::PgConnection;
use uuid::Uuid;

use super::write_rows;
use crate::changes::{Action, Begun, Cancel, Changes, Ended, Progress, Spawned, Verdict};

/// A tool call, with what else the same stretch of the log tells of it.
type Decided<'c> = (&'c Uuid, &'c Action, Option<&'c Begun>, Option<&'c Ended>);

/// Most are decided on, begun and ended within a batch: one row is cheaper than one and two changes of it.
fn decided(changes: &Changes) -> Vec<Decided<'_>> {
    let rows = changes.actions.iter();
    rows.map(|(id, row)| (id, row, changes.begun.get(id), changes.ended.get(id))).collect()
}

/// Those of actions that were decided on before.
fn of_others<'c, C>(changes: &'c Changes, rows: &'c BTreeMap<Uuid, C>) -> Vec<(&'c Uuid, &'c C)> {
    rows.iter().filter(|(id, _)| !changes.actions.contains_key(id)).collect()
}

/// A decision that is told again changes nothing, but what else is told with it may be new.
pub async fn decide(connection: &mut PgConnection, changes: &Changes) -> sqlx::Result<()> {
    let rows = decided(changes);
    write_rows!(
        connection,
        rows,
        "
        INSERT INTO actions (action_id, sequence, agent, thread_id, correlation_id, tool, arguments, decided_at,
                             invoked_at, runner, executor, ended_at, ok, result, error_kind, error_message, duration_ms,
                             ended_sequence)
        SELECT action_id, sequence, agent, thread_id, correlation_id, tool, arguments::jsonb, decided_at, invoked_at,
               runner, executor, ended_at, ok, result::jsonb, error_kind, error_message, duration_ms, ended_sequence
        FROM UNNEST($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::uuid[], $6::text[], $7::text[],
                    $8::timestamptz[], $9::timestamptz[], $10::text[], $11::text[], $12::timestamptz[], $13::boolean[],
                    $14::text[], $15::text[], $16::text[], $17::bigint[], $18::bigint[])
            AS new (action_id, sequence, agent, thread_id, correlation_id, tool, arguments, decided_at, invoked_at,
                    runner, executor, ended_at, ok, result, error_kind, error_message, duration_ms, ended_sequence)
        ON CONFLICT (action_id) DO UPDATE
        SET invoked_at = coalesce(actions.invoked_at, excluded.invoked_at),
            runner = coalesce(actions.runner, excluded.runner),
            executor = coalesce(actions.executor, excluded.executor),
            ended_at = coalesce(actions.ended_at, excluded.ended_at),
            ok = coalesce(actions.ok, excluded.ok),
            result = CASE WHEN actions.ended_at IS NULL THEN excluded.result ELSE actions.result END,
            error_kind = CASE WHEN actions.ended_at IS NULL THEN excluded.error_kind ELSE actions.error_kind END,
            error_message = CASE WHEN actions.ended_at IS NULL THEN excluded.error_message
                                 ELSE actions.error_message END,
            duration_ms = coalesce(actions.duration_ms, excluded.duration_ms),
            ended_sequence = coalesce(actions.ended_sequence, excluded.ended_sequence)",
        |(id, row, begun, ended)| (
            **id,
            row.sequence,
            &row.agent,
            row.thread_id.as_ref(),
            row.correlation_id,
            &row.tool,
            &row.arguments,
            row.decided_at,
            begun.map(|begun| begun.invoked_at),
            begun.map(|begun| &begun.runner),
            begun.map(|begun| &begun.executor),
            ended.map(|ended| ended.ended_at),
            ended.map(|ended| ended.ok),
            ended.and_then(|ended| ended.result.as_ref()),
            ended.and_then(|ended| ended.error_kind.as_ref()),
            ended.and_then(|ended| ended.error_message.as_ref()),
            ended.map(|ended| ended.duration_ms),
            ended.map(|ended| ended.sequence),
        )
    )
}

pub async fn begin(connection: &mut PgConnection, changes: &Changes) -> sqlx::Result<()> {
    let rows = of_others(changes, &changes.begun);
    write_rows!(
        connection,
        rows,
        "
        UPDATE actions SET invoked_at = new.invoked_at, runner = new.runner, executor = new.executor
        FROM UNNEST($1::uuid[], $2::timestamptz[], $3::text[], $4::text[])
            AS new (action_id, invoked_at, runner, executor)
        WHERE actions.action_id = new.action_id AND actions.invoked_at IS NULL",
        |(id, row)| (**id, row.invoked_at, &row.runner, &row.executor)
    )
}

pub async fn end(connection: &mut PgConnection, changes: &Changes) -> sqlx::Result<()> {
    let rows = of_others(changes, &changes.ended);
    write_rows!(
        connection,
        rows,
        "
        UPDATE actions
        SET ended_at = new.ended_at, ok = new.ok, result = new.result::jsonb, error_kind = new.error_kind,
            error_message = new.error_message, duration_ms = new.duration_ms, ended_sequence = new.sequence
        FROM UNNEST($1::uuid[], $2::timestamptz[], $3::boolean[], $4::text[], $5::text[], $6::text[], $7::bigint[],
                    $8::bigint[])
            AS new (action_id, ended_at, ok, result, error_kind, error_message, duration_ms, sequence)
        WHERE actions.action_id = new.action_id AND actions.ended_at IS NULL",
        |(id, row)| (
            **id,
            row.ended_at,
            row.ok,
            row.result.as_ref(),
            row.error_kind.as_ref(),
            row.error_message.as_ref(),
            row.duration_ms,
            row.sequence,
        )
    )
}

pub async fn advance(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Progress>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        UPDATE actions SET progress_at = new.progress_at, fraction = new.fraction, progress_message = new.message
        FROM UNNEST($1::uuid[], $2::timestamptz[], $3::float8[], $4::text[])
            AS new (action_id, progress_at, fraction, message)
        WHERE actions.action_id = new.action_id
            AND (actions.progress_at IS NULL OR actions.progress_at < new.progress_at)",
        |(id, row)| (*id, row.at, row.fraction, &row.message,)
    )
}

pub async fn cancel(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Cancel>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        UPDATE actions SET cancel_requested_at = new.requested_at, cancel_requested_by = new.requested_by
        FROM UNNEST($1::uuid[], $2::timestamptz[], $3::uuid[]) AS new (action_id, requested_at, requested_by)
        WHERE actions.action_id = new.action_id AND actions.cancel_requested_at IS NULL",
        |(id, row)| (*id, row.at, row.by,)
    )
}

/// The processes that actions became.
pub async fn become_processes(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Spawned>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        UPDATE actions SET process_id = new.process_id
        FROM UNNEST($1::uuid[], $2::uuid[]) AS new (process_id, action_id)
        WHERE actions.action_id = new.action_id AND actions.process_id IS NULL",
        |(process, row)| (*process, row.event.action_id,)
    )
}

/// The first that was given after the action was in doubt. Which that is must not depend on where a batch ends, so it is
/// told from the sequences, and from what this batch has written already.
pub async fn resolve(connection: &mut PgConnection, rows: &[Verdict]) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        UPDATE actions
        SET verdict = first.verdict, resolved_by = first.user_id, resolution_note = first.note,
            resolution_entered_by = first.entered_by, resolved_at = first.ts
        FROM (
            SELECT DISTINCT ON (new.action_id) new.*
            FROM UNNEST($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
                        $8::timestamptz[])
                AS new (action_id, sequence, agent, verdict, user_id, note, entered_by, ts)
            JOIN actions ON actions.action_id = new.action_id AND actions.agent = new.agent
                AND actions.error_kind = 'in_doubt' AND actions.ended_sequence < new.sequence
            ORDER BY new.action_id, new.sequence
        ) AS first
        WHERE actions.action_id = first.action_id AND actions.verdict IS NULL",
        |row| (
            row.action_id,
            row.sequence,
            &row.agent,
            &row.verdict,
            &row.user,
            &row.note,
            row.entered_by.as_ref(),
            row.at,
        )
    )
}
