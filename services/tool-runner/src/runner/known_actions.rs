//! Reads the state of a job's actions, and of the consents they name, from the log.

use std::collections::BTreeMap;

use kairo_core::{
    bus::{BusError, canceled_calls, ledger::NOBODY, liveness::ActionHold},
    decider::Decider,
    record::Record,
};
use kairo_proto::v1::AgentDecision;
use uuid::Uuid;

use super::{CallTurn, Job, Runner};
use crate::{
    invoke_record,
    plan::{ActionFact, ActionRequest, Actions, Disposition, KnownActions},
};

impl Runner {
    /// Returns the known facts about a decision that was just delivered. Only a redelivered decision can have begun,
    /// and one made just now is hardly canceled yet: the check before its calls begin covers that.
    pub(super) async fn known_on_delivery(&self, job: &Job<'_>) -> Result<KnownActions, BusError> {
        if !job.is_original {
            return self.known_after_waiting(job).await;
        }
        let mut known = KnownActions::default();
        apply_cancels(canceled_by_own_decision(job), &mut known);
        Ok(known)
    }

    /// Looks up what is known of calls that have waited for room since their delivery.
    pub(super) async fn known_after_waiting(&self, job: &Job<'_>) -> Result<KnownActions, BusError> {
        if job.redelivered {
            return self.read_known(job).await;
        }
        let mut known = KnownActions::default();
        apply_cancels(self.canceled_calls(job).await?, &mut known);
        Ok(known)
    }

    /// Reads the present state of the job's actions from the log.
    pub(super) async fn read_known(&self, job: &Job<'_>) -> Result<KnownActions, BusError> {
        let actions: Vec<Uuid> = job.calls.iter().map(|call| call.request.action).collect();
        let invoked = self.invocations.entries_about(&job.agent, job.since, &actions).await?;
        let ended = self.results.ended_actions(&job.agent, job.since, &actions).await?;
        let mut known = KnownActions::default();
        apply_cancels(self.canceled_calls(job).await?, &mut known);
        ended.iter().for_each(|action| Actions::apply(&mut known, &ActionFact::Ended(*action)));
        for (action, entry) in invoked {
            Actions::apply(&mut known, &ActionFact::Invoked(action));
            if ended.contains(&action) {
                continue;
            }
            // First: nobody works on what was withdrawn, even when it is too early to say so of whoever wrote that.
            if self.is_withdrawn(entry.sequence, action).await? {
                Actions::apply(&mut known, &ActionFact::Withdrawn(action));
            } else if self.liveness.is_held(&self.bus, &entry.by, action).await {
                Actions::apply(&mut known, &ActionFact::Held(action));
            }
        }
        for call in &job.calls {
            if self.is_approval_used_elsewhere(job, &call.request).await? {
                Actions::apply(&mut known, &ActionFact::UsedUp(call.request.action));
            }
        }
        Ok(known)
    }

    /// Revises the dispositions of calls entered in the ledger at `sequence`: calls that an earlier decision cancels do
    /// not begin. Only the log tells which came first, the order to stop a call or its beginning.
    pub(super) async fn withdraw_canceled(
        &self,
        job: &Job<'_>,
        turns: &[CallTurn<'_>],
        mut begun: Vec<(Disposition, Option<ActionHold>)>,
        sequence: u64,
    ) -> Result<Vec<(Disposition, Option<ActionHold>)>, BusError> {
        let begins_here =
            |disposition: Disposition, turn: &CallTurn<'_>| disposition == Disposition::Begin && !turn.call.handed_over;
        let is_any_begun = turns.iter().zip(&begun).any(|(turn, (disposition, _))| begins_here(*disposition, turn));
        let stands_next = job.is_original && sequence == job.decision.sequence + 1;
        if !is_any_begun || stands_next {
            return Ok(begun);
        }
        let stopped = self.canceled_calls(job).await?;
        for (turn, (disposition, _)) in turns.iter().zip(&mut begun) {
            let is_stopped = stopped.get(&turn.call.request.action).is_some_and(|at| *at < sequence);
            if is_stopped && begins_here(*disposition, turn) {
                *disposition = Disposition::Withdraw;
            }
        }
        Ok(begun)
    }

    /// Returns the job's calls that its decision or later ones cancel, with the position of that decision in the log.
    async fn canceled_calls(&self, job: &Job<'_>) -> Result<BTreeMap<Uuid, u64>, BusError> {
        let actions: Vec<Uuid> = job.calls.iter().map(|call| call.request.action).collect();
        // Behind the original of a copy there may be a decision that stops its calls.
        let newest = if job.is_original { job.decision.sequence } else { job.since };
        let mut stopped = self.cancels.canceled_among(&job.agent, job.since, newest, &actions).await?;
        stopped.extend(canceled_by_own_decision(job));
        Ok(stopped)
    }

    /// Returns true if another call has used the consent that a call names.
    async fn is_approval_used_elsewhere(&self, job: &Job<'_>, asked: &ActionRequest) -> Result<bool, BusError> {
        let Some(consent) = asked.approval_key() else { return Ok(false) };
        let used = self.invocations.entry_record(&job.agent, asked.ledger_start(job.since), consent).await?;
        let by_it = |record: &Record| invoke_record::invocation(record, asked.action).is_some();
        Ok(used.is_some_and(|record| !by_it(&record)))
    }

    /// Returns true if the entry at `sequence` withdraws the action, so that nobody begins it.
    async fn is_withdrawn(&self, sequence: u64, action: Uuid) -> Result<bool, BusError> {
        let record = self.bus.record_at(sequence).await?;
        Ok(invoke_record::invocation(&record, action).is_some_and(|invocation| invocation.executor == NOBODY))
    }
}

/// Returns the calls that the job's own decision cancels, with the decision's position in the log.
fn canceled_by_own_decision(job: &Job<'_>) -> BTreeMap<Uuid, u64> {
    let stopped = AgentDecision::of(&job.decision.body).into_iter().flat_map(canceled_calls::calls_stopped_by);
    let is_called = |action: &Uuid| job.calls.iter().any(|call| call.request.action == *action);
    stopped.filter(is_called).map(|action| (action, job.decision.sequence)).collect()
}

fn apply_cancels(stopped: BTreeMap<Uuid, u64>, known: &mut KnownActions) {
    stopped.into_keys().for_each(|action| Actions::apply(known, &ActionFact::Canceled(action)));
}
