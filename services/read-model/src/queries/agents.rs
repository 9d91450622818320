//! Agents and what they are made from.

use kairo_proto::v1::{AgentProfile, AgentRow};
use sqlx::{query_as, types::Json};

use crate::{
    ReadError, Snapshot,
    shown::At,
    stored::{Key, U64},
};

#[derive(sqlx::Type)]
#[sqlx(transparent)]
struct Profile(Json<AgentProfile>);

impl From<Profile> for Option<AgentProfile> {
    fn from(profile: Profile) -> Self {
        Some(profile.0.0)
    }
}

macro_rules! agents {
    ($rest:literal $($parameters:tt)*) => {
        query_as!(
            AgentRow,
            r#"SELECT agent, profile AS "profile: Profile", sequence AS "sequence: U64", defined_at AS "defined_at: At" FROM agents "# + $rest
            $($parameters)*
        )
    };
}

impl Snapshot {
    /// In the order of their ids. All of them: agents are as many as were defined by hand.
    pub async fn agents(&self) -> Result<Vec<AgentRow>, ReadError> {
        Ok(agents!("ORDER BY agent").fetch_all(&mut **self.connection().await).await?)
    }

    /// By the primary key.
    pub async fn agent(&self, agent: &str) -> Result<Option<AgentRow>, ReadError> {
        let agent = agents!("WHERE agent = $1", Key::from(agent) as _);
        Ok(agent.fetch_optional(&mut **self.connection().await).await?)
    }
}
