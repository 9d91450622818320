//! Tables `teams` and `briefings`.

use std::collections::BTreeMap;

use kairo_read_model::sql_values::SqlKey;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::changes::{SessionBriefing, TeamState};

pub async fn upsert_teams(connection: &mut PgConnection, rows: &BTreeMap<SqlKey, TeamState>) -> sqlx::Result<()> {
    upsert_rows!(connection, rows, "teams", |(agent, row)| {
        key "agent": "text" = agent,
        set "status": "text" = &row.status,
        set "reason": "text" = &row.reason,
        set "over_budget": "boolean" = row.over_budget,
        set "changed_at": "timestamptz" = row.at,
        set "changed_sequence": "bigint" = row.sequence,
    }, "teams.changed_sequence < excluded.changed_sequence")
}

pub async fn insert_briefings(
    connection: &mut PgConnection,
    rows: &BTreeMap<Uuid, SessionBriefing>,
) -> sqlx::Result<()> {
    insert_rows!(connection, rows, "briefings", |(id, row)| {
        "event_id": "uuid" = *id,
        "sequence": "bigint" = row.sequence,
        "agent": "text" = &row.agent,
        "user_id": "text" = &row.user,
        "thread_id": "text" = row.thread_id.as_ref(),
        "work_thread_id": "text" = row.work_thread_id.as_ref(),
        "told": "boolean" = row.told,
        "reason": "text" = &row.reason,
        "summary": "text" = &row.summary,
        "briefed_at": "timestamptz" = row.at,
    }, "ON CONFLICT DO NOTHING")
}
