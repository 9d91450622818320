//! Tables `memories` and `memory_versions`.

use std::collections::BTreeMap;

use kairo_read_model::sql_values::SqlKey;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::changes::{MemoryContent, MemoryVersion};

pub async fn upsert_memories(
    connection: &mut PgConnection,
    rows: &BTreeMap<(SqlKey, Uuid), MemoryContent>,
) -> sqlx::Result<()> {
    upsert_rows!(connection, rows, "memories", |((agent, memory), row)| {
        key "agent": "text" = agent,
        key "memory_id": "uuid" = *memory,
        set "event_id": "uuid" = row.event_id,
        set "sequence": "bigint" = row.sequence,
        set "position": "int" = row.position,
        set "updated_at": "timestamptz" = row.updated_at,
        set "thread_id": "text" = row.thread_id.as_ref(),
        set "user_id": "text" = row.user.as_ref(),
        set "kind": "text" = &row.kind,
        set "subject": "text" = &row.subject,
        set "content": "text" = &row.content,
        set "day": "date" = row.day.as_deref(),
        set "definition": "jsonb" = &row.definition,
        set "named": "text" = &row.named,
    }, "memories.event_id <> excluded.event_id
        AND (memories.sequence, memories.position) < (excluded.sequence, excluded.position)")
}

pub async fn insert_versions(connection: &mut PgConnection, rows: &BTreeMap<Uuid, MemoryVersion>) -> sqlx::Result<()> {
    insert_rows!(connection, rows, "memory_versions", |(id, row)| {
        "event_id": "uuid" = *id,
        "sequence": "bigint" = row.memory.sequence,
        "position": "int" = row.memory.position,
        "agent": "text" = &row.agent,
        "memory_id": "uuid" = row.memory_id,
        "updated_at": "timestamptz" = row.memory.updated_at,
        "thread_id": "text" = row.memory.thread_id.as_ref(),
        "user_id": "text" = row.memory.user.as_ref(),
        "kind": "text" = &row.memory.kind,
        "subject": "text" = &row.memory.subject,
        "content": "text" = &row.memory.content,
        "day": "date" = row.memory.day.as_deref(),
        "definition": "jsonb" = &row.memory.definition,
    }, "ON CONFLICT DO NOTHING")
}
