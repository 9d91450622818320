//! Tables `tasks` and `task_firings`.

use std::collections::BTreeMap;

use sqlx::PgConnection;
use uuid::Uuid;

use crate::changes::{TaskCreation, TaskFiring, TaskState};

pub async fn insert_tasks(connection: &mut PgConnection, rows: &BTreeMap<Uuid, TaskCreation>) -> sqlx::Result<()> {
    insert_rows!(connection, rows, "tasks", |(id, row)| {
        "task_id": "uuid" = *id,
        "sequence": "bigint" = row.sequence,
        "position": "int" = row.position,
        "agent": "text" = &row.agent,
        "user_id": "text" = row.user.as_ref(),
        "thread_id": "text" = row.thread_id.as_ref(),
        "correlation_id": "uuid" = row.correlation_id,
        "kind": "text" = &row.kind,
        "title": "text" = &row.title,
        "definition": "jsonb" = &row.definition,
        "trigger": "text" = row.trigger.as_ref(),
        "condition": "text" = row.condition.as_ref(),
        "action": "jsonb" = &row.action,
        "created_at": "timestamptz" = row.created_at,
        "changed_sequence": "bigint" = row.sequence,
        "changed_at": "timestamptz" = row.created_at,
        "status": "text" = row.status.as_str(),
        "next_at": "timestamptz" = row.next_at,
        "occurrence": "bigint" = row.occurrence,
    }, "ON CONFLICT DO NOTHING")
}

/// Counts those that were not counted before, by one statement for both tables.
pub async fn insert_firings(connection: &mut PgConnection, rows: &BTreeMap<Uuid, TaskFiring>) -> sqlx::Result<()> {
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
pub async fn update_states(connection: &mut PgConnection, rows: &BTreeMap<Uuid, TaskState>) -> sqlx::Result<()> {
    update_rows!(connection, rows, "tasks", |(id, row)| {
        key "task_id": "uuid" = *id,
        set "changed_sequence": "bigint" = row.sequence,
        set "changed_at": "timestamptz" = row.at,
        set "status": "text" = row.status.as_ref() => "coalesce(new.status, CASE
                WHEN tasks.status NOT IN ('pending', 'active', 'paused') THEN tasks.status
                WHEN tasks.kind = 'scheduled' AND new.next_at IS NULL THEN 'completed'
                WHEN tasks.status = 'pending' THEN 'active'
                ELSE tasks.status
            END)",
        set "reason": "text" = row.reason.as_ref(),
        set "next_at": "timestamptz" = row.next_at,
        set "occurrence": "bigint" = row.occurrence,
        set "result": "text" = row.result.as_ref() => "coalesce(new.result, tasks.result)",
        set "work_thread_id": "text" = row.work_thread_id.as_ref() => "coalesce(new.work_thread_id, tasks.work_thread_id)",
        set "put_first": "bigint" = row.put_first => "coalesce(new.put_first, tasks.put_first)",
    }, "tasks.changed_sequence <= new.changed_sequence")
}
