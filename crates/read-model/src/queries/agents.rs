//! Agents and what they are made from.

use kairo_proto::v1::{AgentProfile, AgentRow};
use sqlx::{query_as, types::Json};

use crate::{
    ReadError, ReadSnapshot,
    output_columns::At,
    sql_values::{SqlKey, U64},
};

/// A count that is never null here.
#[derive(sqlx::Type)]
#[sqlx(transparent)]
struct Count(i64);

impl From<Count> for Option<u64> {
    fn from(count: Count) -> Self {
        u64::try_from(count.0).ok()
    }
}

#[derive(sqlx::Type)]
#[sqlx(transparent)]
struct Profile(Json<AgentProfile>);

impl From<Profile> for Option<AgentProfile> {
    fn from(profile: Profile) -> Self {
        Some(profile.0.0)
    }
}

/// Selects agents with their queue, by index `tasks_in_queue`, and the work they ended last, by index
/// `threads_completed`. The next run does not count as work while it waits for its time.
macro_rules! agents {
    ($rest:literal $($parameters:tt)*) => {
        query_as!(
            AgentRow,
            r#"
            SELECT agents.agent, profile AS "profile: Profile", sequence AS "sequence: U64", defined_at AS "defined_at: At",
                   queue.next_run_at AS "next_run_at!: At", worked.completed_at AS "last_completed_at!: At",
                   queue.queued AS "queued!: Count", queue.oldest_queued_at AS "oldest_queued_at!: At"
            FROM agents
            LEFT JOIN LATERAL (
                SELECT count(*) FILTER (WHERE status <> 'paused' AND NOT (is_next_run AND next_at IS NOT NULL)) AS queued,
                       min(created_at) FILTER (WHERE status <> 'paused' AND NOT (is_next_run AND next_at IS NOT NULL))
                           AS oldest_queued_at,
                       min(next_at) FILTER (WHERE status = 'pending' AND is_next_run) AS next_run_at
                FROM tasks
                WHERE tasks.agent = agents.agent AND kind = 'queued' AND status IN ('pending', 'in_progress', 'paused')
            ) AS queue ON true
            LEFT JOIN LATERAL (
                SELECT completed_at FROM threads
                WHERE threads.agent = agents.agent AND kind = 'work' AND completed_at IS NOT NULL
                ORDER BY completed_at DESC LIMIT 1
            ) AS worked ON true
            "# + $rest
            $($parameters)*
        )
    };
}

impl ReadSnapshot {
    /// In the order of their ids. All of them: agents are as many as were defined by hand.
    pub async fn list_agents(&self) -> Result<Vec<AgentRow>, ReadError> {
        Ok(agents!("ORDER BY agents.agent").fetch_all(&mut **self.connection().await).await?)
    }

    /// By the primary key.
    pub async fn find_agent(&self, agent: &str) -> Result<Option<AgentRow>, ReadError> {
        let agent = agents!("WHERE agents.agent = $1", SqlKey::from(agent) as _);
        Ok(agent.fetch_optional(&mut **self.connection().await).await?)
    }

    /// Those of these that are there, by the primary key.
    pub async fn find_agents(&self, agents: &[String]) -> Result<Vec<AgentRow>, ReadError> {
        let agents: Vec<SqlKey> = agents.iter().map(|agent| SqlKey::from(agent.as_str())).collect();
        let agents = agents!("WHERE agents.agent = ANY($1)", agents as _);
        Ok(agents.fetch_all(&mut **self.connection().await).await?)
    }
}
