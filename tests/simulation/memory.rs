//! agent-runtime's `memory.rs`: an agent's state in memory, read from a snapshot and the log.

use kairo_agent_runtime::mind::log::{Diverged, Log, Snapshot};
use kairo_core::{bus::BusError, ids::Name, record::Record};
use kairo_proto::Body;
use uuid::Uuid;

use crate::{flaw::Flaw, replica::unavailable, runtime::Runtime, steps::step};

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
            let push = |record| {
                let record = if self.replica.has(Flaw::OccurrenceIgnored) { as_next(&log, record) } else { record };
                log.push(record)
            };
            match records.into_iter().try_for_each(push) {
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

/// Something that is due, as if it were what is due next.
fn as_next(log: &Log, mut record: Record) -> Record {
    if let Body::TaskDue(due) = &mut record.body {
        let task = Uuid::parse_str(&due.task_id).ok().and_then(|id| log.state.tasks.open.get(&id));
        due.occurrence = task.and_then(|task| task.next()).map_or(due.occurrence, |(_, next)| next);
    }
    record
}
