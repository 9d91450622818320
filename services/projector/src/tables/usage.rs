//! Tables `model_calls` and `entries`.

use std::collections::BTreeMap;

use kairo_read_model::sql_values::SqlText;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::changes::ModelCall;

pub async fn insert_model_calls(
    connection: &mut PgConnection,
    rows: &BTreeMap<(Uuid, i32), ModelCall>,
) -> sqlx::Result<()> {
    insert_rows!(connection, rows, "model_calls", |((event, call), row)| {
        "event_id": "uuid" = *event,
        "call": "int" = *call,
        "sequence": "bigint" = row.sequence,
        "agent": "text" = &row.agent,
        "thread_id": "text" = row.thread_id.as_ref(),
        "user_id": "text" = row.user.as_ref(),
        "tier": "text" = &row.tier,
        "model": "text" = &row.model,
        "module": "text" = &row.module,
        "decided_at": "timestamptz" = row.decided_at,
        "input_tokens": "bigint" = row.input_tokens,
        "output_tokens": "bigint" = row.output_tokens,
        "latency_ms": "bigint" = row.latency_ms,
        "failed": "text" = row.failed.as_ref(),
        "cached_tokens": "bigint" = row.cached_tokens,
        "is_estimate": "boolean" = row.is_estimate,
        "correlation_id": "uuid" = row.correlation_id,
    }, "ON CONFLICT DO NOTHING")
}

pub async fn insert_entries(connection: &mut PgConnection, rows: &BTreeMap<Uuid, SqlText>) -> sqlx::Result<()> {
    insert_rows!(connection, rows, "entries", |(correlation, entered_by)| {
        "correlation_id": "uuid" = *correlation,
        "entered_by": "text" = entered_by,
    }, "ON CONFLICT DO NOTHING")
}
