//! Table `messages`.

use std::collections::BTreeMap;

use kairo_read_model::stored::Key;
use sqlx::{PgConnection, query};
use uuid::Uuid;

use super::column;
use crate::changes::{Delivery, Message};

/// A conflict may be the event, told again, or the message, sent again: the first stands.
const INSERT: &str = "
    INSERT INTO messages (event_id, sequence, position, ts, correlation_id, role, agent, user_id, thread_id, message_id,
                          text, final)
    SELECT * FROM UNNEST($1::uuid[], $2::bigint[], $3::int[], $4::timestamptz[], $5::uuid[], $6::text[], $7::text[],
                         $8::text[], $9::text[], $10::text[], $11::text[], $12::boolean[])
    ON CONFLICT DO NOTHING";

const DELIVER: &str = "
    UPDATE messages
    SET agent = new.agent, thread_id = coalesce(messages.thread_id, new.thread_id), delivered = new.sequence
    FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[])
        AS new (user_id, message_id, agent, thread_id, sequence)
    WHERE messages.role = 'user' AND messages.user_id = new.user_id AND messages.message_id = new.message_id
        AND messages.delivered IS NULL";

/// A thread that the user named stays.
const PLACE: &str = "
    UPDATE messages SET thread_id = new.thread_id
    FROM UNNEST($1::uuid[], $2::text[]) AS new (event_id, thread_id)
    WHERE messages.event_id = new.event_id AND messages.role = 'user' AND messages.thread_id IS NULL";

pub async fn insert(connection: &mut PgConnection, rows: &[Message]) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(INSERT)
        .bind(column(rows, |row| row.event_id))
        .bind(column(rows, |row| row.sequence))
        .bind(column(rows, |row| row.position))
        .bind(column(rows, |row| row.ts))
        .bind(column(rows, |row| row.correlation_id))
        .bind(column(rows, |row| row.role.as_str()))
        .bind(column(rows, |row| row.agent.as_ref()))
        .bind(column(rows, |row| row.user.as_ref()))
        .bind(column(rows, |row| row.thread_id.as_ref()))
        .bind(column(rows, |row| row.message_id.as_ref()))
        .bind(column(rows, |row| &row.text))
        .bind(column(rows, |row| row.last))
        .execute(connection)
        .await?;
    Ok(())
}

pub async fn deliver(connection: &mut PgConnection, rows: &BTreeMap<(Key, Key), Delivery>) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(DELIVER)
        .bind(column(rows, |((user, _), _)| user))
        .bind(column(rows, |((_, message), _)| message))
        .bind(column(rows, |(_, row)| &row.agent))
        .bind(column(rows, |(_, row)| row.thread_id.as_ref()))
        .bind(column(rows, |(_, row)| row.sequence))
        .execute(connection)
        .await?;
    Ok(())
}

pub async fn place(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Key>) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(PLACE)
        .bind(column(rows, |(message, _)| *message))
        .bind(column(rows, |(_, thread)| thread))
        .execute(connection)
        .await?;
    Ok(())
}
