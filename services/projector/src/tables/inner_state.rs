//! Tables `inner_state` and `inner_state_changes`.

use std::collections::BTreeMap;

use kairo_read_model::sql_values::SqlKey;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::changes::InnerStateWrite;

pub async fn insert_changes(connection: &mut PgConnection, rows: &BTreeMap<Uuid, InnerStateWrite>) -> sqlx::Result<()> {
    insert_rows!(connection, rows, "inner_state_changes", |(id, row)| {
        "event_id": "uuid" = *id,
        "sequence": "bigint" = row.sequence,
        "position": "int" = row.position,
        "agent": "text" = &row.agent,
        "user_id": "text" = &row.user,
        "key": "text" = &row.key,
        "content": "text" = &row.content,
        "deleted": "boolean" = row.deleted,
        "updated_at": "timestamptz" = row.updated_at,
        "thread_id": "text" = row.thread_id.as_ref(),
        "definition": "jsonb" = &row.definition,
    }, "ON CONFLICT DO NOTHING")
}

pub async fn upsert_entries(
    connection: &mut PgConnection,
    rows: &BTreeMap<(SqlKey, SqlKey, SqlKey), InnerStateWrite>,
) -> sqlx::Result<()> {
    upsert_rows!(connection, rows, "inner_state", |((agent, user, state_key), row)| {
        key "agent": "text" = agent,
        key "user_id": "text" = user,
        key "key": "text" = state_key,
        set "event_id": "uuid" = row.event_id,
        set "sequence": "bigint" = row.sequence,
        set "position": "int" = row.position,
        set "content": "text" = &row.content,
        set "deleted": "boolean" = row.deleted,
        set "updated_at": "timestamptz" = row.updated_at,
        set "thread_id": "text" = row.thread_id.as_ref(),
        set "definition": "jsonb" = &row.definition,
    }, "inner_state.event_id <> excluded.event_id
        AND (inner_state.sequence, inner_state.position) < (excluded.sequence, excluded.position)")
}
