//! Agents and what they are made from.

use serde::Serialize;
use serde_json::Value;
use sqlx::query_as;

use crate::{
    ReadError, Snapshot,
    stored::{Key, Time, U64},
};

/// An agent, with the profile in force.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agent {
    pub agent: String,
    /// `AgentProfile` of the contract, in proto3's JSON mapping.
    pub profile: Value,
    /// Of the event that defined it.
    pub sequence: u64,
    pub defined_at: Time,
}

macro_rules! agents {
    ($rest:literal $($parameters:tt)*) => {
        query_as!(
            Agent,
            r#"SELECT agent, profile, sequence AS "sequence: U64", defined_at AS "defined_at: Time" FROM agents "# + $rest
            $($parameters)*
        )
    };
}

impl Snapshot {
    /// In the order of their ids. All of them: agents are as many as were defined by hand.
    pub async fn agents(&self) -> Result<Vec<Agent>, ReadError> {
        Ok(agents!("ORDER BY agent").fetch_all(&mut **self.connection().await).await?)
    }

    /// By the primary key.
    pub async fn agent(&self, agent: &str) -> Result<Option<Agent>, ReadError> {
        let agent = agents!("WHERE agent = $1", Key::from(agent) as _);
        Ok(agent.fetch_optional(&mut **self.connection().await).await?)
    }
}
