//! Table `agents`.

use std::collections::BTreeMap;

use kairo_read_model::sql_values::SqlKey;
use sqlx::PgConnection;

use crate::changes::AgentDefinition;

pub async fn upsert_agents(
    connection: &mut PgConnection,
    rows: &BTreeMap<SqlKey, AgentDefinition>,
) -> sqlx::Result<()> {
    upsert_rows!(connection, rows, "agents", |(agent, row)| {
        key "agent": "text" = agent,
        set "profile": "jsonb" = &row.profile,
        set "sequence": "bigint" = row.sequence,
        set "defined_at": "timestamptz" = row.defined_at,
    }, "agents.sequence < excluded.sequence")
}
