//! The configuration of router.

use kairo_core::{
    config::{Mistake, Validate, check},
    ids::Name,
    service_config,
};
use serde::{Deserialize, Serialize};

service_config! {
    /// The whole configuration of router.
    Config {
        /// The settings for addressing messages.
        router: RouterConfig,
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RouterConfig {
    /// The agent for messages that name none. Default `default`.
    pub default_agent: String,
    /// Agents known to exist that are kept in memory. Default 100000.
    pub known_agents: usize,
    /// Users whose agent, the one they speak with, is kept in memory by each partition; for others the log is read.
    /// Default 100000.
    pub known_users: usize,
    /// Maximum number of commands of agents that are known; beyond that, those of the last agents by name are left out.
    /// Default 2000.
    pub known_commands: usize,
    /// Messages of the log after which a checkpoint of the known commands is written, from which the next start
    /// continues. Default 50000.
    pub commands_kept_after: u64,
    /// Maximum number of messages of one user to one agent waiting to be handed on. Beyond that the gateway is told to
    /// refuse further ones with 429 until half of them are handed on. Default 1000.
    pub pending_messages: usize,
}

impl Default for RouterConfig {
    fn default() -> Self {
        Self {
            default_agent: "default".to_owned(),
            known_agents: 100_000,
            known_users: 100_000,
            known_commands: 2_000,
            commands_kept_after: 50_000,
            pending_messages: 1_000,
        }
    }
}

impl Validate for RouterConfig {
    fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        check(&mut mistakes, "known_agents", self.known_agents, 1..=10_000_000, "agents");
        check(&mut mistakes, "known_users", self.known_users, 1..=10_000_000, "users");
        check(&mut mistakes, "known_commands", self.known_commands, 0..=100_000, "commands");
        check(&mut mistakes, "commands_kept_after", self.commands_kept_after, 1..=10_000_000, "messages");
        check(&mut mistakes, "pending_messages", self.pending_messages, 1..=1_000_000, "messages");
        if let Err(error) = Name::parse(&self.default_agent) {
            mistakes.push(Mistake::new("default_agent", error.to_string(), "name an agent"));
        }
        mistakes
    }
}
