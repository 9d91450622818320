//! Chains and how far each of their steps is.

use serde::Serialize;
use serde_json::Value;
use sqlx::{query, query_as};
use uuid::Uuid;

use super::rows;
use crate::{
    ReadError, Snapshot,
    stored::{Key, Time, U32, U64},
};

/// A chain, with its steps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chain {
    pub chain_id: Uuid,
    /// Of the event that began it.
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
    pub steps: Vec<ChainStep>,
}

/// A step of a chain.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChainStep {
    #[serde(skip)]
    pub chain_id: Uuid,
    pub step: u32,
    /// Steps of a group run at once.
    pub group: u32,
    pub event: String,
    /// As they were written, with references not filled in.
    pub params: Value,
    /// What it was asked about, called or ended with, references filled in.
    pub filled: Option<Value>,
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

/// Chains, without their steps.
macro_rules! chains {
    ($rest:literal, $($parameters:tt)*) => {
        query!(
            r#"SELECT chain_id, sequence AS "sequence: U64", agent, thread_id, correlation_id, origin, task_id, plan,
                      started_at AS "started_at: Time", ended_at AS "ended_at: Time", outcome, reason
               FROM chains WHERE "# + $rest,
            $($parameters)*
        )
        .map(|row| Chain {
            chain_id: row.chain_id,
            sequence: row.sequence.into(),
            agent: row.agent,
            thread_id: row.thread_id,
            correlation_id: row.correlation_id,
            origin: row.origin,
            task_id: row.task_id,
            plan: row.plan,
            started_at: row.started_at,
            ended_at: row.ended_at,
            outcome: row.outcome,
            reason: row.reason,
            steps: Vec::new(),
        })
    };
}

impl Snapshot {
    /// By the primary key.
    pub async fn chain(&self, chain: Uuid) -> Result<Option<Chain>, ReadError> {
        let chain = chains!("chain_id = $1", chain).fetch_optional(&mut **self.connection().await).await?;
        Ok(self.with_steps(chain.into_iter().collect()).await?.pop())
    }

    /// The newest chains of a thread, oldest first. By index `chains_of_thread`.
    pub async fn chains_of_thread(&self, agent: &str, thread: &str, limit: u32) -> Result<Vec<Chain>, ReadError> {
        let chains = chains!(
            "agent = $1 AND thread_id = $2 ORDER BY sequence DESC, position DESC LIMIT $3",
            Key::from(agent) as _,
            Key::from(thread) as _,
            rows(limit)
        );
        let mut chains = chains.fetch_all(&mut **self.connection().await).await?;
        chains.reverse();
        self.with_steps(chains).await
    }

    /// The newest chains of a task, newest first. By index `chains_of_task`.
    pub async fn chains_of_task(&self, task: Uuid, limit: u32) -> Result<Vec<Chain>, ReadError> {
        let chains = chains!("task_id = $1 ORDER BY sequence DESC, position DESC LIMIT $2", task, rows(limit));
        let chains = chains.fetch_all(&mut **self.connection().await).await?;
        self.with_steps(chains).await
    }

    /// By the primary key.
    async fn with_steps(&self, mut chains: Vec<Chain>) -> Result<Vec<Chain>, ReadError> {
        if chains.is_empty() {
            return Ok(chains);
        }
        let ids: Vec<Uuid> = chains.iter().map(|chain| chain.chain_id).collect();
        let steps = query_as!(
            ChainStep,
            r#"
            SELECT chain_id, step AS "step: U32", group_no AS "group: U32", event, params, filled, decide, state,
                   approval_id, action_id, begun_at AS "begun_at: Time", ended_at AS "ended_at: Time", result, reason
            FROM chain_steps WHERE chain_id = ANY($1) ORDER BY chain_id, step"#,
            &ids,
        );
        let steps = steps.fetch_all(&mut **self.connection().await).await?;
        for chain in &mut chains {
            chain.steps = steps.iter().filter(|step| step.chain_id == chain.chain_id).cloned().collect();
        }
        Ok(chains)
    }
}
