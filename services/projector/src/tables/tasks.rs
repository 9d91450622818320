//! Tables `tasks` and `task_firings`.

use std::collections::BTreeMap;

use sqlx::PgConnection;
use uuid::Uuid;

use super::write_rows;
use crate::changes::{Firing, Task, TaskState};

pub async fn schedule(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Task>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        r#"
        INSERT INTO tasks (task_id, sequence, position, agent, user_id, thread_id, correlation_id, kind, title, definition,
                           trigger, condition, action, created_at, status, next_at, occurrence, changed_sequence, changed_at)
        SELECT task_id, sequence, position, agent, user_id, thread_id, correlation_id, kind, title, definition::jsonb,
               trigger, condition, action::jsonb, created_at, status, next_at, occurrence, sequence, created_at
        FROM UNNEST($1::uuid[], $2::bigint[], $3::int[], $4::text[], $5::text[], $6::text[], $7::uuid[], $8::text[],
                    $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::timestamptz[], $15::text[],
                    $16::timestamptz[], $17::bigint[])
            AS new (task_id, sequence, position, agent, user_id, thread_id, correlation_id, kind, title, definition, trigger,
                    condition, action, created_at, status, next_at, occurrence)
        ON CONFLICT DO NOTHING"#,
        |(id, row)| (
            *id,
            row.sequence,
            row.position,
            &row.agent,
            row.user.as_ref(),
            row.thread_id.as_ref(),
            row.correlation_id,
            &row.kind,
            &row.title,
            &row.definition,
            row.trigger.as_ref(),
            row.condition.as_ref(),
            &row.action,
            row.created_at,
            row.status.as_str(),
            row.next_at,
            row.occurrence,
        )
    )
}

/// Counts those that were not counted before.
pub async fn fire(connection: &mut PgConnection, rows: &BTreeMap<Uuid, Firing>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        WITH added AS (
            INSERT INTO task_firings (event_id, sequence, position, task_id, fired_at, occurrence, due_at, late,
                                      trigger_event_id)
            SELECT * FROM UNNEST($1::uuid[], $2::bigint[], $3::int[], $4::uuid[], $5::timestamptz[], $6::bigint[],
                                 $7::timestamptz[], $8::boolean[], $9::uuid[])
            ON CONFLICT DO NOTHING
            RETURNING task_id
        )
        UPDATE tasks SET fired = fired + new.times
        FROM (SELECT task_id, count(*) AS times FROM added GROUP BY task_id) AS new
        WHERE tasks.task_id = new.task_id",
        |(id, row)| (
            *id,
            row.sequence,
            row.position,
            row.task_id,
            row.fired_at,
            row.occurrence,
            row.due_at,
            row.late,
            row.trigger_event_id,
        )
    )
}

/// A decision that makes a task may change it at once, so the same sequence is not too old.
pub async fn change(connection: &mut PgConnection, rows: &BTreeMap<Uuid, TaskState>) -> sqlx::Result<()> {
    write_rows!(
        connection,
        rows,
        "
        UPDATE tasks
        SET status = coalesce(new.status, CASE
                WHEN tasks.status NOT IN ('pending', 'active', 'paused') THEN tasks.status
                WHEN tasks.kind = 'scheduled' AND new.next_at IS NULL THEN 'completed'
                WHEN tasks.status = 'pending' THEN 'active'
                ELSE tasks.status
            END),
            reason = new.reason, next_at = new.next_at, occurrence = new.occurrence, changed_sequence = new.sequence,
            changed_at = new.changed_at
        FROM UNNEST($1::uuid[], $2::bigint[], $3::timestamptz[], $4::text[], $5::text[], $6::timestamptz[], $7::bigint[])
            AS new (task_id, sequence, changed_at, status, reason, next_at, occurrence)
        WHERE tasks.task_id = new.task_id AND tasks.changed_sequence <= new.sequence",
        |(id, row)| (
            *id,
            row.sequence,
            row.at,
            row.status.as_ref(),
            row.reason.as_ref(),
            row.next_at,
            row.occurrence,
        )
    )
}
