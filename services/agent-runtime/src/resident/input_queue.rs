//! The queue of an agent: counts of its waiting inputs by user, and the users above their share.

use std::{collections::BTreeMap, sync::Arc};

use kairo_core::bus::congestion::{InputQueue, QueueScope, backpressure::QueueOverLimit, shares};
use kairo_mind::log::Log;

use super::Resident;

impl Resident {
    /// The number of inputs in a queue of this agent.
    pub fn pending_in(&self, queue: &InputQueue) -> usize {
        match &queue.of {
            QueueScope::Share(user) => self.pending_by_user().get(user.as_str()).copied().unwrap_or(0),
            QueueScope::Everybody | QueueScope::Line(_) => self.pending_inputs(),
        }
    }

    fn pending_by_user(&self) -> BTreeMap<Arc<str>, usize> {
        self.log.as_ref().map(Log::pending_by_user).unwrap_or_default()
    }

    /// Its queues that take no more, where `limit` inputs may wait.
    pub fn full_queues(&self, limit: usize) -> Vec<QueueOverLimit> {
        shares::queues_over_limit(&self.name, limit, self.pending_inputs(), || self.pending_by_user())
    }
}
