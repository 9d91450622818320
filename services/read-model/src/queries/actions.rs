//! What agents have asked for and not had an answer to.

use serde::Serialize;
use serde_json::Value;
use sqlx::{FromRow, Postgres, QueryBuilder};
use uuid::Uuid;

use crate::{
    MAX_ROWS, ReadError, ReadModel,
    stored::{Key, Time},
};

/// A tool call without an end.
#[derive(Clone, Debug, PartialEq, Serialize, FromRow)]
pub struct ActionInFlight {
    pub action_id: Uuid,
    /// Of the decision that asked for it.
    #[sqlx(try_from = "i64")]
    pub sequence: u64,
    pub agent: String,
    pub thread_id: Option<String>,
    pub correlation_id: Uuid,
    pub tool: String,
    pub arguments: Value,
    /// `asked` or `running`.
    pub status: String,
    pub decided_at: Time,
    pub invoked_at: Option<Time>,
    /// The replica that runs it.
    pub runner: Option<String>,
}

/// By index `actions_in_flight`, which holds nothing else.
fn in_flight(agent: Option<&str>) -> QueryBuilder<Postgres> {
    let mut sql = QueryBuilder::new(
        "SELECT action_id, sequence, agent, thread_id, correlation_id, tool, arguments, status, decided_at, \
         invoked_at, runner FROM actions WHERE ended_at IS NULL",
    );
    if let Some(agent) = agent {
        sql.push(" AND agent = ").push_bind(Key::from(agent));
    }
    sql.push(" ORDER BY sequence, action_id LIMIT ").push_bind(i64::from(MAX_ROWS));
    sql
}

impl ReadModel {
    /// The oldest [`MAX_ROWS`], of one agent or of all.
    pub async fn actions_in_flight(&self, agent: Option<&str>) -> Result<Vec<ActionInFlight>, ReadError> {
        Ok(in_flight(agent).build_query_as().fetch_all(&self.pool).await?)
    }
}
