//! What the log says of a job's actions, and of the consents that they name.

use kairo_core::{
    bus::{BusError, ledger::NOBODY},
    decider::Decider,
    record::Record,
};
use uuid::Uuid;

use super::{Job, Runner};
use crate::{
    log,
    plan::{Actions, Asked, Fact, Known},
};

impl Runner {
    /// What there is to know before anything was tried: only a decision that was delivered before can have been begun, and any
    /// can have been stopped.
    pub(super) async fn known_at_first(&self, job: &Job<'_>) -> Result<Known, BusError> {
        if job.redelivered {
            return self.known(job).await;
        }
        let mut known = Known::default();
        self.note_stopped(job, &mut known).await?;
        Ok(known)
    }

    async fn note_stopped(&self, job: &Job<'_>, known: &mut Known) -> Result<(), BusError> {
        let stopped = self.stopped(job).await?;
        stopped.into_keys().for_each(|action| Actions::apply(known, &Fact::Canceled(action)));
        Ok(())
    }

    /// What the log says of the job's actions now.
    pub(super) async fn known(&self, job: &Job<'_>) -> Result<Known, BusError> {
        let actions: Vec<Uuid> = job.calls.iter().map(|call| call.asked.action).collect();
        let invoked = self.invocations.entries(&job.agent, job.since, &actions).await?;
        let ended = self.results.ended(&job.agent, job.since, &actions).await?;
        let mut known = Known::default();
        self.note_stopped(job, &mut known).await?;
        ended.iter().for_each(|action| Actions::apply(&mut known, &Fact::Ended(*action)));
        for (action, entry) in invoked {
            Actions::apply(&mut known, &Fact::Invoked(action));
            if ended.contains(&action) {
                continue;
            }
            // First: nobody works on what was withdrawn, even when it is too early to say so of whoever wrote that.
            if self.is_withdrawn(entry.sequence, action).await? {
                Actions::apply(&mut known, &Fact::Withdrawn(action));
            } else if self.liveness.is_held(&self.bus, &entry.by, action).await {
                Actions::apply(&mut known, &Fact::Held(action));
            }
        }
        for call in &job.calls {
            if self.is_consent_of_another(job, &call.asked).await? {
                Actions::apply(&mut known, &Fact::UsedUp(call.asked.action));
            }
        }
        Ok(known)
    }

    /// Whether the consent that a call names was used by another one.
    async fn is_consent_of_another(&self, job: &Job<'_>, asked: &Asked) -> Result<bool, BusError> {
        let Some(consent) = asked.consent() else { return Ok(false) };
        let used = self.invocations.record(&job.agent, asked.since(job.since), consent).await?;
        let by_it = |record: &Record| log::invocation(record, asked.action).is_some();
        Ok(used.is_some_and(|record| !by_it(&record)))
    }

    /// Whether the entry at `sequence` says that nobody shall begin the action.
    async fn is_withdrawn(&self, sequence: u64, action: Uuid) -> Result<bool, BusError> {
        let record = self.bus.at(sequence).await?;
        Ok(log::invocation(&record, action).is_some_and(|invocation| invocation.executor == NOBODY))
    }
}
