//! Tasks, and when they fired.

use kairo_proto::{
    v1::{FiringRow, TaskRow},
    words::{TaskKind, TaskStatus},
};
use sqlx::{query, query_as, types::Json};
use uuid::Uuid;

use super::{row_limit, to_bigint};
use crate::{
    MAX_ROWS, ReadError, ReadSnapshot,
    output_columns::{At, Id, Object},
    sql_values::{SqlKey, U64},
};

const OPEN: [TaskStatus; 4] = [TaskStatus::Pending, TaskStatus::InProgress, TaskStatus::Active, TaskStatus::Paused];

/// Tasks in which state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskState {
    Only(TaskStatus),
    /// Those that are not over.
    Open,
}

/// The tasks to return; all conditions must hold.
#[derive(Clone, Debug)]
pub struct TasksQuery {
    pub agent: Option<String>,
    pub user: Option<String>,
    pub status: Option<TaskState>,
    pub kind: Option<TaskKind>,
    /// Those made before this message of the log.
    pub before: Option<u64>,
    /// At most so many, and never more than [`MAX_ROWS`]; more only if several were made at once.
    pub limit: u32,
    /// True for the queued tasks and those worked on, in the order of the queue: see [`ReadSnapshot::queued_tasks`].
    pub queue: bool,
}

impl Default for TasksQuery {
    fn default() -> Self {
        Self { agent: None, user: None, status: None, kind: None, before: None, limit: MAX_ROWS, queue: false }
    }
}

impl TaskState {
    fn status_keys(&self) -> Vec<SqlKey> {
        match self {
            Self::Only(status) => vec![status.as_str().into()],
            Self::Open => OPEN.iter().map(|status| status.as_str().into()).collect(),
        }
    }
}

/// The last firing by index `firings_of_task`.
macro_rules! tasks {
    ($conditions:literal, $($parameters:tt)*) => {
        query!(
            r#"
            SELECT tasks.task_id, tasks.sequence AS "sequence: U64", agent, user_id, thread_id, kind, title,
                   definition AS "definition: Json<TaskRow>", trigger, condition, action AS "action: Object", status, reason,
                   created_at AS "created_at: At", changed_at AS "changed_at: At", next_at AS "next_at!: At",
                   tasks.occurrence, fired AS "fired: U64", last.fired_at AS "last_fired_at!: At",
                   last.late AS "last_late?", result, work_thread_id,
                   CASE WHEN status IN ('completed', 'canceled', 'archived', 'failed') THEN changed_at
                   END AS "ended_at!: At",
                   CASE WHEN status = 'completed' THEN changed_at END AS "completed_at!: At"
            FROM tasks LEFT JOIN LATERAL (
                SELECT fired_at, late FROM task_firings WHERE task_id = tasks.task_id
                ORDER BY sequence DESC, position DESC LIMIT 1
            ) AS last ON true
            WHERE "# + $conditions,
            $($parameters)*
        )
        .map(|row| TaskRow {
            task_id: row.task_id.to_string(),
            sequence: row.sequence.into(),
            agent: row.agent,
            user: row.user_id,
            thread_id: row.thread_id,
            kind: row.kind,
            title: row.title,
            trigger: row.trigger,
            condition: row.condition,
            action: row.action.into(),
            status: row.status,
            reason: row.reason,
            created_at: row.created_at.into(),
            changed_at: row.changed_at.into(),
            next_at: row.next_at.into(),
            occurrence: row.occurrence,
            fired: row.fired.into(),
            last_fired_at: row.last_fired_at.into(),
            last_late: row.last_late,
            ended_at: row.ended_at.into(),
            completed_at: row.completed_at.into(),
            result: row.result,
            work_thread_id: row.work_thread_id,
            ..row.definition.0
        })
    };
}

impl ReadSnapshot {
    /// The newest first. By index `tasks_by_age`, `tasks_of_agent` or `tasks_of_user`, whose order is the order asked
    /// for.
    pub async fn list_tasks(&self, query: &TasksQuery) -> Result<Vec<TaskRow>, ReadError> {
        let tasks = tasks!(
            "($1::text IS NULL OR agent = $1) AND ($2::text IS NULL OR user_id = $2)
                AND ($3::text[] IS NULL OR status = ANY($3)) AND ($4::text IS NULL OR kind = $4) AND tasks.sequence < $5
             ORDER BY tasks.sequence DESC FETCH FIRST ($6) ROWS WITH TIES",
            query.agent.as_deref().map(SqlKey::from) as _,
            query.user.as_deref().map(SqlKey::from) as _,
            query.status.as_ref().map(TaskState::status_keys) as _,
            query.kind.as_ref().map(|kind| SqlKey::from(kind.as_str())) as _,
            to_bigint(query.before.unwrap_or(u64::MAX)),
            row_limit(query.limit)
        );
        Ok(tasks.fetch_all(&mut **self.connection().await).await?)
    }

    /// Returns the queued tasks and those worked on, in the order of the queue. By index `tasks_in_queue`.
    pub async fn queued_tasks(
        &self,
        agent: Option<&str>,
        user: Option<&str>,
        limit: u32,
    ) -> Result<Vec<TaskRow>, ReadError> {
        let tasks = tasks!(
            "kind = 'queued' AND status IN ('pending', 'in_progress', 'paused')
                AND ($1::text IS NULL OR agent = $1) AND ($2::text IS NULL OR user_id = $2)
             ORDER BY agent, status = 'in_progress' DESC, put_first DESC NULLS LAST, tasks.sequence, tasks.position
             LIMIT $3",
            agent.map(SqlKey::from) as _,
            user.map(SqlKey::from) as _,
            row_limit(limit)
        );
        Ok(tasks.fetch_all(&mut **self.connection().await).await?)
    }

    /// By the primary key.
    pub async fn find_task(&self, task: Uuid) -> Result<Option<TaskRow>, ReadError> {
        Ok(tasks!("tasks.task_id = $1", task).fetch_optional(&mut **self.connection().await).await?)
    }

    /// By the primary key.
    pub(super) async fn tasks_of(&self, ids: &[Uuid]) -> Result<Vec<TaskRow>, ReadError> {
        Ok(tasks!("tasks.task_id = ANY($1)", ids).fetch_all(&mut **self.connection().await).await?)
    }

    /// The last times a task fired, the last first. By index `firings_of_task`.
    pub async fn task_firings(&self, task: Uuid, limit: u32) -> Result<Vec<FiringRow>, ReadError> {
        let firings = query_as!(
            FiringRow,
            r#"
            SELECT event_id AS "event_id: Id", sequence AS "sequence: U64", fired_at AS "fired_at: At", occurrence,
                   due_at AS "due_at!: At", late, trigger_event_id AS "trigger_event_id!: Id"
            FROM task_firings WHERE task_id = $1 ORDER BY sequence DESC, position DESC LIMIT $2"#,
            task,
            row_limit(limit),
        );
        Ok(firings.fetch_all(&mut **self.connection().await).await?)
    }
}
