//! Table `events`.

use sqlx::{PgConnection, query};

use super::column;
use crate::changes::Event;

const INSERT: &str = "
    INSERT INTO events (sequence, position, event_id, ts, owner, agent, thread_id, correlation_id, causation_id, type,
                        source, subject, event)
    SELECT sequence, position, event_id, ts, owner, agent, thread_id, correlation_id, causation_id, type,
           source, subject, event::jsonb
    FROM UNNEST($1::bigint[], $2::int[], $3::uuid[], $4::timestamptz[], $5::text[], $6::text[], $7::text[], $8::uuid[],
                $9::uuid[], $10::text[], $11::text[], $12::text[], $13::text[])
        AS new (sequence, position, event_id, ts, owner, agent, thread_id, correlation_id, causation_id, type,
                source, subject, event)
    ON CONFLICT DO NOTHING";

pub async fn insert(connection: &mut PgConnection, rows: &[Event]) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(INSERT)
        .bind(column(rows, |row| row.sequence))
        .bind(column(rows, |row| row.position))
        .bind(column(rows, |row| row.event_id))
        .bind(column(rows, |row| row.ts))
        .bind(column(rows, |row| &row.owner))
        .bind(column(rows, |row| row.agent.as_ref()))
        .bind(column(rows, |row| row.thread_id.as_ref()))
        .bind(column(rows, |row| row.correlation_id))
        .bind(column(rows, |row| row.causation_id))
        .bind(column(rows, |row| &row.type_name))
        .bind(column(rows, |row| &row.source))
        .bind(column(rows, |row| &row.subject))
        .bind(column(rows, |row| &row.event))
        .execute(connection)
        .await?;
    Ok(())
}
