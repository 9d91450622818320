//! Table `threads`.

use std::collections::BTreeMap;

use kairo_read_model::stored::Key;
use sqlx::PgConnection;

use super::write_rows;
use crate::changes::{Archiving, Description, Thread, Touch};

pub async fn create(connection: &mut PgConnection, rows: &BTreeMap<(Key, Key), Thread>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        INSERT INTO threads (agent, thread_id, user_id, kind, status, title, created_at, updated_at, last_sequence)
        SELECT agent, thread_id, user_id, kind, 'active', title, created_at, created_at, sequence
        FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::bigint[])
            AS new (agent, thread_id, user_id, kind, title, created_at, sequence)
        ON CONFLICT DO NOTHING",
        |((agent, thread), row)| (agent, thread, &row.user, &row.kind, &row.title, row.created_at, row.sequence,)
    )
}

/// Threads that nobody began are no threads yet, whatever is said in them.
pub async fn touch(connection: &mut PgConnection, rows: &BTreeMap<(Key, Key), Touch>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        UPDATE threads SET updated_at = new.ts, last_sequence = new.sequence
        FROM UNNEST($1::text[], $2::text[], $3::timestamptz[], $4::bigint[]) AS new (agent, thread_id, ts, sequence)
        WHERE threads.agent = new.agent AND threads.thread_id = new.thread_id AND threads.last_sequence < new.sequence",
        |((agent, thread), row)| (agent, thread, row.at, row.sequence,)
    )
}

pub async fn describe(connection: &mut PgConnection, rows: &BTreeMap<(Key, Key), Description>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        UPDATE threads SET title = new.title, summary = new.summary, described_at = new.sequence
        FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[])
            AS new (agent, thread_id, title, summary, sequence)
        WHERE threads.agent = new.agent AND threads.thread_id = new.thread_id AND threads.described_at < new.sequence",
        |((agent, thread), row)| (agent, thread, &row.title, &row.summary, row.sequence,)
    )
}

pub async fn archive(connection: &mut PgConnection, rows: &BTreeMap<(Key, Key), Archiving>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        UPDATE threads
        SET status = CASE WHEN new.archived THEN 'archived' ELSE 'active' END, placed_at = new.sequence
        FROM UNNEST($1::text[], $2::text[], $3::boolean[], $4::bigint[]) AS new (agent, thread_id, archived, sequence)
        WHERE threads.agent = new.agent AND threads.thread_id = new.thread_id AND threads.placed_at < new.sequence",
        |((agent, thread), row)| (agent, thread, row.archived, row.sequence,)
    )
}
