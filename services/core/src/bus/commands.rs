//! Commands that agents declare in their profiles, as far as their definitions were read.
//!
//! There may be very many agents, few of which declare any: one who starts goes on where what is written down ends ([`kept`]).

mod kept;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kairo_proto::v1::AgentDefined;
use tokio_util::sync::CancellationToken;

use self::kept::Kept;
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
    /// Every definition up to here is known; 0 before the first was read.
    through: watch::Sender<u64>,
}

impl DeclaredCommands {
    /// Follows definitions until `shutdown`, and knows at most `capacity` commands.
    pub fn follow(bus: &Bus, capacity: usize, shutdown: CancellationToken) -> Self {
        let known = Arc::new(Mutex::new(Commands::new(capacity)));
        let declared = Self { bus: bus.clone(), known, through: watch::Sender::new(0) };
        let following = declared.clone();
        bus.spawn(async move { _ = shutdown.run_until_cancelled(following.listen_on()).await });
        declared
    }

    /// Locks and returns the commands known so far.
    pub fn known(&self) -> MutexGuard<'_, Commands> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until every definition is known that the log has now, of which this is a message that was read. Costs a round
    /// trip, and another one where there is a definition that is not known yet.
    pub async fn caught_up(&self, at: u64) -> Result<(), BusError> {
        let definitions = subjects::AGENT_DEFINED.stored_filter();
        let through = *self.through.borrow();
        // The last of all would be looked for among all agents.
        if self.bus.is_any_behind(&definitions, through).await? {
            let last = self.bus.last_at_leader(&definitions).await?;
            // It ends only with this.
            let _ = self.through.subscribe().wait_for(|through| *through >= last).await;
        }
        self.got_to(at);
        Ok(())
    }

    fn got_to(&self, at: u64) {
        self.through.send_modify(|through| *through = at.max(*through));
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
        if *self.through.borrow() == 0 {
            self.take_over().await;
        }
        // To have the server look for the last one of each agent would spare it next to nothing, and stop it for seconds.
        let start = Start::After(*self.through.borrow());
        let mut tail = self.bus.tail_of(&[subjects::AGENT_DEFINED.stored_filter()], start).await?;
        loop {
            for raw in tail.next().await? {
                let sequence = raw.sequence;
                self.take_in(&raw.standing());
                self.got_to(sequence);
            }
        }
    }

    /// Goes on where what is written down ends. That must not be needed: whoever has an older build's permissions is refused it.
    async fn take_over(&self) {
        let kept = Kept::read(&self.bus).await;
        let kept = kept.inspect_err(|error| tracing::debug!(%error, "all definitions are read"));
        let Ok(Some(kept)) = kept else { return };
        tracing::debug!(through = kept.through, "going on with the commands that were written down");
        for (agent, declared) in kept.declared {
            self.known().take(&agent, declared.into_iter().map(Into::into).collect());
        }
        self.got_to(kept.through);
    }

    /// Takes the commands from an agent's definition. An unreadable message declares none.
    fn take_in(&self, raw: &Raw) {
        let Ok(record) = raw.read(self.bus.limits.max_body_bytes) else { return };
        let Some((_, agent)) = subjects::route(&raw.subject) else { return };
        let Some(AgentDefined { profile: Some(profile) }) = AgentDefined::of(&record.body) else { return };
        if !self.known().take(&agent, profile.commands.clone()) {
            tracing::warn!(%agent, "there are more commands than are known; those of the last agents by name are not");
        }
    }
}
