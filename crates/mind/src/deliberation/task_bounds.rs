//! Bounds on one queued task over all its sessions, where the profile sets them.

use kairo_proto::words::{ChainOutcome, TaskStatus};
use uuid::Uuid;

use super::Deliberation;
use crate::{tasks::Task, work_session::WorkSession};

impl Deliberation<'_> {
    /// Returns the bound that a task has reached over all its sessions, if any.
    pub(super) fn reached_task_bound(&self, task: &Task) -> Option<String> {
        let bounds = self.mind.profile.as_ref().map(|profile| &profile.task).filter(|bounds| !bounds.is_nothing())?;
        let with_this = |taken: &WorkSession| taken.with_usage(self.decision.completions.len(), self.spent_here());
        task.worked.reached_bound(bounds, self.input.envelope.time, with_this)
    }

    /// A task that has reached its own bound has failed for good.
    pub(super) fn end_over_bound(&mut self, turn_id: Uuid, task: &Task, reached: &str) {
        let reason = format!("the task took {reached}; what it did until then stands");
        self.apply_decided();
        self.end_chain_of(turn_id, &ChainOutcome::Failed, &reason);
        self.end_task(turn_id, task, &TaskStatus::Failed, &reason);
    }
}
