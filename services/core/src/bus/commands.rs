//! Commands that agents declare in their profiles, as far as their definitions were read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kairo_proto::v1::AgentDefined;
use tokio_util::sync::CancellationToken;

use super::{
    Bus, BusError,
    consume::backoff,
    port::{Cause, Start},
};
use crate::{commands::Commands, record::Raw, subjects, watch};

/// Follows every agent's definition, without asking again and again.
#[derive(Clone)]
pub struct DeclaredCommands {
    bus: Bus,
    known: Arc<Mutex<Commands>>,
    /// The last definition that was read.
    read: watch::Sender<u64>,
}

impl DeclaredCommands {
    /// Follows definitions until `shutdown`, and knows at most `capacity` commands.
    pub fn follow(bus: &Bus, capacity: usize, shutdown: CancellationToken) -> Self {
        let known = Arc::new(Mutex::new(Commands::new(capacity)));
        let declared = Self { bus: bus.clone(), known, read: watch::Sender::new(0) };
        let following = declared.clone();
        bus.spawn(async move { _ = shutdown.run_until_cancelled(following.listen_on()).await });
        declared
    }

    /// What is known.
    pub fn known(&self) -> MutexGuard<'_, Commands> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until every definition is known that the log has now. Costs a round trip.
    pub async fn caught_up(&self) -> Result<(), BusError> {
        let last = self.bus.last_at_leader(&subjects::AGENT_DEFINED.stored_filter()).await?;
        // It ends only with this.
        let _ = self.read.subscribe().wait_for(|read| *read >= last).await;
        Ok(())
    }

    async fn listen_on(&self) {
        let mut failures = 0;
        loop {
            if let Err(error) = self.listen().await {
                tracing::debug!(%error, "following definitions broke off");
            }
            failures += 1;
            tokio::time::sleep(backoff(&self.bus.limits, failures)).await;
        }
    }

    async fn listen(&self) -> Result<(), Cause> {
        let filters = [subjects::AGENT_DEFINED.stored_filter()];
        let mut tail = self.bus.tail_of(&filters, Start::LastOfEach).await?;
        loop {
            for raw in tail.next().await? {
                let sequence = raw.sequence;
                self.take_in(&raw.standing());
                self.read.send_modify(|read| *read = sequence.max(*read));
            }
        }
    }

    /// What cannot be read declares nothing new.
    fn take_in(&self, raw: &Raw) {
        let Ok(record) = raw.read(self.bus.limits.max_body_bytes) else { return };
        let Some((_, agent)) = subjects::route(&raw.subject) else { return };
        let Some(AgentDefined { profile: Some(profile) }) = AgentDefined::of(&record.body) else { return };
        if !self.known().take(&agent, profile.commands.clone()) {
            tracing::warn!(%agent, "there are more commands than are known; those of the last agents by name are not");
        }
    }
}
