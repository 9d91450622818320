//! An agent's state in memory: read from a snapshot and the log, kept while there is room, read on from where it was.

use async_nats::jetstream::kv::Store;
use kairo_core::{
    bus::{Bus, BusError, read::PAGE},
    ids::Name,
    slots::{Slot, Slots},
    subjects::{self, AGENT_DECISION, SNAPSHOTS_BUCKET},
};

use crate::mind::log::{Diverged, Log, Snapshot};

/// Largest snapshot that is written, in bytes: what NATS takes as one message by default, with room for headers.
const SNAPSHOT_BYTES: usize = 1_000_000;

/// What a replica keeps of one agent.
#[derive(Default)]
pub struct Mind {
    /// Absent until it is needed.
    pub log: Option<Log>,
    /// The revision of the agent's claim this replica saw last.
    pub claim_revision: u64,
    /// Decisions since the last snapshot.
    pub unsaved: u32,
}

/// All agents in memory.
pub struct Memory {
    bus: Bus,
    snapshots: Store,
    minds: Slots<Name, Mind>,
}

impl Memory {
    pub async fn open(bus: &Bus, capacity: usize) -> Result<Self, BusError> {
        let snapshots = bus.jetstream.get_key_value(SNAPSHOTS_BUCKET).await;
        let snapshots =
            snapshots.map_err(|error| BusError::Unavailable { doing: "opening snapshots", source: error.into() })?;
        Ok(Self { bus: bus.clone(), snapshots, minds: Slots::new(capacity) })
    }

    /// The agent's place; whoever holds its lock thinks for the agent in this replica.
    pub fn slot(&self, agent: &Name) -> Slot<Mind> {
        self.minds.get(agent)
    }

    /// Reads on until everything up to `at_least` is in the log.
    pub async fn catch_up(&self, agent: &Name, mind: &mut Mind, at_least: u64) -> Result<(), BusError> {
        for _ in 0..2 {
            let mut log = match mind.log.take() {
                Some(log) => log,
                None => self.restore(agent).await?,
            };
            match self.read_on(agent, &mut log).await? {
                Ok(()) if log.read >= at_least => {
                    mind.log = Some(log);
                    return Ok(());
                }
                // A server that lags behind answered; what it did not show is fenced by the guard.
                Ok(()) => break,
                Err(Diverged) => tracing::debug!(%agent, "somebody decided otherwise, reading the log again"),
            }
        }
        Err(BusError::Unavailable {
            doing: "reading an agent's log",
            source: "the server has not seen it all yet".into(),
        })
    }

    /// The state at the agent's last snapshot, or at its beginning.
    async fn restore(&self, agent: &Name) -> Result<Log, BusError> {
        let stored = self.snapshots.get(agent.as_str()).await;
        let stored =
            stored.map_err(|error| BusError::Unavailable { doing: "reading a snapshot", source: error.into() })?;
        let snapshot = stored.and_then(|bytes| serde_json::from_slice::<Snapshot>(&bytes).ok());
        Ok(snapshot.and_then(Log::resume).unwrap_or_default())
    }

    async fn read_on(&self, agent: &Name, log: &mut Log) -> Result<Result<(), Diverged>, BusError> {
        let filter = subjects::everything_of(agent);
        let decisions = AGENT_DECISION.of(agent);
        loop {
            let page = self.bus.read(&filter, log.read).await?;
            let full = page.messages.len() >= PAGE || page.more;
            for raw in page.messages {
                match raw.read(self.bus.limits.max_body_bytes) {
                    Ok(record) => {
                        if let Err(diverged) = log.push(record) {
                            return Ok(Err(diverged));
                        }
                    }
                    Err(_) => log.pass_over(raw.sequence, raw.subject == decisions),
                }
            }
            if !full {
                return Ok(Ok(()));
            }
        }
    }

    /// Writes a snapshot. Failing to is no harm.
    pub async fn save(&self, agent: &Name, log: &Log) {
        let bytes = serde_json::to_vec(&log.snapshot()).unwrap_or_default();
        if bytes.len() > SNAPSHOT_BYTES {
            tracing::warn!(%agent, bytes = bytes.len(), "state is too large for a snapshot");
            return;
        }
        if let Err(error) = self.snapshots.put(agent.as_str(), bytes.into()).await {
            tracing::debug!(%agent, %error, "snapshot not written");
        }
    }
}
