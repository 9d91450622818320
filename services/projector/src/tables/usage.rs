//! Table `model_calls`.

use std::collections::BTreeMap;

use sqlx::PgConnection;
use uuid::Uuid;

use super::write_rows;
use crate::changes::ModelCall;

pub async fn call(connection: &mut PgConnection, rows: &BTreeMap<(Uuid, i32), ModelCall>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        INSERT INTO model_calls (event_id, call, sequence, agent, thread_id, user_id, tier, model, decided_at, input_tokens,
                                 output_tokens, latency_ms, failed)
        SELECT * FROM UNNEST($1::uuid[], $2::int[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
                             $9::timestamptz[], $10::bigint[], $11::bigint[], $12::bigint[], $13::text[])
        ON CONFLICT DO NOTHING",
        |((event, call), row)| (
            *event,
            *call,
            row.sequence,
            &row.agent,
            row.thread_id.as_ref(),
            row.user.as_ref(),
            &row.tier,
            &row.model,
            row.decided_at,
            row.input_tokens,
            row.output_tokens,
            row.latency_ms,
            row.failed.as_ref(),
        )
    )
}
