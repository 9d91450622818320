//! Table `actions`.

use std::collections::BTreeMap;

use sqlx::PgConnection;
use uuid::Uuid;

use crate::changes::{
    ActionDecision, ActionEnding, ActionStart, ActionVerdict, CancelRequest, ProcessSpawn, ReportedProgress,
    TableChanges,
};

/// A tool call, with what else the same stretch of the log tells of it.
type DecidedAction<'c> = (&'c Uuid, &'c ActionDecision, Option<&'c ActionStart>, Option<&'c ActionEnding>);

/// Most are decided on, begun and ended within a batch: one row is cheaper than one and two changes of it.
fn decided_actions(changes: &TableChanges) -> Vec<DecidedAction<'_>> {
    let rows = changes.actions.iter();
    rows.map(|(id, row)| (id, row, changes.begun.get(id), changes.ended.get(id))).collect()
}

/// Those of actions that were decided on before.
fn of_earlier_actions<'c, C>(changes: &'c TableChanges, rows: &'c BTreeMap<Uuid, C>) -> Vec<(&'c Uuid, &'c C)> {
    rows.iter().filter(|(id, _)| !changes.actions.contains_key(id)).collect()
}

/// A decision that is told again changes nothing, but what else is told with it may be new.
pub async fn upsert_decisions(connection: &mut PgConnection, changes: &TableChanges) -> sqlx::Result<()> {
    let rows = decided_actions(changes);
    upsert_rows!(connection, rows, "actions", |(id, row, begun, ended)| {
        key "action_id": "uuid" = **id,
        "sequence": "bigint" = row.sequence,
        "agent": "text" = &row.agent,
        "thread_id": "text" = row.thread_id.as_ref(),
        "correlation_id": "uuid" = row.correlation_id,
        "tool": "text" = &row.tool,
        "arguments": "jsonb" = &row.arguments,
        "decided_at": "timestamptz" = row.decided_at,
        if "actions.invoked_at IS NULL" {
            "invoked_at": "timestamptz" = begun.map(|begun| begun.invoked_at),
            "runner": "text" = begun.map(|begun| &begun.runner),
            "executor": "text" = begun.map(|begun| &begun.executor),
        }
        if "actions.ended_at IS NULL" {
            "ended_at": "timestamptz" = ended.map(|ended| ended.ended_at),
            "ok": "boolean" = ended.map(|ended| ended.ok),
            "result": "jsonb" = ended.and_then(|ended| ended.result.as_ref()),
            "error_kind": "text" = ended.and_then(|ended| ended.error_kind.as_ref()),
            "error_message": "text" = ended.and_then(|ended| ended.error_message.as_ref()),
            "duration_ms": "bigint" = ended.map(|ended| ended.duration_ms),
            "ended_sequence": "bigint" = ended.map(|ended| ended.sequence),
        }
    })
}

pub async fn update_starts(connection: &mut PgConnection, changes: &TableChanges) -> sqlx::Result<()> {
    let rows = of_earlier_actions(changes, &changes.begun);
    update_rows!(connection, rows, "actions", |(id, row)| {
        key "action_id": "uuid" = **id,
        set "invoked_at": "timestamptz" = row.invoked_at,
        set "runner": "text" = &row.runner,
        set "executor": "text" = &row.executor,
    }, "actions.invoked_at IS NULL")
}

pub async fn update_ends(connection: &mut PgConnection, changes: &TableChanges) -> sqlx::Result<()> {
    let rows = of_earlier_actions(changes, &changes.ended);
    update_rows!(connection, rows, "actions", |(id, row)| {
        key "action_id": "uuid" = **id,
        set "ended_at": "timestamptz" = row.ended_at,
        set "ok": "boolean" = row.ok,
        set "result": "jsonb" = row.result.as_ref(),
        set "error_kind": "text" = row.error_kind.as_ref(),
        set "error_message": "text" = row.error_message.as_ref(),
        set "duration_ms": "bigint" = row.duration_ms,
        set "ended_sequence": "bigint" = row.sequence,
    }, "actions.ended_at IS NULL")
}

pub async fn update_progress(
    connection: &mut PgConnection,
    rows: &BTreeMap<Uuid, ReportedProgress>,
) -> sqlx::Result<()> {
    update_rows!(connection, rows, "actions", |(id, row)| {
        key "action_id": "uuid" = *id,
        set "progress_at": "timestamptz" = row.at,
        set "fraction": "float8" = row.fraction,
        set "progress_message": "text" = &row.message,
    }, "actions.progress_at IS NULL OR actions.progress_at < new.progress_at")
}

pub async fn mark_cancels(connection: &mut PgConnection, rows: &BTreeMap<Uuid, CancelRequest>) -> sqlx::Result<()> {
    update_rows!(connection, rows, "actions", |(id, row)| {
        key "action_id": "uuid" = *id,
        set "cancel_requested_at": "timestamptz" = row.at,
        set "cancel_requested_by": "uuid" = row.by,
    }, "actions.cancel_requested_at IS NULL")
}

/// The processes that actions became.
pub async fn link_processes(connection: &mut PgConnection, rows: &BTreeMap<Uuid, ProcessSpawn>) -> sqlx::Result<()> {
    update_rows!(connection, rows, "actions", |(process, row)| {
        key "action_id": "uuid" = row.event.action_id,
        set "process_id": "uuid" = *process,
    }, "actions.process_id IS NULL")
}

/// The first that was given after the action was in doubt. Which that is must not depend on where a batch ends, so it is
/// told from the sequences, and from what this batch has written already.
pub async fn apply_verdicts(connection: &mut PgConnection, rows: &[ActionVerdict]) -> sqlx::Result<()> {
    update_rows_by_first!(connection, rows, "actions", |row| {
        key "action_id": "uuid" = row.action_id,
        "sequence": "bigint" = row.sequence,
        "agent": "text" = &row.agent,
        set "verdict": "text" = &row.verdict,
        set "resolved_by": "text" = &row.user,
        set "resolution_note": "text" = &row.note,
        set "resolution_entered_by": "text" = row.entered_by.as_ref(),
        set "resolved_at": "timestamptz" = row.at,
    }, "actions.agent = new.agent AND actions.error_kind = 'in_doubt' AND actions.ended_sequence < new.sequence
        AND actions.verdict IS NULL")
}

/// Applies late answers to actions in doubt. Earlier verdicts are written first, and later ones do not get here. The
/// end time stays as it was, and with it the place among the messages of the thread.
pub async fn apply_late_answers(
    connection: &mut PgConnection,
    rows: &BTreeMap<Uuid, ActionEnding>,
) -> sqlx::Result<()> {
    update_rows!(connection, rows, "actions", |(id, row)| {
        key "action_id": "uuid" = *id,
        "sequence": "bigint" = row.sequence,
        set "ok": "boolean" = row.ok,
        set "result": "jsonb" = row.result.as_ref(),
        set "error_kind": "text" = row.error_kind.as_ref(),
        set "error_message": "text" = row.error_message.as_ref(),
    }, "actions.error_kind = 'in_doubt' AND actions.ended_sequence < new.sequence")
}
