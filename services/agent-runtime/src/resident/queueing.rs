//! The queue of an agent: counts of its waiting inputs by user, and the users above their share.

use std::{collections::BTreeMap, sync::Arc};

use kairo_core::bus::congestion::{Of, Queue, pressure::Over, shares};
use kairo_mind::log::Log;

use super::Resident;

impl Resident {
    /// The number of inputs in a queue of this agent.
    pub fn waiting_in(&self, queue: &Queue) -> usize {
        match &queue.of {
            Of::Share(user) => self.waiting_by_user().get(user.as_str()).copied().unwrap_or(0),
            Of::Everybody | Of::Line(_) => self.waiting(),
        }
    }

    fn waiting_by_user(&self) -> BTreeMap<Arc<str>, usize> {
        self.log.as_ref().map(Log::waiting_by_user).unwrap_or_default()
    }

    /// Its queues that take no more, where `limit` inputs may wait.
    pub fn over(&self, limit: usize) -> Vec<Over> {
        shares::over(&self.name, limit, self.waiting(), || self.waiting_by_user())
    }
}
