//! Tables `log`, `events` and `unknown_types`. What they hold is told once: a batch is written behind the position that it
//! begins at, or not at all. So nobody needs to look whether a row is there, which would double the cost of an event.

use std::collections::BTreeMap;

use kairo_read_model::stored::Key;
use sqlx::PgConnection;

use super::write_rows;
use crate::changes::{Event, Logged, Unknown};

pub async fn keep(connection: &mut PgConnection, rows: &[Logged]) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        INSERT INTO log (sequence, subject, headers, payload, stored)
        SELECT * FROM UNNEST($1::bigint[], $2::text[], $3::text[], $4::bytea[], $5::timestamptz[])",
        |row| (row.sequence, &row.subject, &row.headers, row.payload.as_ref(), row.stored,)
    )
}

pub async fn insert(connection: &mut PgConnection, rows: &[Event]) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        INSERT INTO events (sequence, position, event_id, ts, agent, thread_id, correlation_id, type)
        SELECT * FROM UNNEST($1::bigint[], $2::int[], $3::uuid[], $4::timestamptz[], $5::text[], $6::text[], $7::uuid[],
                             $8::text[])",
        |row| (
            row.sequence,
            row.position,
            row.event_id,
            row.ts,
            row.agent.as_ref(),
            row.thread_id.as_ref(),
            row.correlation_id,
            &row.type_name,
        )
    )
}

pub async fn count(connection: &mut PgConnection, rows: &BTreeMap<Key, Unknown>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        INSERT INTO unknown_types (type, messages, first_sequence, last_sequence)
        SELECT * FROM UNNEST($1::text[], $2::bigint[], $3::bigint[], $4::bigint[])
        ON CONFLICT (type) DO UPDATE
        SET messages = unknown_types.messages + excluded.messages,
            first_sequence = least(unknown_types.first_sequence, excluded.first_sequence),
            last_sequence = greatest(unknown_types.last_sequence, excluded.last_sequence)",
        |(name, row)| (name, row.messages, row.first, row.last,)
    )
}
