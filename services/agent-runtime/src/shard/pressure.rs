//! Saying which agents have more waiting than they take on, so that the boundary takes no more messages for them. What is
//! stored is decided on all the same.

use std::time::Duration;

use kairo_core::{bus::congestion, ids::Name};
use tokio::time::Instant;

use super::Shard;

/// How often it is said again while it lasts: several times within the lifetime of what is said.
const AGAIN: Duration = Duration::from_secs(5);

impl Shard {
    /// Looks which agents are over the bound, and which are well below it again.
    pub(super) fn tell_of_pressure(&mut self) {
        let limit = self.shards.config.pending_inputs;
        let now = Instant::now();
        for (name, resident) in &self.agents {
            let waiting = resident.waiting();
            let said = self.pressed.get(name).copied();
            if waiting > limit && said.is_none_or(|said| now.duration_since(said) >= AGAIN) {
                self.pressed.insert(name.clone(), now);
                let (bus, name) = (self.shards.bus.clone(), name.clone());
                let (waiting, limit) = (waiting as u64, limit as u64);
                let telling = async move { congestion::announce(&bus, &name, waiting, limit).await };
                self.tasks.spawn(self.shards.bus.host(telling));
            }
        }
        let is_over = |name: &Name| self.agents.get(name).is_none_or(|resident| resident.waiting() <= limit / 2);
        let relieved: Vec<Name> = self.pressed.keys().filter(|name| is_over(name)).cloned().collect();
        for name in relieved {
            self.pressed.remove(&name);
            let bus = self.shards.bus.clone();
            self.spawn(async move { congestion::withdraw(&bus, &name).await });
        }
    }
}
