//! Commands that agents declare in their profiles, as far as their definitions were read.
//!
//! There may be very many agents, few of which declare any: one who starts goes on where what is written down ends ([`saved_commands`]).

mod saved_commands;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kairo_proto::v1::AgentDefined;
use tokio_util::sync::CancellationToken;

use self::saved_commands::SavedCommands;
use super::{
    Bus, BusError,
    consume::backoff_delay,
    port::{Cause, TailStart},
};
use crate::{commands::CommandRegistry, record::RawMessage, subjects, watch};

/// Follows every agent's definition, without asking again and again.
#[derive(Clone)]
pub struct DeclaredCommands {
    bus: Bus,
    known: Arc<Mutex<CommandRegistry>>,
    /// Every definition up to here is known; 0 before the first was read.
    through: watch::Sender<u64>,
}

impl DeclaredCommands {
    /// Follows definitions until `shutdown`, and knows at most `capacity` commands.
    pub fn follow(bus: &Bus, capacity: usize, shutdown: CancellationToken) -> Self {
        let known = Arc::new(Mutex::new(CommandRegistry::new(capacity)));
        let declared = Self { bus: bus.clone(), known, through: watch::Sender::new(0) };
        let following = declared.clone();
        bus.spawn(async move { _ = shutdown.run_until_cancelled(following.tail_with_retry()).await });
        declared
    }

    /// Locks and returns the commands known so far.
    pub fn lock_commands(&self) -> MutexGuard<'_, CommandRegistry> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until every definition is known that the log has now, of which this is a message that was read. Costs a round
    /// trip, and another one where there is a definition that is not known yet.
    pub async fn catch_up(&self, at: u64) -> Result<(), BusError> {
        let definitions = subjects::AGENT_DEFINED.stored_filter();
        let through = *self.through.borrow();
        // The last of all would be looked for among all agents.
        if self.bus.has_message_after(&definitions, through).await? {
            let last = self.bus.last_at_leader(&definitions).await?;
            // It ends only with this.
            let _ = self.through.subscribe().wait_for(|through| *through >= last).await;
        }
        self.advance_to(at);
        Ok(())
    }

    fn advance_to(&self, at: u64) {
        self.through.send_modify(|through| *through = at.max(*through));
    }

    async fn tail_with_retry(&self) {
        let mut failures = 0;
        loop {
            if let Err(error) = self.tail_definitions().await {
                tracing::debug!(%error, "following definitions broke off");
            }
            failures += 1;
            tokio::time::sleep(backoff_delay(&self.bus.limits, failures)).await;
        }
    }

    async fn tail_definitions(&self) -> Result<(), Cause> {
        if *self.through.borrow() == 0 {
            self.load_saved().await;
        }
        // To have the server look for the last one of each agent would spare it next to nothing, and stop it for seconds.
        let start = TailStart::After(*self.through.borrow());
        let mut tail = self.bus.tail_filters(&[subjects::AGENT_DEFINED.stored_filter()], start).await?;
        loop {
            for raw in tail.next_batch().await? {
                let sequence = raw.sequence;
                self.apply_definition(&raw.without_carried_mark());
                self.advance_to(sequence);
            }
        }
    }

    /// Goes on where what is written down ends. That must not be needed: whoever has an older build's permissions is refused it.
    async fn load_saved(&self) {
        let kept = SavedCommands::load(&self.bus).await;
        let kept = kept.inspect_err(|error| tracing::debug!(%error, "all definitions are read"));
        let Ok(Some(kept)) = kept else { return };
        tracing::debug!(through = kept.through, "going on with the commands that were written down");
        for (agent, declared) in kept.declared {
            self.lock_commands().register(&agent, declared.into_iter().map(Into::into).collect());
        }
        self.advance_to(kept.through);
    }

    /// Takes the commands from an agent's definition. An unreadable message declares none.
    fn apply_definition(&self, raw: &RawMessage) {
        let Ok(record) = raw.read(self.bus.limits.max_body_bytes) else { return };
        let Some((_, agent)) = subjects::find_route(&raw.subject) else { return };
        let Some(AgentDefined { profile: Some(profile), .. }) = AgentDefined::of(&record.body) else { return };
        if !self.lock_commands().register(&agent, profile.commands.clone()) {
            tracing::warn!(%agent, "there are more commands than are known; those of the last agents by name are not");
        }
    }
}
