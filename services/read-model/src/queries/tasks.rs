//! Tasks, and when they fired.

use serde::Serialize;
use serde_json::Value;
use sqlx::query_as;
use uuid::Uuid;

use super::{number, rows};
use crate::{
    MAX_ROWS, ReadError, Snapshot,
    stored::{Key, Time, U64},
};

/// A task.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Task {
    pub task_id: Uuid,
    /// Of the event that made it.
    pub sequence: u64,
    pub agent: String,
    pub user: Option<String>,
    pub thread_id: Option<String>,
    /// `scheduled` or `hook`.
    pub kind: String,
    pub title: String,
    /// `once`, `delay` or `repeat`; none for a hook.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// When it is due, in the words it was asked for.
    pub at: Option<String>,
    pub interval: Option<String>,
    pub cron: Option<String>,
    pub rrule: Option<String>,
    pub time_zone: Option<String>,
    /// What a hook waits for.
    pub trigger: Option<String>,
    pub condition: Option<String>,
    /// The steps it runs.
    pub action: Value,
    pub source: String,
    /// pending, active, paused, completed, canceled, archived or failed.
    pub status: String,
    pub reason: Option<String>,
    pub created_at: Time,
    /// When it came to be as it is.
    pub changed_at: Time,
    /// When it is due next, and which time that will be.
    pub next_at: Option<Time>,
    pub occurrence: Option<i64>,
    /// How often it fired.
    pub fired: u64,
    /// When it fired last, and whether it was late then.
    pub last_fired_at: Option<Time>,
    pub last_late: Option<bool>,
    /// When it was over.
    pub ended_at: Option<Time>,
}

/// A time a task fired.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Firing {
    pub event_id: Uuid,
    pub sequence: u64,
    pub fired_at: Time,
    /// Which time; none of a hook.
    pub occurrence: Option<i64>,
    pub due_at: Option<Time>,
    pub late: bool,
    pub trigger_event_id: Option<Uuid>,
}

/// Which state a task is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskStatus {
    Only(&'static str),
    /// Those that are not over.
    Open,
}

/// Which tasks; all conditions must hold.
#[derive(Clone, Debug)]
pub struct TasksQuery {
    pub agent: Option<String>,
    pub user: Option<String>,
    pub status: Option<TaskStatus>,
    pub kind: Option<String>,
    /// Those made before this message of the log.
    pub before: Option<u64>,
    /// At most so many, and never more than [`MAX_ROWS`]; more only if several were made at once.
    pub limit: u32,
}

impl Default for TasksQuery {
    fn default() -> Self {
        Self { agent: None, user: None, status: None, kind: None, before: None, limit: MAX_ROWS }
    }
}

impl TaskStatus {
    /// The names of it.
    fn names(self) -> Vec<Key> {
        match self {
            Self::Only(status) => vec![status.into()],
            Self::Open => ["pending", "active", "paused"].map(Key::from).into(),
        }
    }
}

/// The last firing by index `firings_of_task`.
macro_rules! tasks {
    ($conditions:literal, $($parameters:tt)*) => {
        query_as!(
            Task,
            r#"
            SELECT tasks.task_id, tasks.sequence AS "sequence: U64", agent, user_id AS user, thread_id, kind, title,
                   type AS type_name, at, "interval", cron, rrule, time_zone, trigger, condition, action, source, status,
                   reason, created_at AS "created_at: Time", changed_at AS "changed_at: Time", next_at AS "next_at: Time",
                   tasks.occurrence, fired AS "fired: U64", last.fired_at AS "last_fired_at?: Time",
                   last.late AS "last_late?",
                   CASE WHEN status IN ('completed', 'canceled', 'archived', 'failed') THEN changed_at
                   END AS "ended_at?: Time"
            FROM tasks LEFT JOIN LATERAL (
                SELECT fired_at, late FROM task_firings WHERE task_id = tasks.task_id
                ORDER BY sequence DESC, position DESC LIMIT 1
            ) AS last ON true
            WHERE "# + $conditions,
            $($parameters)*
        )
    };
}

impl Snapshot {
    /// The newest first. By index `tasks_by_age`, `tasks_of_agent` or `tasks_of_user`, whose order is the order asked
    /// for.
    pub async fn tasks(&self, query: &TasksQuery) -> Result<Vec<Task>, ReadError> {
        let tasks = tasks!(
            "($1::text IS NULL OR agent = $1) AND ($2::text IS NULL OR user_id = $2)
                AND ($3::text[] IS NULL OR status = ANY($3)) AND ($4::text IS NULL OR kind = $4) AND tasks.sequence < $5
             ORDER BY tasks.sequence DESC FETCH FIRST ($6) ROWS WITH TIES",
            query.agent.as_deref().map(Key::from) as _,
            query.user.as_deref().map(Key::from) as _,
            query.status.map(TaskStatus::names) as _,
            query.kind.as_deref().map(Key::from) as _,
            number(query.before.unwrap_or(u64::MAX)),
            rows(query.limit)
        );
        Ok(tasks.fetch_all(&mut **self.connection().await).await?)
    }

    /// By the primary key.
    pub async fn task(&self, task: Uuid) -> Result<Option<Task>, ReadError> {
        Ok(tasks!("tasks.task_id = $1", task).fetch_optional(&mut **self.connection().await).await?)
    }

    /// The last times a task fired, the last first. By index `firings_of_task`.
    pub async fn firings(&self, task: Uuid, limit: u32) -> Result<Vec<Firing>, ReadError> {
        let firings = query_as!(
            Firing,
            r#"
            SELECT event_id, sequence AS "sequence: U64", fired_at AS "fired_at: Time", occurrence,
                   due_at AS "due_at: Time", late, trigger_event_id
            FROM task_firings WHERE task_id = $1 ORDER BY sequence DESC, position DESC LIMIT $2"#,
            task,
            rows(limit),
        );
        Ok(firings.fetch_all(&mut **self.connection().await).await?)
    }
}
