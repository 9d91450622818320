//! Table `agents`.

use std::collections::BTreeMap;

use kairo_read_model::stored::Key;
use sqlx::PgConnection;

use crate::changes::Agent;

pub async fn define(connection: &mut PgConnection, rows: &BTreeMap<Key, Agent>) -> sqlx::Result<()> {
    upsert_rows!(connection, rows, "agents", |(agent, row)| {
        key "agent": "text" = agent,
        set "profile": "jsonb" = &row.profile,
        set "sequence": "bigint" = row.sequence,
        set "defined_at": "timestamptz" = row.defined_at,
    }, "agents.sequence < excluded.sequence")
}
