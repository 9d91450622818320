//! Table `threads`.

use std::collections::BTreeMap;

use kairo_proto::words::ThreadStatus;
use kairo_read_model::sql_values::SqlKey;
use sqlx::PgConnection;

use crate::changes::{ThreadCreation, ThreadDescription, ThreadState, ThreadTouch};

pub async fn insert_threads(
    connection: &mut PgConnection,
    rows: &BTreeMap<(SqlKey, SqlKey), ThreadCreation>,
) -> sqlx::Result<()> {
    insert_rows!(connection, rows, "threads", |((agent, thread), row)| {
        "agent": "text" = agent,
        "thread_id": "text" = thread,
        "user_id": "text" = &row.user,
        "kind": "text" = &row.kind,
        "standing": "text" = ThreadStatus::Active.known_word(),
        "title": "text" = &row.title,
        "summary": "text" = &row.summary,
        "created_at": "timestamptz" = row.created_at,
        "updated_at": "timestamptz" = row.created_at,
        "last_sequence": "bigint" = row.sequence,
    }, "ON CONFLICT DO NOTHING")
}

/// Threads that nobody began are no threads yet, whatever is said in them.
pub async fn touch_threads(
    connection: &mut PgConnection,
    rows: &BTreeMap<(SqlKey, SqlKey), ThreadTouch>,
) -> sqlx::Result<()> {
    update_rows!(connection, rows, "threads", |((agent, thread), row)| {
        key "agent": "text" = agent,
        key "thread_id": "text" = thread,
        set "updated_at": "timestamptz" = row.at,
        set "last_sequence": "bigint" = row.sequence,
    }, "threads.last_sequence < new.last_sequence")
}

pub async fn describe_threads(
    connection: &mut PgConnection,
    rows: &BTreeMap<(SqlKey, SqlKey), ThreadDescription>,
) -> sqlx::Result<()> {
    update_rows!(connection, rows, "threads", |((agent, thread), row)| {
        key "agent": "text" = agent,
        key "thread_id": "text" = thread,
        set "title": "text" = &row.title,
        set "summary": "text" = &row.summary,
        set "described_at": "bigint" = row.sequence,
    }, "threads.described_at < new.described_at")
}

pub async fn update_states(
    connection: &mut PgConnection,
    rows: &BTreeMap<(SqlKey, SqlKey), ThreadState>,
) -> sqlx::Result<()> {
    update_rows!(connection, rows, "threads", |((agent, thread), row)| {
        key "agent": "text" = agent,
        key "thread_id": "text" = thread,
        set "standing": "text" = row.status.as_str(),
        set "placed_at": "bigint" = row.sequence,
        set "completed_at": "timestamptz" = row.completed_at => "coalesce(new.completed_at, threads.completed_at)",
    }, "threads.placed_at < new.placed_at")
}

pub async fn mark_compacted(connection: &mut PgConnection, rows: &BTreeMap<(SqlKey, SqlKey), i64>) -> sqlx::Result<()> {
    update_rows!(connection, rows, "threads", |((agent, thread), sequence)| {
        key "agent": "text" = agent,
        key "thread_id": "text" = thread,
        set "compacted_at": "bigint" = *sequence,
    }, "threads.compacted_at IS NULL OR threads.compacted_at < new.compacted_at")
}
