//! Writing down what a partition has come to: first the snapshots of all agents that changed, then the checkpoint that
//! rests on them.

use std::{collections::BTreeMap, sync::atomic::Ordering};

use futures::{StreamExt, stream};
use kairo_core::{
    bus::{Bus, BusError},
    ids::Name,
    ownership::checkpoint::CheckpointStore,
};
use kairo_mind::log::Snapshot;
use tokio::time::Instant;

use super::{Shard, ShardEvent, Shards};
use crate::{
    handover_state::{self, AgentHandover},
    resident::Resident,
    snapshots,
};

/// Snapshots that are written at once.
const AT_ONCE: usize = 32;
/// The factor by which a partition is saved sooner while its agents take too much memory.
const SOONER: usize = 8;
/// Memory of an agent beside its state, in bytes, and the factor by which a state is larger in memory than stored.
const RESIDENT_BYTES: usize = 2_048;
const IN_MEMORY: usize = 3;

/// The result of a save.
pub(super) struct SaveOutcome {
    checkpoints: CheckpointStore,
    agents: Vec<(Name, Result<snapshots::SavedSnapshot, BusError>)>,
    /// True if the checkpoint was written.
    done: bool,
    /// True for the last save before the handover.
    last: bool,
}

impl Shards {
    /// Returns true if agents use more memory than configured.
    pub(super) fn is_over_memory(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > self.config.cached_bytes
    }
}

impl Shard {
    /// Returns the number of messages after which a partition is saved ahead of schedule. Agents can only be evicted
    /// once they are saved, so that number is smaller while they use too much memory.
    pub(super) fn early_save_threshold(&self) -> usize {
        let messages = self.shards.config.checkpoint_messages;
        if self.shards.is_over_memory() { messages.div_ceil(SOONER) } else { messages }
    }

    pub(super) fn is_saving(&self) -> bool {
        self.checkpoints.is_none()
    }

    /// Saves, unless it is being done, or nothing has changed.
    pub(super) fn save(&mut self) {
        let last = self.releasing && !self.is_running();
        let Ok(log) = self.shards.bus.log_identity().map(|log| log.id) else { return };
        if self.catching_up.is_first_pass() && (self.releasing || self.since_saved < self.early_save_threshold()) {
            // Nothing was decided, so the last checkpoint says all.
            self.all_saved = last;
            return;
        }
        let Some(checkpoints) = self.checkpoints.take() else { return };
        let through = self.checkpoint_position(checkpoints.last.through);
        let busy: Vec<Name> =
            self.agents.awake().filter(|resident| resident.is_busy()).map(|resident| resident.name.clone()).collect();
        let changed: Vec<(Name, u64, Snapshot)> = self
            .agents
            .awake_mut()
            .filter_map(|resident| Some((resident.name.clone(), resident.revision, resident.snapshot(log)?)))
            .collect();
        let left = last.then(|| self.answers_to_hand_over()).filter(|left| self.had_handovers || !left.is_empty());
        self.saved = Instant::now();
        self.since_saved = 0;
        if changed.is_empty() && left.is_none() && checkpoints.already_covers(through, &busy) {
            self.checkpoints = Some(checkpoints);
            self.all_saved = last;
            return self.evict_idle();
        }
        let bus = self.shards.bus.clone();
        let told = self.events.clone();
        let partition = self.partition;
        self.spawn(async move {
            if let Some(left) = left {
                handover_state::write(&bus, partition, left).await;
            }
            let _ =
                told.send(ShardEvent::Saved(Box::new(write(&bus, checkpoints, changed, through, busy, last).await)));
        });
    }

    /// Returns the paid answers to hand over to the next owner, including those received from the previous one for
    /// agents that have not resumed here.
    fn answers_to_hand_over(&self) -> BTreeMap<Name, AgentHandover> {
        let mut left = self.handovers.clone();
        left.extend(self.agents.all().filter_map(|resident| Some((resident.name.clone(), resident.to_handover()?))));
        left
    }

    /// Everything up to here is in a snapshot or needs none, once all that changed is saved.
    fn checkpoint_position(&self, before: u64) -> u64 {
        if self.agents.awake().any(|resident| resident.reloading) {
            return before;
        }
        let held_back = self.agents.awake().filter_map(Resident::first_held_back);
        let unwritten = self.dead_letters.first().copied();
        held_back.chain(unwritten).map(|first| first - 1).fold(self.read, u64::min)
    }

    pub(super) fn finish_save(&mut self, saved: SaveOutcome) {
        self.checkpoints = Some(saved.checkpoints);
        for (agent, outcome) in saved.agents {
            let Some(resident) = self.agents.get_mut(&agent) else { continue };
            match outcome {
                Ok(snapshots::SavedSnapshot { revision, size }) => {
                    resident.revision = revision;
                    let bytes = estimate_memory(size);
                    let before = std::mem::replace(&mut resident.bytes, bytes);
                    // One that is being read again is counted when it is here.
                    if resident.log.is_some() {
                        self.shards.bytes.fetch_sub(before, Ordering::Relaxed);
                        self.shards.bytes.fetch_add(bytes, Ordering::Relaxed);
                    }
                }
                Err(error) => {
                    tracing::warn!(%agent, %error, "a snapshot was not written");
                    resident.dirty = true;
                }
            }
        }
        self.all_saved = saved.last && saved.done;
        // What failed is tried again at the next look: while the server is away it fails at once.
        if self.releasing && saved.done && !saved.last {
            return self.save();
        }
        self.evict_idle();
    }

    /// Lets go of agents that rest, those that rest longest first, while all of them together take too much memory.
    fn evict_idle(&mut self) {
        self.agents.rest_idle();
        while self.shards.is_over_memory()
            && let Some(forgotten) = self.agents.evict()
        {
            self.shards.bytes.fetch_sub(forgotten.bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        let loaded = self.agents.all().filter(|resident| resident.log.is_some());
        let bytes = loaded.map(|resident| resident.bytes).sum();
        self.shards.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Estimates the memory of an agent from the size of its stored state, in bytes.
fn estimate_memory(size: usize) -> usize {
    RESIDENT_BYTES + IN_MEMORY * size
}

async fn write(
    bus: &Bus,
    mut checkpoints: CheckpointStore,
    changed: Vec<(Name, u64, Snapshot)>,
    through: u64,
    busy: Vec<Name>,
    last: bool,
) -> SaveOutcome {
    let save = async |(agent, revision, snapshot): (Name, u64, Snapshot)| {
        let outcome = snapshots::save(bus, &agent, &snapshot, revision).await;
        (agent, outcome)
    };
    let agents: Vec<_> = stream::iter(changed.into_iter().map(save)).buffer_unordered(AT_ONCE).collect().await;
    // A checkpoint rests on every snapshot before it.
    let mut done = agents.iter().all(|(_, outcome)| outcome.is_ok());
    if done && let Err(error) = checkpoints.write(through, busy).await {
        tracing::debug!(%error, "a checkpoint was not written");
        done = false;
    }
    SaveOutcome { checkpoints, agents, done, last }
}
