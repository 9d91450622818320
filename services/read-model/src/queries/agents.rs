//! Agents and what they are made from.

use serde::Serialize;
use serde_json::Value;
use sqlx::FromRow;

use crate::{
    ReadError, Snapshot,
    stored::{Key, Time},
};

/// An agent, with the profile in force.
#[derive(Clone, Debug, PartialEq, Serialize, FromRow)]
pub struct Agent {
    pub agent: String,
    /// `AgentProfile` of the contract, in proto3's JSON mapping.
    pub profile: Value,
    /// Of the event that defined it.
    #[sqlx(try_from = "i64")]
    pub sequence: u64,
    pub defined_at: Time,
}

/// All of them: agents are as many as were defined by hand.
const AGENTS: &str = "SELECT agent, profile, sequence, defined_at FROM agents ORDER BY agent";
/// By the primary key.
const AGENT: &str = "SELECT agent, profile, sequence, defined_at FROM agents WHERE agent = $1";

impl Snapshot {
    /// In the order of their ids.
    pub async fn agents(&self) -> Result<Vec<Agent>, ReadError> {
        Ok(sqlx::query_as(AGENTS).fetch_all(&mut **self.connection().await).await?)
    }

    pub async fn agent(&self, agent: &str) -> Result<Option<Agent>, ReadError> {
        Ok(sqlx::query_as(AGENT).bind(Key::from(agent)).fetch_optional(&mut **self.connection().await).await?)
    }
}
