//! The progress of a replica in the partitions it owns, for status and metrics.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use kairo_proto::v1::ParkedAgent;

use crate::metrics::{
    Metrics,
    table::{INPUTS_WAITING, PARTITIONS, PARTITIONS_HANDED_OVER, PARTITIONS_OWNED, PARTITIONS_TAKEN},
};

/// The progress in a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnedPartitionProgress {
    /// Sequence of the last of its messages that was read.
    pub read: u64,
    /// Messages read but not handled yet.
    pub waiting: u64,
}

/// Counters since the replica started, and the partitions that it owns.
#[derive(Clone, Debug, Default)]
pub struct ReplicaProgress(Arc<ReplicaProgressState>);

#[derive(Debug, Default)]
struct ReplicaProgressState {
    partitions: Mutex<BTreeMap<u32, OwnedPartitionProgress>>,
    parked: Mutex<BTreeMap<u32, Vec<ParkedAgent>>>,
    takeovers: AtomicU64,
    handovers: AtomicU64,
    decisions: AtomicU64,
    model_requests: AtomicU64,
}

macro_rules! counters {
    ($($(#[$doc:meta])* $count:ident, $name:ident;)*) => {
        impl ReplicaProgress {
            $(
                $(#[$doc])*
                pub fn $name(&self) -> u64 {
                    self.0.$name.load(Ordering::Relaxed)
                }

                pub fn $count(&self) {
                    self.0.$name.fetch_add(1, Ordering::Relaxed);
                }
            )*
        }
    };
}

counters! {
    /// Partitions taken of replicas that had gone.
    count_takeover, takeovers;
    /// Partitions handed over to others.
    count_handover, handovers;
    /// Decisions committed.
    count_decision, decisions;
    /// Requests made to models, those included that came to nothing.
    count_model_request, model_requests;
}

impl ReplicaProgress {
    /// Has metrics say what it says, and of how many partitions.
    pub fn register_metrics(&self, metrics: &Metrics, partitions: u32) {
        metrics.observe(&PARTITIONS, move |say| say(f64::from(partitions), &[]));
        let of = self.clone();
        metrics.observe(&PARTITIONS_OWNED, move |say| say(of.lock_partitions().len() as f64, &[]));
        let of = self.clone();
        metrics.observe(&INPUTS_WAITING, move |say| {
            let waiting: u64 = of.lock_partitions().values().map(|standing| standing.waiting).sum();
            say(waiting as f64, &[]);
        });
        let of = self.clone();
        metrics.observe(&PARTITIONS_TAKEN, move |say| say(of.takeovers() as f64, &[]));
        let of = self.clone();
        metrics.observe(&PARTITIONS_HANDED_OVER, move |say| say(of.handovers() as f64, &[]));
    }

    pub fn set_progress(&self, partition: u32, standing: OwnedPartitionProgress) {
        self.lock_partitions().insert(partition, standing);
    }

    pub fn remove_partition(&self, partition: u32) {
        self.lock_partitions().remove(&partition);
        self.lock_parked().remove(&partition);
    }

    /// The last message of the log that was read, of any partition; 0 where none was.
    pub fn farthest_read(&self) -> u64 {
        self.lock_partitions().values().map(|standing| standing.read).max().unwrap_or(0)
    }

    /// Says which agents of a partition are parked.
    pub fn set_parked_agents(&self, partition: u32, agents: Vec<ParkedAgent>) {
        match agents.is_empty() {
            true => _ = self.lock_parked().remove(&partition),
            false => _ = self.lock_parked().insert(partition, agents),
        }
    }

    pub fn parked_agents(&self) -> Vec<ParkedAgent> {
        self.lock_parked().values().flatten().cloned().collect()
    }

    pub fn partitions(&self) -> BTreeMap<u32, OwnedPartitionProgress> {
        self.lock_partitions().clone()
    }

    fn lock_parked(&self) -> MutexGuard<'_, BTreeMap<u32, Vec<ParkedAgent>>> {
        self.0.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_partitions(&self) -> MutexGuard<'_, BTreeMap<u32, OwnedPartitionProgress>> {
        self.0.partitions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
