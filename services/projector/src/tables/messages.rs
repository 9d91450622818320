//! Table `messages`.
//!
//! A user's message, its delivery and the thread it was put into are told by different owners, which are read in any
//! order and at once. So each fills in its own columns, of several tellings the first in the log counts, and all of it is
//! one statement, whose rows are in order: two that write to the same rows wait for each other only in one direction.

use std::collections::BTreeMap;

use kairo_read_model::sql_values::{SqlJson, SqlKey};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::changes::{ConversationMessage, MessageDelivery, TableChanges, ThreadPlacement};

/// The changes that affect one message.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct MessageChanges<'c> {
    message: Option<&'c ConversationMessage>,
    delivery: Option<&'c MessageDelivery>,
    placed: Option<&'c ThreadPlacement>,
}

fn changes_by_message(changes: &TableChanges) -> BTreeMap<Uuid, MessageChanges<'_>> {
    let mut rows: BTreeMap<Uuid, MessageChanges> = BTreeMap::new();
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

/// Writes the rows of messages.
pub async fn upsert_messages(connection: &mut PgConnection, changes: &TableChanges) -> sqlx::Result<()> {
    let rows = changes_by_message(changes);
    upsert_rows!(connection, rows, "messages", |(event, row)| {
        key "event_id": "uuid" = *event,
        if "messages.sequence IS NULL" {
            "sequence": "bigint" = row.message.map(|message| message.sequence),
            "position": "int" = row.message.map_or(0, |message| message.position),
            "ts": "timestamptz" = row.message.map(|message| message.ts),
            "correlation_id": "uuid" = row.message.map(|message| message.correlation_id),
            "role": "text" = row.message.map_or("user", |message| message.role.as_str()),
            "addressed_to": "text" = row.message.and_then(|message| message.agent.as_ref()),
            "user_id": "text" = row.message.and_then(|message| message.user.as_ref()),
            "named_thread": "text" = row.message.and_then(|message| message.thread_id.as_ref()),
            "message_id": "text" = row.message.and_then(|message| message.message_id.as_ref()),
            "text": "text" = row.message.map_or("", |message| message.text.as_str()),
            "parts": "jsonb" = row.message.and_then(|message| message.parts.as_ref()).map_or("[]", SqlJson::as_str),
            "final": "boolean" = row.message.is_some_and(|message| message.last),
            "ending": "text" = row.message.and_then(|message| message.ending.as_ref()).map_or("", SqlKey::as_str),
            "failure": "text" = row.message.and_then(|message| message.failure.as_ref()).map_or("", SqlKey::as_str),
        }
        if "excluded.delivered < coalesce(messages.delivered, 9223372036854775807)" {
            "delivered_to": "text" = row.delivery.map(|delivery| &delivery.agent),
            "delivered_thread": "text" = row.delivery.and_then(|delivery| delivery.thread_id.as_ref()),
            "delivered": "bigint" = row.delivery.map(|delivery| delivery.sequence),
        }
        if "excluded.placed < coalesce(messages.placed, 9223372036854775807)" {
            "placed_thread": "text" = row.placed.map(|placed| &placed.thread),
            "placed": "bigint" = row.placed.map(|placed| placed.sequence),
        }
    })
}
