//! Tables `log`, `events` and `unknown_types`. What they hold is told once: a batch is written behind the position that it
//! begins at, or not at all. So nobody needs to look whether a row is there, which would double the cost of an event.

use std::collections::BTreeMap;

use kairo_read_model::sql_values::SqlKey;
use sqlx::PgConnection;

use crate::changes::{EventEntry, LogEntry, UnknownTypeCount};

pub async fn insert_log(connection: &mut PgConnection, rows: &[LogEntry]) -> sqlx::Result<()> {
    insert_rows!(connection, rows, "log", |row| {
        "sequence": "bigint" = row.sequence,
        "subject": "text" = &row.subject,
        "headers": "text" = &row.headers,
        "payload": "bytea" = row.payload.as_ref(),
        "stored": "timestamptz" = row.stored,
    })
}

pub async fn insert_events(connection: &mut PgConnection, rows: &[EventEntry]) -> sqlx::Result<()> {
    insert_rows!(connection, rows, "events", |row| {
        "sequence": "bigint" = row.sequence,
        "position": "int" = row.position,
        "event_id": "uuid" = row.event_id,
        "ts": "timestamptz" = row.ts,
        "agent": "text" = row.agent.as_ref(),
        "thread_id": "text" = row.thread_id.as_ref(),
        "correlation_id": "uuid" = row.correlation_id,
        "type": "text" = &row.type_name,
    })
}

pub async fn count_unknown_types(
    connection: &mut PgConnection,
    rows: &BTreeMap<SqlKey, UnknownTypeCount>,
) -> sqlx::Result<()> {
    upsert_rows!(connection, rows, "unknown_types", |(name, row)| {
        key "type": "text" = name,
        set "messages": "bigint" = row.messages => "unknown_types.messages + excluded.messages",
        set "first_sequence": "bigint" = row.first => "least(unknown_types.first_sequence, excluded.first_sequence)",
        set "last_sequence": "bigint" = row.last => "greatest(unknown_types.last_sequence, excluded.last_sequence)",
    })
}
