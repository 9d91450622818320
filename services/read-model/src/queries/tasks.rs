//! Tasks, and when they fired.

use serde::Serialize;
use serde_json::Value;
use sqlx::{FromRow, Postgres, QueryBuilder};
use uuid::Uuid;

use super::number;
use crate::{
    MAX_ROWS, ReadError, Snapshot,
    stored::{Key, Time},
};

/// A task.
#[derive(Clone, Debug, PartialEq, Serialize, FromRow)]
pub struct Task {
    pub task_id: Uuid,
    /// Of the event that made it.
    #[sqlx(try_from = "i64")]
    pub sequence: u64,
    pub agent: String,
    #[sqlx(rename = "user_id")]
    pub user: Option<String>,
    pub thread_id: Option<String>,
    /// `scheduled` or `hook`.
    pub kind: String,
    pub title: String,
    /// `once`, `delay` or `repeat`; none for a hook.
    #[sqlx(rename = "type")]
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
    #[sqlx(try_from = "i64")]
    pub fired: u64,
    /// When it fired last, and whether it was late then.
    pub last_fired_at: Option<Time>,
    pub last_late: Option<bool>,
    /// When it was over.
    pub ended_at: Option<Time>,
}

/// A time a task fired.
#[derive(Clone, Debug, PartialEq, Serialize, FromRow)]
pub struct Firing {
    pub event_id: Uuid,
    #[sqlx(try_from = "i64")]
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

/// The last firing by index `firings_of_task`.
const TASKS: &str = "SELECT tasks.task_id, tasks.sequence, agent, user_id, thread_id, kind, title, type, at, \"interval\", \
                     cron, rrule, time_zone, trigger, condition, action, source, status, reason, created_at, changed_at, \
                     next_at, tasks.occurrence, fired, last.fired_at AS last_fired_at, last.late AS last_late, \
                     CASE WHEN status IN ('completed', 'canceled', 'archived', 'failed') THEN changed_at END AS ended_at \
                     FROM tasks LEFT JOIN LATERAL (SELECT fired_at, late FROM task_firings WHERE task_id = tasks.task_id \
                     ORDER BY sequence DESC, position DESC LIMIT 1) AS last ON true WHERE ";
const FIRINGS: &str = "SELECT event_id, sequence, fired_at, occurrence, due_at, late, trigger_event_id FROM task_firings \
                       WHERE task_id = $1 ORDER BY sequence DESC, position DESC LIMIT $2";

impl TasksQuery {
    /// By index `tasks_by_age`, `tasks_of_agent` or `tasks_of_user`, whose order is the order asked for.
    fn sql(&self) -> QueryBuilder<Postgres> {
        let mut sql = QueryBuilder::new(TASKS);
        sql.push("true");
        if let Some(agent) = &self.agent {
            sql.push(" AND agent = ").push_bind(Key::from(agent.as_str()));
        }
        if let Some(user) = &self.user {
            sql.push(" AND user_id = ").push_bind(Key::from(user.as_str()));
        }
        match self.status {
            Some(TaskStatus::Only(status)) => _ = sql.push(" AND status = ").push_bind(status),
            Some(TaskStatus::Open) => _ = sql.push(" AND status IN ('pending', 'active', 'paused')"),
            None => {}
        }
        if let Some(kind) = &self.kind {
            sql.push(" AND kind = ").push_bind(Key::from(kind.as_str()));
        }
        if let Some(before) = self.before {
            sql.push(" AND tasks.sequence < ").push_bind(number(before));
        }
        sql.push(" ORDER BY tasks.sequence DESC FETCH FIRST (")
            .push_bind(i64::from(self.limit.clamp(1, MAX_ROWS)))
            .push(") ROWS WITH TIES");
        sql
    }
}

impl Snapshot {
    /// The newest first.
    pub async fn tasks(&self, query: &TasksQuery) -> Result<Vec<Task>, ReadError> {
        Ok(query.sql().build_query_as().fetch_all(&mut **self.connection().await).await?)
    }

    /// By the primary key.
    pub async fn task(&self, task: Uuid) -> Result<Option<Task>, ReadError> {
        let mut sql = QueryBuilder::<Postgres>::new(TASKS);
        sql.push("tasks.task_id = ").push_bind(task);
        Ok(sql.build_query_as().fetch_optional(&mut **self.connection().await).await?)
    }

    /// The last times a task fired, the last first.
    pub async fn firings(&self, task: Uuid, limit: u32) -> Result<Vec<Firing>, ReadError> {
        let firings = sqlx::query_as(FIRINGS).bind(task).bind(i64::from(limit.clamp(1, MAX_ROWS)));
        Ok(firings.fetch_all(&mut **self.connection().await).await?)
    }
}
