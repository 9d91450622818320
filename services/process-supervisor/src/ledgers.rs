//! The history of processes in the log: those begun, those asked to end, and those that have ended.

use std::collections::BTreeMap;

use futures::try_join;
use kairo_core::{
    bus::{
        Bus, BusError,
        append::OutgoingEvent,
        canceled_calls::CanceledCalls,
        ledger::{Ledger, LedgerEntry, LedgerOutcome},
        retry_deadline::RetryDeadline,
    },
    ids::Name,
    record::Record,
    subjects::{PROCESS_CANCELED, PROCESS_EXITED, PROCESS_REPLY, PROCESS_SPAWNED},
};
use kairo_proto::v1::{ProcessExited, ProcessSpawned};
use uuid::Uuid;

use crate::events::ProcessEnding;

/// The ledgers of processes, shared by all that look into them.
pub struct Ledgers {
    bus: Bus,
    pub spawned: Ledger,
    pub canceled: Ledger,
    /// Cancellations requested by decisions.
    decided: CanceledCalls,
    pub exited: Ledger,
    /// Replies to orders.
    pub replied: Ledger,
}

/// An action, and the part of the log to search for it.
#[derive(Clone, Copy, Debug)]
pub struct LedgerTarget<'a> {
    pub agent: &'a Name,
    pub action: Uuid,
    /// Nothing about it stands in the log up to here.
    pub after: u64,
}

/// A process that exists or existed.
pub struct RecordedProcess {
    pub spawned: ProcessSpawned,
    pub record: Record,
}

impl Ledgers {
    pub fn new(bus: &Bus) -> Self {
        Self {
            bus: bus.clone(),
            spawned: Ledger::new(bus, &PROCESS_SPAWNED),
            canceled: Ledger::new(bus, &PROCESS_CANCELED),
            decided: CanceledCalls::new(bus),
            exited: Ledger::new(bus, &PROCESS_EXITED),
            replied: Ledger::new(bus, &PROCESS_REPLY),
        }
    }

    pub async fn find_spawned(&self, target: LedgerTarget<'_>) -> Result<Option<RecordedProcess>, BusError> {
        let Some(record) = self.spawned.entry_record(target.agent, target.after, target.action).await? else {
            return Ok(None);
        };
        let spawned = ProcessSpawned::of(&record.body).cloned();
        Ok(spawned.map(|spawned| RecordedProcess { spawned, record }))
    }

    pub async fn find_end(&self, target: LedgerTarget<'_>) -> Result<Option<ProcessExited>, BusError> {
        let record = self.exited.entry_record(target.agent, target.after, target.action).await?;
        Ok(record.and_then(|record| ProcessExited::try_from(record.body).ok()))
    }

    /// Like [`Ledgers::find_spawned`], but misses no process that was begun before it was asked for. While the server is away
    /// or behind it keeps asking for as long as `hold_ms` says.
    pub async fn find_spawned_for_sure(&self, target: LedgerTarget<'_>) -> Result<Option<RecordedProcess>, BusError> {
        let mut patience = RetryDeadline::new(&self.bus.limits);
        loop {
            match self.spawned.entries_as_of_leader(target.agent, target.after, &[target.action]).await {
                Ok(entries) if entries.is_empty() => return Ok(None),
                Ok(_) => return self.find_spawned(target).await,
                Err(error) => patience.backoff_after(error).await?,
            }
        }
    }

    /// Returns true if it was asked to end: by an order that a supervisor received, or by a decision that nobody has
    /// carried out yet.
    async fn is_canceled(&self, target: LedgerTarget<'_>) -> Result<bool, BusError> {
        let LedgerTarget { agent, action, after } = target;
        let entries = self.canceled.entries_as_of_leader(agent, after, &[action]).await?;
        Ok(!entries.is_empty() || !self.find_decided_stops(agent, after, &[action]).await?.is_empty())
    }

    /// Returns those of these actions that decisions above `since` want stopped.
    pub async fn find_decided_stops(&self, agent: &Name, since: u64, actions: &[Uuid]) -> Result<Vec<Uuid>, BusError> {
        Ok(self.decided.canceled_among(agent, since, since, actions).await?.into_keys().collect())
    }

