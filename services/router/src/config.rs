//! What router is configured with.

use kairo_core::{
    config::{Mistake, Validate, check},
    ids::Name,
    service_config,
};
use serde::{Deserialize, Serialize};

service_config! {
    /// Everything router is configured with.
    Config {
        /// How messages are addressed.
        router: RouterConfig,
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RouterConfig {
    /// The agent that gets messages which name none. Default `default`.
    pub default_agent: String,
    /// Agents known to exist that are kept in memory. Default 100000.
    pub known_agents: usize,
}

impl Default for RouterConfig {
    fn default() -> Self {
        Self { default_agent: "default".to_owned(), known_agents: 100_000 }
    }
}

impl Validate for RouterConfig {
    fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        check(&mut mistakes, "known_agents", self.known_agents, 1..=10_000_000, "agents");
        if let Err(error) = Name::parse(&self.default_agent) {
            mistakes.push(Mistake::new("default_agent", error.to_string(), "name an agent"));
        }
        mistakes
    }
}
