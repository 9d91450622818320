//! The amount of data held on a user, agent by agent.

use kairo_proto::v1::HeldRow;
use sqlx::query_as;

use crate::{
    ReadError, ReadSnapshot,
    sql_values::{SqlKey, U64},
};

/// Of how many agents that is told.
const AGENTS: i64 = 100_000;

struct UserHoldings {
    agent: String,
    threads: u64,
    messages: u64,
    actions: u64,
    tasks: u64,
    memories: u64,
    inner_state: u64,
    asked: u64,
}

impl ReadSnapshot {
    /// Returns how much each agent holds on a user, by the agent's name. It reads all of that data, which takes its
    /// time.
    pub async fn user_holdings(&self, user: &str) -> Result<Vec<HeldRow>, ReadError> {
        let mut connection = self.connection().await;
        let held = query_as!(
            UserHoldings,
            r#"
            SELECT agent AS "agent!",
                   count(*) FILTER (WHERE kind = 'thread') AS "threads!: U64",
                   count(*) FILTER (WHERE kind = 'message') AS "messages!: U64",
                   count(*) FILTER (WHERE kind = 'action') AS "actions!: U64",
                   count(*) FILTER (WHERE kind = 'task') AS "tasks!: U64",
                   count(*) FILTER (WHERE kind = 'memory') AS "memories!: U64",
                   count(*) FILTER (WHERE kind = 'state') AS "inner_state!: U64",
                   count(*) FILTER (WHERE kind = 'asked') AS "asked!: U64"
            FROM (
                SELECT agent, 'thread' AS kind FROM threads WHERE user_id = $1
                UNION ALL SELECT agent, 'message' FROM messages WHERE user_id = $1 AND sequence IS NOT NULL
                UNION ALL SELECT agent, 'action' FROM actions JOIN threads USING (agent, thread_id) WHERE user_id = $1
                UNION ALL SELECT agent, 'task' FROM tasks WHERE user_id = $1
                UNION ALL SELECT agent, 'memory' FROM memories WHERE user_id = $1
                UNION ALL SELECT agent, 'state' FROM inner_state_changes WHERE user_id = $1
                UNION ALL SELECT agent, 'asked' FROM approvals WHERE user_id = $1
                UNION ALL SELECT agent, 'asked' FROM offers WHERE user_id = $1
                UNION ALL SELECT agent, 'asked' FROM briefings WHERE user_id = $1
            ) AS held
            WHERE agent IS NOT NULL GROUP BY agent ORDER BY agent LIMIT $2
            "#,
            SqlKey::from(user) as _,
            AGENTS
        );
        let held = held.fetch_all(&mut **connection).await?;
        Ok(held.into_iter().map(HeldRow::from).collect())
    }
}

impl From<UserHoldings> for HeldRow {
    fn from(held: UserHoldings) -> Self {
        let UserHoldings { agent, threads, messages, actions, tasks, memories, inner_state, asked } = held;
        Self { agent, threads, messages, actions, tasks, memories, inner_state, asked }
    }
}
