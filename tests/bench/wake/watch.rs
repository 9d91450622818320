//! Seeing messages and decisions of agents as they are published.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use async_nats::Subscriber;
use futures::StreamExt;
use kairo_local::Login;
use kairo_tests::login;

use crate::Outcome;

/// When an agent was delivered a message, and when it had decided.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub message: Instant,
    pub decision: Instant,
}

/// Everything about agents that is published from its opening on.
pub struct Watch {
    published: Subscriber,
    messages: BTreeMap<String, Instant>,
    decisions: BTreeMap<String, Seen>,
}

impl Watch {
    pub async fn open(login: &Login) -> Outcome<Self> {
        let client = login::options(login).name("watch").connect(&login.url).await?;
        let published = client.subscribe("kairo.agent.>").await?;
        client.flush().await?;
        Ok(Self { published, messages: BTreeMap::new(), decisions: BTreeMap::new() })
    }

    /// The first decision of an agent since the opening.
    pub async fn decision(&mut self, agent: &str, within: Duration) -> Option<Seen> {
        let reading = async {
            while !self.decisions.contains_key(agent) {
                let Some(message) = self.published.next().await else { break };
                self.see(&message.subject, Instant::now());
            }
        };
        let _ = tokio::time::timeout(within, reading).await;
        self.decisions.get(agent).copied()
    }

    fn see(&mut self, subject: &str, now: Instant) {
        let mut tokens = subject.split('.').skip(2);
        let (Some(agent), Some(verb)) = (tokens.next(), tokens.next()) else { return };
        match verb {
            "message" => _ = self.messages.entry(agent.to_owned()).or_insert(now),
            "decision" => {
                let message = self.messages.get(agent).copied().unwrap_or(now);
                self.decisions.entry(agent.to_owned()).or_insert(Seen { message, decision: now });
            }
            _ => {}
        }
    }
}
