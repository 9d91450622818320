//! Tables `approvals` and `offers`.

use std::collections::BTreeMap;

use sqlx::{PgConnection, query};
use uuid::Uuid;

use super::column;
use crate::changes::{Approval, Choice, Offer, Settled, Verdict, Withdrawal};

const REQUEST: &str = "
    INSERT INTO approvals (action_id, sequence, position, agent, user_id, thread_id, correlation_id, tool, arguments,
                           chain_id, step, requested_at)
    SELECT action_id, sequence, position, agent, user_id, thread_id, correlation_id, tool, arguments::jsonb, chain_id,
           step, requested_at
    FROM UNNEST($1::uuid[], $2::bigint[], $3::int[], $4::text[], $5::text[], $6::text[], $7::uuid[], $8::text[],
                $9::text[], $10::uuid[], $11::int[], $12::timestamptz[])
        AS new (action_id, sequence, position, agent, user_id, thread_id, correlation_id, tool, arguments, chain_id,
                step, requested_at)
    ON CONFLICT DO NOTHING";

/// The first that was given after it was asked for, wherever a batch ends.
const DECIDE: &str = "
    UPDATE approvals
    SET verdict = first.verdict, decided_by = first.user_id, note = first.note, decided_at = first.ts,
        decided_sequence = first.sequence
    FROM (
        SELECT DISTINCT ON (new.action_id) new.*
        FROM UNNEST($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[])
            AS new (action_id, sequence, agent, verdict, user_id, note, ts)
        JOIN approvals ON approvals.action_id = new.action_id AND approvals.agent = new.agent
            AND approvals.sequence < new.sequence
        ORDER BY new.action_id, new.sequence
    ) AS first
    WHERE approvals.action_id = first.action_id AND approvals.verdict IS NULL";

/// The first end counts, here too.
const WITHDRAW: &str = "
    UPDATE approvals SET withdrawn_sequence = first.sequence
    FROM (
        SELECT approvals.action_id, min(new.sequence) AS sequence
        FROM UNNEST($1::uuid[], $2::int[], $3::bigint[]) AS new (chain_id, step, sequence)
        JOIN approvals ON approvals.chain_id = new.chain_id AND (new.step IS NULL OR new.step = approvals.step)
            AND approvals.sequence <= new.sequence
        GROUP BY approvals.action_id
    ) AS first
    WHERE approvals.action_id = first.action_id AND approvals.withdrawn_sequence IS NULL";

const OFFER: &str = "
    INSERT INTO offers (offer_id, sequence, position, agent, user_id, correlation_id, message_id, action, thread_id,
                        current_thread_id, reason, summary, offered_at)
    SELECT * FROM UNNEST($1::uuid[], $2::bigint[], $3::int[], $4::text[], $5::text[], $6::uuid[], $7::text[], $8::text[],
                         $9::text[], $10::text[], $11::text[], $12::text[], $13::timestamptz[])
    ON CONFLICT DO NOTHING";

const CHOOSE: &str = "
    UPDATE offers SET choice = first.option, chosen_by = first.user_id, chosen_at = first.ts
    FROM (
        SELECT DISTINCT ON (new.offer_id) new.*
        FROM UNNEST($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::timestamptz[])
            AS new (offer_id, sequence, agent, user_id, option, ts)
        JOIN offers ON offers.offer_id = new.offer_id AND offers.agent = new.agent AND offers.sequence < new.sequence
        ORDER BY new.offer_id, new.sequence
    ) AS first
    WHERE offers.offer_id = first.offer_id AND offers.choice IS NULL";

const SETTLE: &str = "
    UPDATE offers SET settled_at = new.settled_at
    FROM UNNEST($1::uuid[], $2::timestamptz[], $3::bigint[]) AS new (correlation_id, settled_at, sequence)
    WHERE offers.correlation_id = new.correlation_id AND offers.sequence <= new.sequence AND offers.settled_at IS NULL";

pub async fn request(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Approval>) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(REQUEST)
        .bind(column(rows, |(id, _)| *id))
        .bind(column(rows, |(_, row)| row.sequence))
        .bind(column(rows, |(_, row)| row.position))
        .bind(column(rows, |(_, row)| &row.agent))
        .bind(column(rows, |(_, row)| &row.user))
        .bind(column(rows, |(_, row)| row.thread_id.as_ref()))
        .bind(column(rows, |(_, row)| row.correlation_id))
        .bind(column(rows, |(_, row)| &row.tool))
        .bind(column(rows, |(_, row)| &row.arguments))
        .bind(column(rows, |(_, row)| row.chain_id))
        .bind(column(rows, |(_, row)| row.step))
        .bind(column(rows, |(_, row)| row.requested_at))
        .execute(connection)
        .await?;
    Ok(())
}

pub async fn decide(connection: &mut PgConnection, rows: &[Verdict]) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(DECIDE)
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

pub async fn withdraw(connection: &mut PgConnection, rows: &[Withdrawal]) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(WITHDRAW)
        .bind(column(rows, |row| row.chain_id))
        .bind(column(rows, |row| row.step))
        .bind(column(rows, |row| row.sequence))
        .execute(connection)
        .await?;
    Ok(())
}

pub async fn offer(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Offer>) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(OFFER)
        .bind(column(rows, |(id, _)| *id))
        .bind(column(rows, |(_, row)| row.sequence))
        .bind(column(rows, |(_, row)| row.position))
        .bind(column(rows, |(_, row)| &row.agent))
        .bind(column(rows, |(_, row)| &row.user))
        .bind(column(rows, |(_, row)| row.correlation_id))
        .bind(column(rows, |(_, row)| row.message_id.as_ref()))
        .bind(column(rows, |(_, row)| &row.action))
        .bind(column(rows, |(_, row)| row.thread_id.as_ref()))
        .bind(column(rows, |(_, row)| row.current_thread_id.as_ref()))
        .bind(column(rows, |(_, row)| &row.reason))
        .bind(column(rows, |(_, row)| &row.summary))
        .bind(column(rows, |(_, row)| row.offered_at))
        .execute(connection)
        .await?;
    Ok(())
}

pub async fn choose(connection: &mut PgConnection, rows: &[Choice]) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(CHOOSE)
        .bind(column(rows, |row| row.offer_id))
        .bind(column(rows, |row| row.sequence))
        .bind(column(rows, |row| &row.agent))
        .bind(column(rows, |row| &row.user))
        .bind(column(rows, |row| &row.option))
        .bind(column(rows, |row| row.at))
        .execute(connection)
        .await?;
    Ok(())
}

pub async fn settle(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Settled>) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(SETTLE)
        .bind(column(rows, |(turn, _)| *turn))
        .bind(column(rows, |(_, row)| row.at))
        .bind(column(rows, |(_, row)| row.sequence))
        .execute(connection)
        .await?;
    Ok(())
}
