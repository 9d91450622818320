//! Table `agents`.

use std::collections::BTreeMap;

use kairo_read_model::stored::Key;
use sqlx::PgConnection;

use super::write_rows;
use crate::changes::Agent;

pub async fn define(connection: &mut PgConnection, rows: &BTreeMap<Key, Agent>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        INSERT INTO agents (agent, profile, sequence, defined_at)
        SELECT agent, profile::jsonb, sequence, defined_at
        FROM UNNEST($1::text[], $2::text[], $3::bigint[], $4::timestamptz[]) AS new (agent, profile, sequence, defined_at)
        ON CONFLICT (agent) DO UPDATE
        SET profile = EXCLUDED.profile, sequence = EXCLUDED.sequence, defined_at = EXCLUDED.defined_at
        WHERE agents.sequence < EXCLUDED.sequence",
        |(agent, row)| (
            agent,
            &row.profile,
            row.sequence,
            row.defined_at,
        )
    )
}
