//! The work of agents that waits for somebody or something.

use kairo_proto::v1::WaitRow;
use sqlx::query_as;

use crate::{
    ReadError, ReadSnapshot,
    output_columns::{At, Id},
    sql_values::U64,
};

impl ReadSnapshot {
    /// Returns a row for each reason for which work waits: how much of it, and the oldest. By indexes `approvals_waiting`,
    /// `offers_open` and `actions_in_flight`.
    pub async fn list_waits(&self) -> Result<Vec<WaitRow>, ReadError> {
        let waits = query_as!(
            WaitRow,
            r#"
            SELECT waits_for AS "waits_for!", number AS "count!: U64", since AS "since!: At", agent AS "agent!",
                   correlation_id AS "turn_id!: Id", user_id AS user, action_id AS "action_id!: Id", tool
            FROM (
                (SELECT 'consent' AS waits_for, count(*) OVER () AS number, requested_at AS since, agent, correlation_id,
                        user_id, action_id, tool
                 FROM approvals WHERE status = 'waiting' ORDER BY requested_at LIMIT 1)
                UNION ALL
                (SELECT 'choice', count(*) OVER (), offered_at, agent, correlation_id, user_id, NULL::uuid, NULL::text
                 FROM offers WHERE choice IS NULL AND settled_at IS NULL ORDER BY offered_at LIMIT 1)
                UNION ALL
                (SELECT 'runner', count(*) OVER (), decided_at, agent, correlation_id, NULL::text, action_id, tool
                 FROM actions WHERE ended_at IS NULL AND invoked_at IS NULL ORDER BY decided_at LIMIT 1)
                UNION ALL
                (SELECT 'tool', count(*) OVER (), invoked_at, agent, correlation_id, NULL::text, action_id, tool
                 FROM actions WHERE ended_at IS NULL AND invoked_at IS NOT NULL ORDER BY invoked_at LIMIT 1)
            ) AS oldest"#,
        );
        Ok(waits.fetch_all(&mut **self.connection().await).await?)
    }
}
