//! The history of processes in the log: those begun, those asked to end, and those that have ended.

use std::collections::BTreeMap;

use futures::try_join;
use kairo_core::{
    bus::{
        Bus, BusError,
        append::Outgoing,
        cancels::Cancels,
        ledger::{Entered, Entry, Ledger},
        patience::Patience,
    },
    ids::Name,
    record::Record,
    subjects::{PROCESS_CANCELED, PROCESS_EXITED, PROCESS_REPLY, PROCESS_SPAWNED},
};
use kairo_proto::v1::{ProcessExited, ProcessSpawned};
use uuid::Uuid;

use crate::events::End;

/// The ledgers of processes, shared by all that look into them.
pub struct Ledgers {
    bus: Bus,
    pub spawned: Ledger,
    pub canceled: Ledger,
    /// Cancellations requested by decisions.
    decided: Cancels,
    pub exited: Ledger,
    /// Replies to orders.
    pub replied: Ledger,
}

/// An action, and the part of the log to search for it.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    pub agent: &'a Name,
    pub action: Uuid,
    /// Nothing about it stands in the log up to here.
    pub after: u64,
}

/// A process that exists or existed.
pub struct Begun {
    pub spawned: ProcessSpawned,
    pub record: Record,
}

impl Ledgers {
    pub fn new(bus: &Bus) -> Self {
        Self {
            bus: bus.clone(),
            spawned: Ledger::new(bus, &PROCESS_SPAWNED),
            canceled: Ledger::new(bus, &PROCESS_CANCELED),
            decided: Cancels::new(bus),
            exited: Ledger::new(bus, &PROCESS_EXITED),
            replied: Ledger::new(bus, &PROCESS_REPLY),
        }
    }

    pub async fn begun(&self, target: Target<'_>) -> Result<Option<Begun>, BusError> {
        let Some(record) = self.spawned.record(target.agent, target.after, target.action).await? else {
            return Ok(None);
        };
        let spawned = ProcessSpawned::of(&record.body).cloned();
        Ok(spawned.map(|spawned| Begun { spawned, record }))
    }

    pub async fn end(&self, target: Target<'_>) -> Result<Option<ProcessExited>, BusError> {
        let record = self.exited.record(target.agent, target.after, target.action).await?;
        Ok(record.and_then(|record| ProcessExited::try_from(record.body).ok()))
    }

    /// Like [`Ledgers::begun`], but misses no process that was begun before it was asked for. While the server is away
    /// or behind it keeps asking for as long as `hold_ms` says.
    pub async fn begun_by_now(&self, target: Target<'_>) -> Result<Option<Begun>, BusError> {
        let mut patience = Patience::new(&self.bus.limits);
        loop {
            match self.spawned.entries_for_sure(target.agent, target.after, &[target.action]).await {
                Ok(entries) if entries.is_empty() => return Ok(None),
                Ok(_) => return self.begun(target).await,
                Err(error) => patience.after(error).await?,
            }
        }
    }

    /// Returns true if it was asked to end: by an order that a supervisor received, or by a decision that nobody has
    /// carried out yet.
    async fn is_canceled(&self, target: Target<'_>) -> Result<bool, BusError> {
        let Target { agent, action, after } = target;
        let entries = self.canceled.entries_for_sure(agent, after, &[action]).await?;
        Ok(!entries.is_empty() || !self.decided(agent, after, &[action]).await?.is_empty())
    }

    /// Returns those of these actions that decisions above `since` want stopped.
    pub async fn decided(&self, agent: &Name, since: u64, actions: &[Uuid]) -> Result<Vec<Uuid>, BusError> {
        Ok(self.decided.of(agent, since, since, actions).await?.into_keys().collect())
    }

    /// Writes that an action was asked to end, unless that is in the log.
    pub async fn cancel(&self, target: Target<'_>, event: &Outgoing) -> Result<(), BusError> {
        if let Entered::Written { .. } = self.canceled.enter(target.agent, target.after, event).await? {
            tracing::info!(agent = %target.agent, action = %target.action, "to end, on request");
        }
        Ok(())
    }

    /// Returns the reason to keep the gate of a process closed that is in the log at `sequence`, if there is one. The
    /// agent's other processes are searched above `others_after`, if that is known. While the server is away, retries
    /// for as long as `hold_ms` allows: an obstacle must not be guessed.
    pub async fn obstacle(
        &self,
        target: Target<'_>,
        others_after: u64,
        sequence: u64,
        per_agent: usize,
    ) -> Result<Option<End>, BusError> {
        let after = others_above(target, others_after);
        let mut patience = Patience::new(&self.bus.limits);
        let (canceled, others) = loop {
            match try_join!(self.is_canceled(target), self.running(target.agent, after, sequence)) {
                Ok(known) => break known,
                Err(error) => patience.after(error).await?,
            }
        };
        Ok(match canceled {
            true => Some(End::Withdrawn),
            false => too_many(others, per_agent),
        })
    }

    /// Returns the reason why the agent may not have one more process, if there is one. Call it before the process is
    /// recorded, since the record counts as its start; [`Ledgers::obstacle`] finds what several that begin at once
    /// could not know of each other.
    pub async fn crowded(
        &self,
        target: Target<'_>,
        others_after: u64,
        per_agent: usize,
    ) -> Result<Option<End>, BusError> {
        let others = self.running(target.agent, others_above(target, others_after), u64::MAX).await?;
        Ok(too_many(others, per_agent))
    }

    /// Counts the agent's processes above sequence `after` that were begun before `sequence` and have not ended.
    async fn running(&self, agent: &Name, after: u64, sequence: u64) -> Result<usize, BusError> {
        let (spawned, exited) = try_join!(self.spawned.all(agent, after), self.exited.all(agent, after))?;
        Ok(running(&spawned, &exited, sequence))
    }
}

/// Above which sequence the agent's other running processes are looked for.
fn others_above(target: Target<'_>, others_after: u64) -> u64 {
    match others_after {
        0 => target.after,
        others_after => others_after.min(target.after),
    }
}

fn too_many(others: usize, per_agent: usize) -> Option<End> {
    (others >= per_agent).then(|| End::too_many(others, per_agent))
}

fn running(spawned: &BTreeMap<Uuid, Entry>, exited: &BTreeMap<Uuid, Entry>, sequence: u64) -> usize {
    let before = spawned.iter().filter(|(_, entry)| entry.sequence < sequence);
    before.filter(|(action, _)| !exited.contains_key(action)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(entries: &[(u128, u64)]) -> BTreeMap<Uuid, Entry> {
        let entry = |(action, sequence): &(u128, u64)| {
            (Uuid::from_u128(*action), Entry { sequence: *sequence, by: "s-1".to_owned() })
        };
        entries.iter().map(entry).collect()
    }

    #[test]
    fn what_came_later_or_has_ended_does_not_count() {
        let spawned = entries(&[(1, 10), (2, 11), (3, 14), (4, 15)]);
        let exited = entries(&[(2, 12)]);
        assert_eq!(running(&spawned, &exited, 14), 1, "the one at 14 is the one that asks");
        assert_eq!(running(&spawned, &exited, 99), 3);
        assert_eq!(running(&entries(&[]), &exited, 99), 0);
    }
}
