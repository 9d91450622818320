//! Table `messages`.
//!
//! A user's message, its delivery and the thread it was put into are told by different owners, which are read in any
//! order and at once. So each fills in its own columns, of several tellings the first in the log counts, and all of it is
//! one statement, whose rows are in order: two that write to the same rows wait for each other only in one direction.

use std::collections::BTreeMap;

use sqlx::PgConnection;
use uuid::Uuid;

use super::write_rows;
use crate::changes::{Changes, Delivery, Message, Placed};

/// What is told of one message.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Told<'c> {
    message: Option<&'c Message>,
    delivery: Option<&'c Delivery>,
    placed: Option<&'c Placed>,
}

fn told(changes: &Changes) -> BTreeMap<Uuid, Told<'_>> {
    let mut rows: BTreeMap<Uuid, Told> = BTreeMap::new();
    for (event, message) in &changes.messages {
        rows.entry(*event).or_default().message = Some(message);
    }
    for (event, delivery) in &changes.deliveries {
        rows.entry(*event).or_default().delivery = Some(delivery);
    }
    for (event, placed) in &changes.placed {
        rows.entry(*event).or_default().placed = Some(placed);
    }
    rows
}

/// What is told of messages.
pub async fn tell(connection: &mut PgConnection, changes: &Changes) -> sqlx::Result<()> {
    let rows = told(changes);
    write_rows!(
        connection,
        rows,
        "
        INSERT INTO messages (event_id, sequence, position, ts, correlation_id, role, addressed_to, user_id,
                              named_thread, message_id, text, final, delivered_to, delivered_thread, delivered,
                              placed_thread, placed, parts)
        SELECT * FROM UNNEST($1::uuid[], $2::bigint[], $3::int[], $4::timestamptz[], $5::uuid[], $6::text[], $7::text[],
                             $8::text[], $9::text[], $10::text[], $11::text[], $12::boolean[], $13::text[], $14::text[],
                             $15::bigint[], $16::text[], $17::bigint[], $18::text[]::jsonb[])
        ON CONFLICT (event_id) DO UPDATE
        SET sequence = coalesce(messages.sequence, excluded.sequence),
            position = CASE WHEN messages.sequence IS NULL THEN excluded.position ELSE messages.position END,
            ts = coalesce(messages.ts, excluded.ts),
            correlation_id = coalesce(messages.correlation_id, excluded.correlation_id),
            role = CASE WHEN messages.sequence IS NULL THEN excluded.role ELSE messages.role END,
            addressed_to = coalesce(messages.addressed_to, excluded.addressed_to),
            user_id = coalesce(messages.user_id, excluded.user_id),
            named_thread = coalesce(messages.named_thread, excluded.named_thread),
            message_id = coalesce(messages.message_id, excluded.message_id),
            text = CASE WHEN messages.sequence IS NULL THEN excluded.text ELSE messages.text END,
            parts = CASE WHEN messages.sequence IS NULL THEN excluded.parts ELSE messages.parts END,
            final = CASE WHEN messages.sequence IS NULL THEN excluded.final ELSE messages.final END,
            delivered_to = CASE WHEN excluded.delivered < coalesce(messages.delivered, 9223372036854775807)
                                THEN excluded.delivered_to ELSE messages.delivered_to END,
            delivered_thread = CASE WHEN excluded.delivered < coalesce(messages.delivered, 9223372036854775807)
                                    THEN excluded.delivered_thread ELSE messages.delivered_thread END,
            delivered = least(messages.delivered, excluded.delivered),
            placed_thread = CASE WHEN excluded.placed < coalesce(messages.placed, 9223372036854775807)
                                 THEN excluded.placed_thread ELSE messages.placed_thread END,
            placed = least(messages.placed, excluded.placed)",
        |(event, row)| (
            *event,
            row.message.map(|message| message.sequence),
            row.message.map_or(0, |message| message.position),
            row.message.map(|message| message.ts),
            row.message.map(|message| message.correlation_id),
            row.message.map_or("user", |message| message.role.as_str()),
            row.message.and_then(|message| message.agent.as_ref()),
            row.message.and_then(|message| message.user.as_ref()),
            row.message.and_then(|message| message.thread_id.as_ref()),
            row.message.and_then(|message| message.message_id.as_ref()),
            row.message.map_or("", |message| message.text.as_str()),
            row.message.is_some_and(|message| message.last),
            row.delivery.map(|delivery| &delivery.agent),
            row.delivery.and_then(|delivery| delivery.thread_id.as_ref()),
            row.delivery.map(|delivery| delivery.sequence),
            row.placed.map(|placed| &placed.thread),
            row.placed.map(|placed| placed.sequence),
            row.message.and_then(|message| message.parts.as_ref()).map_or("[]", |parts| parts.as_str()),
        )
    )
}
