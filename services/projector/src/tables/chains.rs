//! Tables `chains` and `chain_steps`. A step ends by whatever is first in the log, and events of one batch are written
//! kind by kind, so the first is told from the sequences.

use std::collections::BTreeMap;

use sqlx::{PgConnection, query};
use uuid::Uuid;

use super::column;
use crate::changes::{Chain, ChainEnd, Step, StepAsked, StepBegun, StepEnd};

const START: &str = "
    INSERT INTO chains (chain_id, sequence, position, agent, thread_id, correlation_id, origin, task_id, plan, started_at)
    SELECT * FROM UNNEST($1::uuid[], $2::bigint[], $3::int[], $4::text[], $5::text[], $6::uuid[], $7::text[], $8::uuid[],
                         $9::text[], $10::timestamptz[])
    ON CONFLICT DO NOTHING";

const STEPS: &str = "
    INSERT INTO chain_steps (chain_id, step, group_no, event, params, decide)
    SELECT chain_id, step, group_no, event, params::jsonb, decide
    FROM UNNEST($1::uuid[], $2::int[], $3::int[], $4::text[], $5::text[], $6::text[])
        AS new (chain_id, step, group_no, event, params, decide)
    ON CONFLICT DO NOTHING";

const ASK: &str = "
    UPDATE chain_steps SET approval_id = new.approval_id, asked_at = new.asked_at
    FROM UNNEST($1::uuid[], $2::int[], $3::uuid[], $4::timestamptz[]) AS new (chain_id, step, approval_id, asked_at)
    WHERE chain_steps.chain_id = new.chain_id AND chain_steps.step = new.step AND chain_steps.approval_id IS NULL";

const BEGIN: &str = "
    UPDATE chain_steps SET action_id = new.action_id, begun_at = new.begun_at, begun_sequence = new.sequence
    FROM UNNEST($1::uuid[], $2::int[], $3::uuid[], $4::timestamptz[], $5::bigint[])
        AS new (chain_id, step, action_id, begun_at, sequence)
    WHERE chain_steps.chain_id = new.chain_id AND chain_steps.step = new.step AND chain_steps.action_id IS NULL";

const END_OF_ACTION: &str = "
    UPDATE chain_steps
    SET outcome = new.outcome, result = new.result, reason = new.reason, ended_at = new.ended_at,
        ended_sequence = new.sequence
    FROM UNNEST($1::uuid[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::bigint[])
        AS new (action_id, outcome, result, reason, ended_at, sequence)
    WHERE chain_steps.action_id = new.action_id
        AND (chain_steps.ended_sequence IS NULL OR chain_steps.ended_sequence > new.sequence)";

const END_STEP: &str = "
    UPDATE chain_steps
    SET outcome = new.outcome, result = new.result, reason = new.reason, ended_at = new.ended_at,
        ended_sequence = new.sequence
    FROM UNNEST($1::uuid[], $2::int[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::bigint[])
        AS new (chain_id, step, outcome, result, reason, ended_at, sequence)
    WHERE chain_steps.chain_id = new.chain_id AND chain_steps.step = new.step
        AND (chain_steps.ended_sequence IS NULL OR chain_steps.ended_sequence > new.sequence)";

const END: &str = "
    UPDATE chains SET outcome = new.outcome, reason = new.reason, ended_at = new.ended_at
    FROM UNNEST($1::uuid[], $2::text[], $3::text[], $4::timestamptz[]) AS new (chain_id, outcome, reason, ended_at)
    WHERE chains.chain_id = new.chain_id AND chains.ended_at IS NULL";

/// A step whose tool was called goes on to its result.
const SKIP_THE_REST: &str = "
    UPDATE chain_steps
    SET outcome = 'skipped', result = NULL, reason = 'the chain ended: ' || new.outcome, ended_at = new.ended_at,
        ended_sequence = new.sequence
    FROM UNNEST($1::uuid[], $2::text[], $3::timestamptz[], $4::bigint[])
        AS new (chain_id, outcome, ended_at, sequence)
    WHERE chain_steps.chain_id = new.chain_id
        AND (chain_steps.ended_sequence IS NULL OR chain_steps.ended_sequence > new.sequence)
        AND (chain_steps.begun_sequence IS NULL OR chain_steps.begun_sequence > new.sequence)";

pub async fn start(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Chain>) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(START)
        .bind(column(rows, |(id, _)| *id))
        .bind(column(rows, |(_, row)| row.sequence))
        .bind(column(rows, |(_, row)| row.position))
        .bind(column(rows, |(_, row)| &row.agent))
        .bind(column(rows, |(_, row)| row.thread_id.as_ref()))
        .bind(column(rows, |(_, row)| row.correlation_id))
        .bind(column(rows, |(_, row)| &row.origin))
        .bind(column(rows, |(_, row)| row.task_id))
        .bind(column(rows, |(_, row)| &row.plan))
        .bind(column(rows, |(_, row)| row.started_at))
        .execute(connection)
        .await?;
    Ok(())
}

pub async fn add_steps(connection: &mut PgConnection, rows: &BTreeMap<(Uuid, i32), Step>) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(STEPS)
        .bind(column(rows, |((chain, _), _)| *chain))
        .bind(column(rows, |((_, step), _)| *step))
        .bind(column(rows, |(_, row)| row.group))
        .bind(column(rows, |(_, row)| &row.event))
        .bind(column(rows, |(_, row)| &row.params))
        .bind(column(rows, |(_, row)| row.decide.as_ref()))
        .execute(connection)
        .await?;
    Ok(())
}

