//! Who has how much waiting for an agent, and whose is more than their share.

use std::{collections::BTreeMap, sync::Arc};

use kairo_core::{
    bus::congestion::{Of, Queue, pressure::Over, shares},
    sharing::part,
};
use kairo_mind::log::Log;

use super::Resident;

impl Resident {
    /// What waits in a queue of this agent.
    pub fn waiting_in(&self, queue: &Queue) -> usize {
        match &queue.of {
            Of::Share(user) => self.waiting_by_user().get(user.as_str()).copied().unwrap_or(0),
            Of::Everybody | Of::Line(_) => self.waiting(),
        }
    }

    fn waiting_by_user(&self) -> BTreeMap<Arc<str>, usize> {
        self.log.as_ref().map(Log::waiting_by_user).unwrap_or_default()
    }

    /// Its queues that take no more, where so much may wait for it.
    pub fn over(&self, limit: usize) -> Vec<Over> {
        let waiting = self.waiting();
        // Who has how many is looked at only where it may matter.
        let by_user = if waiting > part(limit, 0) { self.waiting_by_user() } else { BTreeMap::new() };
        shares::over(&self.name, limit, waiting, &by_user)
    }
}
