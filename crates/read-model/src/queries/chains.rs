//! Chains and how far each of their steps is.

use std::collections::HashMap;

use kairo_proto::v1::{ChainRow, ChainStepRow};
use sqlx::query;
use uuid::Uuid;

use super::row_limit;
use crate::{
    ReadError, ReadSnapshot,
    output_columns::{At, Id, Object},
    sql_values::{SqlKey, U32, U64},
};

/// A chain, of which the steps are asked for when it is known.
struct ChainHead {
    chain_id: Uuid,
    row: ChainRow,
}

macro_rules! chains {
    ($rest:literal, $($parameters:tt)*) => {
        query!(
            r#"SELECT chain_id, sequence AS "sequence: U64", agent, thread_id, correlation_id AS "correlation_id: Id", origin,
                      task_id AS "task_id!: Id", plan, started_at AS "started_at: At", ended_at AS "ended_at!: At",
                      outcome, reason
               FROM chains WHERE "# + $rest,
            $($parameters)*
        )
        .map(|row| ChainHead {
            chain_id: row.chain_id,
            row: ChainRow {
                chain_id: row.chain_id.to_string(),
                sequence: row.sequence.into(),
                agent: row.agent,
                thread_id: row.thread_id,
                correlation_id: row.correlation_id.into(),
                origin: row.origin,
                task_id: row.task_id.into(),
                plan: row.plan,
                started_at: row.started_at.into(),
                ended_at: row.ended_at.into(),
                outcome: row.outcome,
                reason: row.reason,
                steps: Vec::new(),
            },
        })
    };
}

impl ReadSnapshot {
    /// By the primary key.
    pub async fn find_chain(&self, chain: Uuid) -> Result<Option<ChainRow>, ReadError> {
        let chain = chains!("chain_id = $1", chain).fetch_optional(&mut **self.connection().await).await?;
        Ok(self.with_steps(chain.into_iter().collect()).await?.pop())
    }

    /// Returns several chains, by the primary key.
    pub(super) async fn chains_of(&self, ids: &[Uuid]) -> Result<Vec<ChainRow>, ReadError> {
        let chains = chains!("chain_id = ANY($1)", ids).fetch_all(&mut **self.connection().await).await?;
        self.with_steps(chains).await
    }

    /// The newest chains of a thread, oldest first. By index `chains_of_thread`.
    pub async fn chains_of_thread(&self, agent: &str, thread: &str, limit: u32) -> Result<Vec<ChainRow>, ReadError> {
        let chains = chains!(
            "agent = $1 AND thread_id = $2 ORDER BY sequence DESC, position DESC LIMIT $3",
            SqlKey::from(agent) as _,
            SqlKey::from(thread) as _,
            row_limit(limit)
        );
        let mut chains = chains.fetch_all(&mut **self.connection().await).await?;
        chains.reverse();
        self.with_steps(chains).await
    }

    /// The newest chains of a task, newest first. By index `chains_of_task`.
    pub async fn chains_of_task(&self, task: Uuid, limit: u32) -> Result<Vec<ChainRow>, ReadError> {
        let chains = chains!("task_id = $1 ORDER BY sequence DESC, position DESC LIMIT $2", task, row_limit(limit));
        let chains = chains.fetch_all(&mut **self.connection().await).await?;
        self.with_steps(chains).await
    }

    /// By the primary key.
    async fn with_steps(&self, chains: Vec<ChainHead>) -> Result<Vec<ChainRow>, ReadError> {
        if chains.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<Uuid> = chains.iter().map(|chain| chain.chain_id).collect();
        let steps = query!(
            r#"
            SELECT chain_id, step AS "step: U32", group_no AS "group: U32", event, params AS "params: Object",
                   filled AS "filled!: Object", decide, state, approval_id AS "approval_id!: Id",
                   action_id AS "action_id!: Id", begun_at AS "begun_at!: At", ended_at AS "ended_at!: At", result, reason
            FROM chain_steps WHERE chain_id = ANY($1) ORDER BY chain_id, step"#,
            &ids,
        );
        let steps = steps.map(|row| {
            let step = ChainStepRow {
                step: row.step.into(),
                group: row.group.into(),
                event: row.event,
                params: row.params.into(),
                filled: row.filled.into(),
                decide: row.decide,
                state: row.state,
                approval_id: row.approval_id.into(),
                action_id: row.action_id.into(),
                begun_at: row.begun_at.into(),
                ended_at: row.ended_at.into(),
                result: row.result,
                reason: row.reason,
            };
            (row.chain_id, step)
        });
        let mut of: HashMap<Uuid, Vec<ChainStepRow>> = HashMap::new();
        for (chain, step) in steps.fetch_all(&mut **self.connection().await).await? {
            of.entry(chain).or_default().push(step);
        }
        let with = |ChainHead { chain_id, row }| ChainRow { steps: of.remove(&chain_id).unwrap_or_default(), ..row };
        Ok(chains.into_iter().map(with).collect())
    }
}
