//! Tables `chains` and `chain_steps`. A step ends by whatever is first in the log, and events of one batch are written
//! kind by kind, so the first is told from the sequences.

use std::collections::BTreeMap;

use sqlx::PgConnection;
use uuid::Uuid;

use super::write_rows;
use crate::changes::{Chain, ChainEnd, Step, StepAsked, StepBegun, StepEnd};

pub async fn start(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Chain>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        INSERT INTO chains (chain_id, sequence, position, agent, thread_id, correlation_id, origin, task_id, plan, started_at)
        SELECT * FROM UNNEST($1::uuid[], $2::bigint[], $3::int[], $4::text[], $5::text[], $6::uuid[], $7::text[], $8::uuid[],
                             $9::text[], $10::timestamptz[])
        ON CONFLICT DO NOTHING",
        |(id, row)| (
            *id,
            row.sequence,
            row.position,
            &row.agent,
            row.thread_id.as_ref(),
            row.correlation_id,
            &row.origin,
            row.task_id,
            &row.plan,
            row.started_at,
        )
    )
}

pub async fn add_steps(connection: &mut PgConnection, rows: &BTreeMap<(Uuid, i32), Step>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        INSERT INTO chain_steps (chain_id, step, group_no, event, params, decide)
        SELECT chain_id, step, group_no, event, params::jsonb, decide
        FROM UNNEST($1::uuid[], $2::int[], $3::int[], $4::text[], $5::text[], $6::text[])
            AS new (chain_id, step, group_no, event, params, decide)
        ON CONFLICT DO NOTHING",
        |((chain, step), row)| (*chain, *step, row.group, &row.event, &row.params, row.decide.as_ref(),)
    )
}

pub async fn ask(connection: &mut PgConnection, rows: &BTreeMap<(Uuid, i32), StepAsked>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        UPDATE chain_steps SET approval_id = new.approval_id, asked_at = new.asked_at, filled = new.filled::jsonb
        FROM UNNEST($1::uuid[], $2::int[], $3::uuid[], $4::timestamptz[], $5::text[])
            AS new (chain_id, step, approval_id, asked_at, filled)
        WHERE chain_steps.chain_id = new.chain_id AND chain_steps.step = new.step AND chain_steps.approval_id IS NULL",
        |((chain, step), row)| (*chain, *step, row.approval_id, row.at, &row.filled,)
    )
}

pub async fn begin(connection: &mut PgConnection, rows: &BTreeMap<(Uuid, i32), StepBegun>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        UPDATE chain_steps
        SET action_id = new.action_id, begun_at = new.begun_at, begun_sequence = new.sequence, filled = new.filled::jsonb
        FROM UNNEST($1::uuid[], $2::int[], $3::uuid[], $4::timestamptz[], $5::bigint[], $6::text[])
            AS new (chain_id, step, action_id, begun_at, sequence, filled)
        WHERE chain_steps.chain_id = new.chain_id AND chain_steps.step = new.step AND chain_steps.action_id IS NULL",
        |((chain, step), row)| (
            *chain,
            *step,
            row.action_id,
            row.at,
            row.sequence,
            &row.filled,
        )
    )
}

/// The ends of the tools that steps called.
pub async fn end_actions(connection: &mut PgConnection, rows: &BTreeMap<Uuid, StepEnd>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        UPDATE chain_steps
        SET outcome = new.outcome, result = new.result, reason = new.reason, ended_at = new.ended_at,
            ended_sequence = new.sequence
        FROM UNNEST($1::uuid[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::bigint[])
            AS new (action_id, outcome, result, reason, ended_at, sequence)
        WHERE chain_steps.action_id = new.action_id
            AND (chain_steps.ended_sequence IS NULL OR chain_steps.ended_sequence > new.sequence)",
        |(action, row)| (*action, row.outcome, row.result.as_ref(), row.reason.as_ref(), row.at, row.sequence,)
    )
}

pub async fn end_steps(connection: &mut PgConnection, rows: &BTreeMap<(Uuid, i32), StepEnd>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        UPDATE chain_steps
        SET outcome = new.outcome, result = new.result, reason = new.reason, ended_at = new.ended_at,
            ended_sequence = new.sequence, filled = coalesce(chain_steps.filled, new.filled::jsonb)
        FROM UNNEST($1::uuid[], $2::int[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::bigint[], $8::text[])
            AS new (chain_id, step, outcome, result, reason, ended_at, sequence, filled)
        WHERE chain_steps.chain_id = new.chain_id AND chain_steps.step = new.step
            AND (chain_steps.ended_sequence IS NULL OR chain_steps.ended_sequence > new.sequence)",
        |((chain, step), row)| (
            *chain,
            *step,
            row.outcome,
            row.result.as_ref(),
            row.reason.as_ref(),
            row.at,
            row.sequence,
            row.filled.as_ref(),
        )
    )
}

pub async fn end(connection: &mut PgConnection, rows: &BTreeMap<Uuid, ChainEnd>) -> sqlx::Result<()> {
    write_rows!(
        &mut *connection,
        rows,
        "
        UPDATE chains SET outcome = new.outcome, reason = new.reason, ended_at = new.ended_at
        FROM UNNEST($1::uuid[], $2::text[], $3::text[], $4::timestamptz[]) AS new (chain_id, outcome, reason, ended_at)
        WHERE chains.chain_id = new.chain_id AND chains.ended_at IS NULL",
        |(id, row)| (*id, &row.outcome, row.reason.as_ref(), row.at,)
    )?;
    // A step whose tool was called goes on to its result.
    write_rows!(
        connection,
        rows,
        "
        UPDATE chain_steps
        SET outcome = 'skipped', result = NULL, reason = 'the chain ended: ' || new.outcome, ended_at = new.ended_at,
            ended_sequence = new.sequence
        FROM UNNEST($1::uuid[], $2::text[], $3::timestamptz[], $4::bigint[])
            AS new (chain_id, outcome, ended_at, sequence)
        WHERE chain_steps.chain_id = new.chain_id
            AND (chain_steps.ended_sequence IS NULL OR chain_steps.ended_sequence > new.sequence)
            AND (chain_steps.begun_sequence IS NULL OR chain_steps.begun_sequence > new.sequence)",
        |(id, row)| (*id, &row.outcome, row.at, row.sequence,)
    )
}
