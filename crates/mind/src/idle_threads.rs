//! Threads make room for others: an agent keeps so many at hand, and of them so much, that it fits a snapshot.

use std::collections::BTreeSet;

use super::state::AgentState;

/// Threads an agent keeps at hand; the one idle longest makes room.
const THREADS: usize = 1_000;
/// Text all threads keep for the model, in bytes, so that a snapshot fits one message; the thread idle longest makes
/// room.
const MIND_BYTES: usize = 512 * 1024;

impl AgentState {
    pub(super) fn forget_idle_threads(&mut self) {
        let mut bytes: usize = self.threads.values().map(|thread| thread.bytes).sum();
        while self.threads.len() > THREADS || bytes > MIND_BYTES {
            let of_turns = self.turns.values().map(|turn| &turn.thread_id);
            let of_processes = self.processes.running.values().map(|process| &process.thread_id);
            let open: BTreeSet<&String> = of_turns.chain(of_processes).chain(self.work.threads.values()).collect();
            let idle =
                self.threads.iter().filter(|(id, _)| !open.contains(id)).min_by_key(|(_, thread)| thread.touched);
            let Some(id) = idle.map(|(id, _)| id.clone()) else { return };
            bytes -= self.threads.remove(&id).map_or(0, |thread| thread.bytes);
        }
    }
}
