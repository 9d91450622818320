//! Tables `chains` and `chain_steps`. A step ends by whatever is first in the log, and events of one batch are written
//! kind by kind, so the first is told from the sequences.

use std::collections::BTreeMap;

use sqlx::PgConnection;
use uuid::Uuid;

use crate::changes::{ChainEnd, ChainStart, PlannedStep, StepApprovalRequest, StepEnd, StepStart};

pub async fn insert_chains(connection: &mut PgConnection, rows: &BTreeMap<Uuid, ChainStart>) -> sqlx::Result<()> {
    insert_rows!(connection, rows, "chains", |(id, row)| {
        "chain_id": "uuid" = *id,
        "sequence": "bigint" = row.sequence,
        "position": "int" = row.position,
        "agent": "text" = &row.agent,
        "thread_id": "text" = row.thread_id.as_ref(),
        "correlation_id": "uuid" = row.correlation_id,
        "origin": "text" = &row.origin,
        "task_id": "uuid" = row.task_id,
        "plan": "text" = &row.plan,
        "started_at": "timestamptz" = row.started_at,
    }, "ON CONFLICT DO NOTHING")
}

pub async fn insert_steps(
    connection: &mut PgConnection,
    rows: &BTreeMap<(Uuid, i32), PlannedStep>,
) -> sqlx::Result<()> {
    insert_rows!(connection, rows, "chain_steps", |((chain, step), row)| {
        "chain_id": "uuid" = *chain,
        "step": "int" = *step,
        "group_no": "int" = row.group,
        "event": "text" = &row.event,
        "params": "jsonb" = &row.params,
        "decide": "text" = row.decide.as_ref(),
    }, "ON CONFLICT DO NOTHING")
}

pub async fn record_approval_requests(
    connection: &mut PgConnection,
    rows: &BTreeMap<(Uuid, i32), StepApprovalRequest>,
) -> sqlx::Result<()> {
    update_rows!(connection, rows, "chain_steps", |((chain, step), row)| {
        key "chain_id": "uuid" = *chain,
        key "step": "int" = *step,
        set "approval_id": "uuid" = row.approval_id,
        set "asked_at": "timestamptz" = row.at,
        set "filled": "jsonb" = &row.filled,
    }, "chain_steps.approval_id IS NULL")
}

pub async fn record_starts(connection: &mut PgConnection, rows: &BTreeMap<(Uuid, i32), StepStart>) -> sqlx::Result<()> {
    update_rows!(connection, rows, "chain_steps", |((chain, step), row)| {
        key "chain_id": "uuid" = *chain,
        key "step": "int" = *step,
        set "action_id": "uuid" = row.action_id,
        set "begun_at": "timestamptz" = row.at,
        set "begun_sequence": "bigint" = row.sequence,
        set "filled": "jsonb" = &row.filled,
    }, "chain_steps.action_id IS NULL")
}

/// The ends of the tools that steps called.
pub async fn end_actions(connection: &mut PgConnection, rows: &BTreeMap<Uuid, StepEnd>) -> sqlx::Result<()> {
    update_rows!(connection, rows, "chain_steps", |(action, row)| {
        key "action_id": "uuid" = *action,
        set "outcome": "text" = row.outcome,
        set "result": "text" = row.result.as_ref(),
        set "reason": "text" = row.reason.as_ref(),
        set "ended_at": "timestamptz" = row.at,
        set "ended_sequence": "bigint" = row.sequence,
        set "ended_position": "int" = row.position,
    }, "chain_steps.ended_sequence IS NULL OR chain_steps.ended_sequence > new.ended_sequence")
}

pub async fn end_steps(connection: &mut PgConnection, rows: &BTreeMap<(Uuid, i32), StepEnd>) -> sqlx::Result<()> {
    update_rows!(connection, rows, "chain_steps", |((chain, step), row)| {
        key "chain_id": "uuid" = *chain,
        key "step": "int" = *step,
        set "outcome": "text" = row.outcome,
        set "result": "text" = row.result.as_ref(),
        set "reason": "text" = row.reason.as_ref(),
        set "ended_at": "timestamptz" = row.at,
        set "ended_sequence": "bigint" = row.sequence,
        set "ended_position": "int" = row.position,
        set "filled": "jsonb" = row.filled.as_ref() => "coalesce(chain_steps.filled, new.filled)",
    }, "chain_steps.ended_sequence IS NULL OR chain_steps.ended_sequence > new.ended_sequence")
}

pub async fn end_chains(connection: &mut PgConnection, rows: &BTreeMap<Uuid, ChainEnd>) -> sqlx::Result<()> {
    update_rows!(&mut *connection, rows, "chains", |(id, row)| {
        key "chain_id": "uuid" = *id,
        set "outcome": "text" = &row.outcome,
        set "reason": "text" = row.reason.as_ref(),
        set "ended_at": "timestamptz" = row.at,
    }, "chains.ended_at IS NULL")?;
    // A step whose tool was called goes on to its result.
    update_rows!(connection, rows, "chain_steps", |(id, row)| {
        key "chain_id": "uuid" = *id,
        set "outcome": "text" = "skipped",
        set "result": "text" = None::<&str>,
        set "reason": "text" = format!("the chain ended: {}", row.outcome.as_str()),
        set "ended_at": "timestamptz" = row.at,
        set "ended_sequence": "bigint" = row.sequence,
        set "ended_position": "int" = None::<i32>,
    }, "(chain_steps.ended_sequence IS NULL OR chain_steps.ended_sequence > new.ended_sequence)
        AND (chain_steps.begun_sequence IS NULL OR chain_steps.begun_sequence > new.ended_sequence)")
}
