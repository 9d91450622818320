//! agent-runtime's `memory.rs`: an agent's state in memory, read from a snapshot and the log.

use kairo_agent_runtime::mind::log::{Diverged, Log, Snapshot};
use kairo_core::{bus::BusError, ids::Name};

use crate::{replica::unavailable, runtime::Runtime, steps::step};

/// Decisions between snapshots.
const SNAPSHOT_EVERY: u32 = 2;

/// What a replica keeps of one agent.
#[derive(Default)]
pub struct Mind {
    pub log: Option<Log>,
    pub claim_revision: u64,
    unsaved: u32,
}

impl Runtime {
    pub async fn catch_up(&self, agent: &Name, mind: &mut Mind, at_least: u64) -> Result<(), BusError> {
        for _ in 0..2 {
            let mut log = match mind.log.take() {
                Some(log) => log,
                None => self.restore(agent).await,
            };
            let records = self.replica.read_agent(agent, log.read).await;
            match records.into_iter().try_for_each(|record| log.push(record)) {
                Ok(()) if log.read >= at_least => {
                    mind.log = Some(log);
                    return Ok(());
                }
                Ok(()) => break,
                Err(Diverged) => self.replica.note(|| format!("somebody decided otherwise for {agent:?}")),
            }
        }
        Err(unavailable("reading an agent's log"))
    }

    async fn restore(&self, agent: &Name) -> Log {
        step().await;
        let world = self.replica.world.borrow();
        let snapshot = world.snapshots.get(agent).map(|bytes| serde_json::from_slice::<Snapshot>(bytes).unwrap());
        snapshot.and_then(Log::resume).unwrap_or_default()
    }

    pub async fn save_now_and_then(&self, agent: &Name, mind: &mut Mind) {
        mind.unsaved += 1;
        let Some(log) = mind.log.as_ref().filter(|log| log.at_rest()) else { return };
        if mind.unsaved >= SNAPSHOT_EVERY {
            mind.unsaved = 0;
            let bytes = serde_json::to_vec(&log.snapshot()).unwrap();
            step().await;
            let mut world = self.replica.world.borrow_mut();
            world.snapshots.insert(agent.clone(), bytes.clone());
            world.snapshots_ever.push((agent.clone(), bytes));
        }
    }
}
