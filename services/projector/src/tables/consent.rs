//! Tables `approvals` and `offers`.

use std::collections::BTreeMap;

use sqlx::PgConnection;
use uuid::Uuid;

use crate::changes::{
    ActionVerdict, ApprovalExpiry, ApprovalRequest, ApprovalWithdrawal, OfferChoice, OfferCreation, OfferSettlement,
};

pub async fn insert_approvals(
    connection: &mut PgConnection,
    rows: &BTreeMap<Uuid, ApprovalRequest>,
) -> sqlx::Result<()> {
    insert_rows!(connection, rows, "approvals", |(id, row)| {
        "action_id": "uuid" = *id,
        "sequence": "bigint" = row.sequence,
        "position": "int" = row.position,
        "agent": "text" = &row.agent,
        "user_id": "text" = &row.user,
        "thread_id": "text" = row.thread_id.as_ref(),
        "correlation_id": "uuid" = row.correlation_id,
        "tool": "text" = &row.tool,
        "arguments": "jsonb" = &row.arguments,
        "chain_id": "uuid" = row.chain_id,
        "step": "int" = row.step,
        "requested_at": "timestamptz" = row.requested_at,
        "outside": "jsonb" = &row.outside,
        "expires_at": "timestamptz" = row.expires_at,
    }, "ON CONFLICT DO NOTHING")
}

/// The first of the user who was asked, given after that, wherever a batch ends: the one that the agent goes by. It refuses
/// those of others.
pub async fn apply_verdicts(connection: &mut PgConnection, rows: &[ActionVerdict]) -> sqlx::Result<()> {
    update_rows_by_first!(connection, rows, "approvals", |row| {
        key "action_id": "uuid" = row.action_id,
        "sequence": "bigint" = row.sequence,
        "agent": "text" = &row.agent,
        set "verdict": "text" = &row.verdict,
        set "decided_by": "text" = &row.user,
        set "note": "text" = &row.note,
        set "entered_by": "text" = row.entered_by.as_ref(),
        set "decided_at": "timestamptz" = row.at,
        set "decided_sequence": "bigint" = row.sequence,
        set "changed_arguments": "jsonb" = row.changed_arguments.as_ref(),
    }, "approvals.agent = new.agent AND approvals.user_id = new.decided_by AND approvals.sequence < new.sequence
        AND approvals.verdict IS NULL")
}

/// Records when requests for consent expired. A due time may belong to something else, which matches no row, or to a
/// request that was answered before; the status follows whichever came first in the log.
pub async fn expire_approvals(connection: &mut PgConnection, rows: &[ApprovalExpiry]) -> sqlx::Result<()> {
    update_rows_by_first!(connection, rows, "approvals", |row| {
        key "action_id": "uuid" = row.action_id,
        "sequence": "bigint" = row.sequence,
        set "expired_sequence": "bigint" = row.sequence,
    }, "approvals.sequence < new.sequence AND approvals.expired_sequence IS NULL")
}

/// The first end counts, here too. One end withdraws all approvals of its chain, so it is not found by a key of theirs.
pub async fn withdraw_approvals(connection: &mut PgConnection, rows: &[ApprovalWithdrawal]) -> sqlx::Result<()> {
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

pub async fn insert_offers(connection: &mut PgConnection, rows: &BTreeMap<Uuid, OfferCreation>) -> sqlx::Result<()> {
    insert_rows!(connection, rows, "offers", |(id, row)| {
        "offer_id": "uuid" = *id,
        "sequence": "bigint" = row.sequence,
        "position": "int" = row.position,
        "agent": "text" = &row.agent,
        "user_id": "text" = &row.user,
        "correlation_id": "uuid" = row.correlation_id,
        "thread_id": "text" = row.thread_id.as_ref(),
        "definition": "jsonb" = &row.definition,
        "offered_at": "timestamptz" = row.offered_at,
    }, "ON CONFLICT DO NOTHING")
}

/// As with verdicts: the first of the user who was asked.
pub async fn apply_choices(connection: &mut PgConnection, rows: &[OfferChoice]) -> sqlx::Result<()> {
    update_rows_by_first!(connection, rows, "offers", |row| {
        key "offer_id": "uuid" = row.offer_id,
        "sequence": "bigint" = row.sequence,
        "agent": "text" = &row.agent,
        set "choice": "text" = &row.option,
        set "chosen_by": "text" = &row.user,
        set "chosen_at": "timestamptz" = row.at,
    }, "offers.agent = new.agent AND offers.user_id = new.chosen_by AND offers.sequence < new.sequence AND offers.choice IS NULL")
}

pub async fn settle_offers(connection: &mut PgConnection, rows: &BTreeMap<Uuid, OfferSettlement>) -> sqlx::Result<()> {
    update_rows!(connection, rows, "offers", |(turn, row)| {
        key "correlation_id": "uuid" = *turn,
        "sequence": "bigint" = row.sequence,
        set "settled_at": "timestamptz" = row.at,
    }, "offers.sequence <= new.sequence AND offers.settled_at IS NULL")
}
