//! Table `memories`.

use std::collections::BTreeMap;

use kairo_read_model::stored::Key;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::changes::Memory;

pub async fn append(connection: &mut PgConnection, rows: &BTreeMap<(Key, Uuid), Memory>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        INSERT INTO memories (agent, memory_id, event_id, sequence, position, updated_at, thread_id, user_id, kind, subject,
                              content, keywords, day, source_event_ids, secrets, named)
        SELECT agent, memory_id, event_id, sequence, position, updated_at, thread_id, user_id, kind, subject, content,
               ARRAY(SELECT jsonb_array_elements_text(keywords::jsonb)), day::date,
               ARRAY(SELECT jsonb_array_elements_text(source_event_ids::jsonb)), secrets::jsonb, named
        FROM UNNEST($1::text[], $2::uuid[], $3::uuid[], $4::bigint[], $5::int[], $6::timestamptz[], $7::text[], $8::text[],
                    $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[])
            AS new (agent, memory_id, event_id, sequence, position, updated_at, thread_id, user_id, kind, subject, content,
                    keywords, day, source_event_ids, secrets, named)
        ON CONFLICT (agent, memory_id) DO UPDATE
        SET event_id = excluded.event_id, sequence = excluded.sequence, position = excluded.position,
            updated_at = excluded.updated_at, thread_id = excluded.thread_id, user_id = excluded.user_id,
            kind = excluded.kind, subject = excluded.subject, content = excluded.content, keywords = excluded.keywords,
            day = excluded.day, source_event_ids = excluded.source_event_ids, secrets = excluded.secrets,
            named = excluded.named
        WHERE memories.event_id <> excluded.event_id
          AND (memories.sequence, memories.position) < (excluded.sequence, excluded.position)",
        |((agent, memory), row)| (
            agent,
            *memory,
            row.event_id,
            row.sequence,
            row.position,
            row.updated_at,
            row.thread_id.as_ref(),
            row.user.as_ref(),
            &row.kind,
            &row.subject,
            &row.content,
            &row.keywords,
            row.day.as_deref(),
            &row.source_event_ids,
            &row.secrets,
            &row.named,
        )
    )
}