pub async fn ask(connection: &mut PgConnection, rows: &BTreeMap<(Uuid, i32), StepAsked>) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(ASK)
        .bind(column(rows, |((chain, _), _)| *chain))
        .bind(column(rows, |((_, step), _)| *step))
        .bind(column(rows, |(_, row)| row.approval_id))
        .bind(column(rows, |(_, row)| row.at))
        .execute(connection)
        .await?;
    Ok(())
}

pub async fn begin(connection: &mut PgConnection, rows: &BTreeMap<(Uuid, i32), StepBegun>) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(BEGIN)
        .bind(column(rows, |((chain, _), _)| *chain))
        .bind(column(rows, |((_, step), _)| *step))
        .bind(column(rows, |(_, row)| row.action_id))
        .bind(column(rows, |(_, row)| row.at))
        .bind(column(rows, |(_, row)| row.sequence))
        .execute(connection)
        .await?;
    Ok(())
}

/// The ends of the tools that steps called.
pub async fn end_actions(connection: &mut PgConnection, rows: &BTreeMap<Uuid, StepEnd>) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(END_OF_ACTION)
        .bind(column(rows, |(action, _)| *action))
        .bind(column(rows, |(_, row)| row.outcome))
        .bind(column(rows, |(_, row)| row.result.as_ref()))
        .bind(column(rows, |(_, row)| row.reason.as_ref()))
        .bind(column(rows, |(_, row)| row.at))
        .bind(column(rows, |(_, row)| row.sequence))
        .execute(connection)
        .await?;
    Ok(())
}

pub async fn end_steps(connection: &mut PgConnection, rows: &BTreeMap<(Uuid, i32), StepEnd>) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(END_STEP)
        .bind(column(rows, |((chain, _), _)| *chain))
        .bind(column(rows, |((_, step), _)| *step))
        .bind(column(rows, |(_, row)| row.outcome))
        .bind(column(rows, |(_, row)| row.result.as_ref()))
        .bind(column(rows, |(_, row)| row.reason.as_ref()))
        .bind(column(rows, |(_, row)| row.at))
        .bind(column(rows, |(_, row)| row.sequence))
        .execute(connection)
        .await?;
    Ok(())
}

pub async fn end(connection: &mut PgConnection, rows: &BTreeMap<Uuid, ChainEnd>) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(END)
        .bind(column(rows, |(id, _)| *id))
        .bind(column(rows, |(_, row)| &row.outcome))
        .bind(column(rows, |(_, row)| row.reason.as_ref()))
        .bind(column(rows, |(_, row)| row.at))
        .execute(&mut *connection)
        .await?;
    query(SKIP_THE_REST)
        .bind(column(rows, |(id, _)| *id))
        .bind(column(rows, |(_, row)| &row.outcome))
        .bind(column(rows, |(_, row)| row.at))
        .bind(column(rows, |(_, row)| row.sequence))
        .execute(connection)
        .await?;
    Ok(())
}
