//! Table `agents`.

use std::collections::BTreeMap;

use kairo_read_model::stored::Key;
use sqlx::{PgConnection, query};

use super::column;
use crate::changes::Agent;

const DEFINE: &str = "
    INSERT INTO agents (agent, profile, sequence, defined_at)
    SELECT agent, profile::jsonb, sequence, defined_at
    FROM UNNEST($1::text[], $2::text[], $3::bigint[], $4::timestamptz[]) AS new (agent, profile, sequence, defined_at)
    ON CONFLICT (agent) DO UPDATE
    SET profile = EXCLUDED.profile, sequence = EXCLUDED.sequence, defined_at = EXCLUDED.defined_at
    WHERE agents.sequence < EXCLUDED.sequence";

pub async fn define(connection: &mut PgConnection, rows: &BTreeMap<Key, Agent>) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    query(DEFINE)
        .bind(column(rows, |(agent, _)| agent))
        .bind(column(rows, |(_, row)| &row.profile))
        .bind(column(rows, |(_, row)| row.sequence))
        .bind(column(rows, |(_, row)| row.defined_at))
        .execute(connection)
        .await?;
    Ok(())
}
