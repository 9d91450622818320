//! Tables `approvals` and `offers`.

use std::collections::BTreeMap;

use sqlx::PgConnection;
use uuid::Uuid;

use super::write_rows;
use crate::changes::{Approval, Choice, Offer, Settled, Verdict, Withdrawal};

pub async fn request(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Approval>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        INSERT INTO approvals (action_id, sequence, position, agent, user_id, thread_id, correlation_id, tool, arguments,
                               chain_id, step, requested_at)
        SELECT action_id, sequence, position, agent, user_id, thread_id, correlation_id, tool, arguments::jsonb, chain_id,
               step, requested_at
        FROM UNNEST($1::uuid[], $2::bigint[], $3::int[], $4::text[], $5::text[], $6::text[], $7::uuid[], $8::text[],
                    $9::text[], $10::uuid[], $11::int[], $12::timestamptz[])
            AS new (action_id, sequence, position, agent, user_id, thread_id, correlation_id, tool, arguments, chain_id,
                    step, requested_at)
        ON CONFLICT DO NOTHING",
        |(id, row)| (
            *id,
            row.sequence,
            row.position,
            &row.agent,
            &row.user,
            row.thread_id.as_ref(),
            row.correlation_id,
            &row.tool,
            &row.arguments,
            row.chain_id,
            row.step,
            row.requested_at,
        )
    )
}

/// The first that was given after it was asked for, wherever a batch ends.
pub async fn decide(connection: &mut PgConnection, rows: &[Verdict]) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        UPDATE approvals
        SET verdict = first.verdict, decided_by = first.user_id, note = first.note, entered_by = first.entered_by,
            decided_at = first.ts, decided_sequence = first.sequence
        FROM (
            SELECT DISTINCT ON (new.action_id) new.*
            FROM UNNEST($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
                        $8::timestamptz[])
                AS new (action_id, sequence, agent, verdict, user_id, note, entered_by, ts)
            JOIN approvals ON approvals.action_id = new.action_id AND approvals.agent = new.agent
                AND approvals.sequence < new.sequence
            ORDER BY new.action_id, new.sequence
        ) AS first
        WHERE approvals.action_id = first.action_id AND approvals.verdict IS NULL",
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

/// The first end counts, here too.
pub async fn withdraw(connection: &mut PgConnection, rows: &[Withdrawal]) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        UPDATE approvals SET withdrawn_sequence = first.sequence
        FROM (
            SELECT approvals.action_id, min(new.sequence) AS sequence
            FROM UNNEST($1::uuid[], $2::int[], $3::bigint[]) AS new (chain_id, step, sequence)
            JOIN approvals ON approvals.chain_id = new.chain_id AND (new.step IS NULL OR new.step = approvals.step)
                AND approvals.sequence <= new.sequence
            GROUP BY approvals.action_id
        ) AS first
        WHERE approvals.action_id = first.action_id AND approvals.withdrawn_sequence IS NULL",
        |row| (row.chain_id, row.step, row.sequence,)
    )
}

pub async fn offer(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Offer>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        INSERT INTO offers (offer_id, sequence, position, agent, user_id, correlation_id, message_id, action, thread_id,
                            current_thread_id, reason, summary, offered_at)
        SELECT * FROM UNNEST($1::uuid[], $2::bigint[], $3::int[], $4::text[], $5::text[], $6::uuid[], $7::text[], $8::text[],
                             $9::text[], $10::text[], $11::text[], $12::text[], $13::timestamptz[])
        ON CONFLICT DO NOTHING",
        |(id, row)| (
            *id,
            row.sequence,
            row.position,
            &row.agent,
            &row.user,
            row.correlation_id,
            row.message_id.as_ref(),
            &row.action,
            row.thread_id.as_ref(),
            row.current_thread_id.as_ref(),
            &row.reason,
            &row.summary,
            row.offered_at,
        )
    )
}

pub async fn choose(connection: &mut PgConnection, rows: &[Choice]) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        UPDATE offers SET choice = first.option, chosen_by = first.user_id, chosen_at = first.ts
        FROM (
            SELECT DISTINCT ON (new.offer_id) new.*
            FROM UNNEST($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::timestamptz[])
                AS new (offer_id, sequence, agent, user_id, option, ts)
            JOIN offers ON offers.offer_id = new.offer_id AND offers.agent = new.agent AND offers.sequence < new.sequence
            ORDER BY new.offer_id, new.sequence
        ) AS first
        WHERE offers.offer_id = first.offer_id AND offers.choice IS NULL",
        |row| (
            row.offer_id,
            row.sequence,
            &row.agent,
            &row.user,
            &row.option,
            row.at,
        )
    )
}

pub async fn settle(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Settled>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        UPDATE offers SET settled_at = new.settled_at
        FROM UNNEST($1::uuid[], $2::timestamptz[], $3::bigint[]) AS new (correlation_id, settled_at, sequence)
        WHERE offers.correlation_id = new.correlation_id AND offers.sequence <= new.sequence AND offers.settled_at IS NULL",
        |(turn, row)| (
            *turn,
            row.at,
            row.sequence,
        )
    )
}
