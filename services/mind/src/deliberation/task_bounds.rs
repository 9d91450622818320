//! Bounds on one queued task over all its sessions, where the profile sets them.

use kairo_proto::words::{ChainOutcome, TaskStatus};
use uuid::Uuid;

use super::Deliberation;
use crate::{session::Session, tasks::Task};

impl Deliberation<'_> {
    /// Returns the bound that a task has reached over all its sessions, if any.
    pub(super) fn reached_task_bound(&self, task: &Task) -> Option<String> {
        let bounds = self.mind.profile.as_ref().map(|profile| &profile.task).filter(|bounds| !bounds.is_nothing())?;
        let with_this = |taken: &Session| taken.with(self.decision.completions.len(), self.spent_here());
        task.worked.reached(bounds, self.input.envelope.time, with_this)
    }

    /// A task that has reached its own bound has failed for good.
    pub(super) fn end_over_bound(&mut self, turn_id: Uuid, task: &Task, reached: &str) {
        let reason = format!("the task took {reached}; what it did until then stands");
        self.settle();
        self.close_chain(turn_id, &ChainOutcome::Failed, &reason);
        self.end_task(turn_id, task, &TaskStatus::Failed, &reason);
    }
}