    /// Writes that an action was asked to end, unless that is in the log.
    pub async fn record_cancel(&self, target: LedgerTarget<'_>, event: &OutgoingEvent) -> Result<(), BusError> {
        if let LedgerOutcome::Written { .. } = self.canceled.record_once(target.agent, target.after, event).await? {
            tracing::info!(agent = %target.agent, action = %target.action, "to end, on request");
        }
        Ok(())
    }

    /// Returns the reason to keep the gate of a process closed that is in the log at `sequence`, if there is one. The
    /// agent's other processes are searched above `others_after`, if that is known. While the server is away, retries
    /// for as long as `hold_ms` allows: an obstacle must not be guessed.
    pub async fn obstacle(
        &self,
        target: LedgerTarget<'_>,
        others_after: u64,
        sequence: u64,
        per_agent: usize,
    ) -> Result<Option<ProcessEnding>, BusError> {
        let after = others_above(target, others_after);
        let mut patience = RetryDeadline::new(&self.bus.limits);
        let (canceled, others) = loop {
            match try_join!(self.is_canceled(target), self.count_running(target.agent, after, sequence)) {
                Ok(known) => break known,
                Err(error) => patience.backoff_after(error).await?,
            }
        };
        Ok(match canceled {
            true => Some(ProcessEnding::Withdrawn),
            false => too_many(others, per_agent),
        })
    }

    /// Returns the reason why the agent may not have one more process, if there is one. Call it before the process is
    /// recorded, since the record counts as its start; [`Ledgers::obstacle`] finds what several that begin at once
    /// could not know of each other.
    pub async fn find_crowding(
        &self,
        target: LedgerTarget<'_>,
        others_after: u64,
        per_agent: usize,
    ) -> Result<Option<ProcessEnding>, BusError> {
        let others = self.count_running(target.agent, others_above(target, others_after), u64::MAX).await?;
        Ok(too_many(others, per_agent))
    }

    /// Counts the agent's processes above sequence `after` that were begun before `sequence` and have not ended.
    async fn count_running(&self, agent: &Name, after: u64, sequence: u64) -> Result<usize, BusError> {
        let (spawned, exited) =
            try_join!(self.spawned.all_entries(agent, after), self.exited.all_entries(agent, after))?;
        Ok(count_unended(&spawned, &exited, sequence))
    }
}

/// Above which sequence the agent's other running processes are looked for.
fn others_above(target: LedgerTarget<'_>, others_after: u64) -> u64 {
    match others_after {
        0 => target.after,
        others_after => others_after.min(target.after),
    }
}

fn too_many(others: usize, per_agent: usize) -> Option<ProcessEnding> {
    (others >= per_agent).then(|| ProcessEnding::too_many(others, per_agent))
}

fn count_unended(spawned: &BTreeMap<Uuid, LedgerEntry>, exited: &BTreeMap<Uuid, LedgerEntry>, sequence: u64) -> usize {
    let before = spawned.iter().filter(|(_, entry)| entry.sequence < sequence);
    before.filter(|(action, _)| !exited.contains_key(action)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(entries: &[(u128, u64)]) -> BTreeMap<Uuid, LedgerEntry> {
        let entry = |(action, sequence): &(u128, u64)| {
            (Uuid::from_u128(*action), LedgerEntry { sequence: *sequence, by: "s-1".to_owned() })
        };
        entries.iter().map(entry).collect()
    }

    #[test]
    fn what_came_later_or_has_ended_does_not_count() {
        let spawned = entries(&[(1, 10), (2, 11), (3, 14), (4, 15)]);
        let exited = entries(&[(2, 12)]);
        assert_eq!(count_unended(&spawned, &exited, 14), 1, "the one at 14 is the one that asks");
        assert_eq!(count_unended(&spawned, &exited, 99), 3);
        assert_eq!(count_unended(&entries(&[]), &exited, 99), 0);
    }
}
