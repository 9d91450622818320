//! Hearing of messages that come while an agent is deciding, for agents that want to begin again then.
//!
//! A message is delivered to any replica. One that finds the agent busy says so, and whoever is deciding for it may be
//! listening. Missing it is no harm: the message is then decided on when its turn comes.

use async_nats::Subscriber;
use futures::StreamExt;
use kairo_core::{
    bus::{Bus, BusError},
    ids::Name,
    subjects::{self, AGENT_MESSAGE},
};

/// Says that the message at `sequence` has come and its agent is busy.
pub async fn announce(bus: &Bus, agent: &Name, sequence: u64) {
    let said = bus.client.publish(subjects::doorbell_of(agent), sequence.to_string().into()).await;
    if let Err(error) = said {
        tracing::debug!(%error, %agent, "nobody will hear of a message before its turn");
    }
}

/// Listening for what comes behind a place in the log.
pub struct Interjections {
    announced: Subscriber,
    read: u64,
    already: bool,
}

impl Interjections {
    /// Listens for messages of `agent` behind `read`; one that is there already counts.
    pub async fn behind(bus: &Bus, agent: &Name, read: u64) -> Result<Self, BusError> {
        let announced = bus.client.subscribe(subjects::doorbell_of(agent)).await;
        let announced =
            announced.map_err(|error| BusError::Unavailable { doing: "subscribing", source: error.into() })?;
        // After subscribing, so that none falls in between.
        let last = bus.last(&AGENT_MESSAGE.of(agent)).await?;
        Ok(Self { announced, read, already: last.is_some_and(|last| last.sequence > read) })
    }

    /// Returns when a message has come.
    pub async fn come(&mut self) {
        if self.already {
            return;
        }
        while let Some(message) = self.announced.next().await {
            let sequence = std::str::from_utf8(&message.payload).ok().and_then(|text| text.parse::<u64>().ok());
            if sequence.is_some_and(|sequence| sequence > self.read) {
                return;
            }
        }
        // The connection is gone for good, and the process with it.
        std::future::pending().await
    }
}
