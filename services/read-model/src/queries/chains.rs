//! Chains and how far each of their steps is.

use serde::Serialize;
use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{
    MAX_ROWS, ReadError, Snapshot,
    stored::{Key, Time},
};

/// A chain, with its steps.
#[derive(Clone, Debug, PartialEq, Serialize, FromRow)]
pub struct Chain {
    pub chain_id: Uuid,
    /// Of the event that began it.
    #[sqlx(try_from = "i64")]
    pub sequence: u64,
    pub agent: String,
    pub thread_id: Option<String>,
    pub correlation_id: Uuid,
    /// `plan`, `calls`, `task` or `hook`.
    pub origin: String,
    pub task_id: Option<Uuid>,
    /// The beginning of the plan it was compiled from.
    pub plan: String,
    pub started_at: Time,
    pub ended_at: Option<Time>,
    /// `done`, `broken`, `failed`, `canceled` or `replaced`; none while it runs.
    pub outcome: Option<String>,
    pub reason: Option<String>,
    #[sqlx(skip)]
    pub steps: Vec<ChainStep>,
}

/// A step of a chain.
#[derive(Clone, Debug, PartialEq, Serialize, FromRow)]
pub struct ChainStep {
    #[serde(skip)]
    pub chain_id: Uuid,
    #[sqlx(try_from = "i32")]
    pub step: u32,
    /// Steps of a group run at once.
    #[sqlx(rename = "group_no", try_from = "i32")]
    pub group: u32,
    pub event: String,
    pub params: Value,
    /// What was to be judged before it ran.
    pub decide: Option<String>,
    /// `pending`, `asked`, `running`, `done`, `failed`, `skipped` or `stopped`.
    pub state: String,
    /// The request that asked a human.
    pub approval_id: Option<Uuid>,
    pub action_id: Option<Uuid>,
    pub begun_at: Option<Time>,
    pub ended_at: Option<Time>,
    /// The beginning of it.
    pub result: Option<String>,
    pub reason: Option<String>,
}

const CHAINS: &str = "SELECT chain_id, sequence, agent, thread_id, correlation_id, origin, task_id, plan, started_at, \
                      ended_at, outcome, reason FROM chains";
/// By the primary key.
const STEPS: &str = "SELECT chain_id, step, group_no, event, params, decide, state, approval_id, action_id, begun_at, \
                     ended_at, result, reason FROM chain_steps WHERE chain_id = ANY($1) ORDER BY chain_id, step";

impl Snapshot {
    /// By the primary key.
    pub async fn chain(&self, chain: Uuid) -> Result<Option<Chain>, ReadError> {
        let query = format!("{CHAINS} WHERE chain_id = $1");
        let chain = sqlx::query_as(sqlx::AssertSqlSafe(query))
            .bind(chain)
            .fetch_optional(&mut **self.connection().await)
            .await?;
        Ok(self.with_steps(chain.into_iter().collect()).await?.pop())
    }

    /// The newest chains of a thread, oldest first. By index `chains_of_thread`.
    pub async fn chains_of_thread(&self, agent: &str, thread: &str, limit: u32) -> Result<Vec<Chain>, ReadError> {
        let query =
            format!("{CHAINS} WHERE agent = $1 AND thread_id = $2 ORDER BY sequence DESC, position DESC LIMIT $3");
        let chains = sqlx::query_as(sqlx::AssertSqlSafe(query)).bind(Key::from(agent)).bind(Key::from(thread));
        let mut chains: Vec<Chain> =
            chains.bind(i64::from(limit.clamp(1, MAX_ROWS))).fetch_all(&mut **self.connection().await).await?;
        chains.reverse();
        self.with_steps(chains).await
    }

    /// The newest chains of a task, newest first. By index `chains_of_task`.
    pub async fn chains_of_task(&self, task: Uuid, limit: u32) -> Result<Vec<Chain>, ReadError> {
        let query = format!("{CHAINS} WHERE task_id = $1 ORDER BY sequence DESC, position DESC LIMIT $2");
        let chains = sqlx::query_as(sqlx::AssertSqlSafe(query)).bind(task).bind(i64::from(limit.clamp(1, MAX_ROWS)));
        let chains = chains.fetch_all(&mut **self.connection().await).await?;
        self.with_steps(chains).await
    }

    async fn with_steps(&self, mut chains: Vec<Chain>) -> Result<Vec<Chain>, ReadError> {
        if chains.is_empty() {
            return Ok(chains);
        }
        let ids: Vec<Uuid> = chains.iter().map(|chain| chain.chain_id).collect();
        let steps: Vec<ChainStep> = sqlx::query_as(STEPS).bind(ids).fetch_all(&mut **self.connection().await).await?;
        for chain in &mut chains {
            chain.steps = steps.iter().filter(|step| step.chain_id == chain.chain_id).cloned().collect();
        }
        Ok(chains)
    }
}
