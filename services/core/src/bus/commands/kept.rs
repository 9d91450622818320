//! A saved copy of the commands agents declare, written by the router: at startup a reader loads only the definitions
//! that follow it, since there may be a million agents. It is kept in the bucket of snapshots, may be lost with it at
//! any time, and is then rebuilt from the log.

use std::{collections::BTreeMap, time::Duration};

use kairo_proto::v1::ProfileCommand;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::DeclaredCommands;
use crate::{
    bus::{Bus, BusError},
    ids::Name,
    subjects::SNAPSHOTS_BUCKET,
    vocabulary::READER,
};

/// The saved commands.
#[derive(Debug, Serialize, Deserialize)]
pub struct Kept {
    /// The log it is about.
    log: Uuid,
    /// Every definition up to here is in it, and declares something or nothing.
    pub through: u64,
    pub declared: BTreeMap<Name, Vec<Declared>>,
}

/// A command.
#[derive(Debug, Serialize, Deserialize)]
pub struct Declared {
    value: String,
    label: String,
    help: String,
}

impl From<&ProfileCommand> for Declared {
    fn from(ProfileCommand { value, label, help }: &ProfileCommand) -> Self {
        Self { value: value.clone(), label: label.clone(), help: help.clone() }
    }
}

impl From<Declared> for ProfileCommand {
    fn from(Declared { value, label, help }: Declared) -> Self {
        Self { value, label, help }
    }
}

impl Kept {
    /// Reads the commands saved for this log by a router with the same reader version. A copy that reaches beyond the
    /// end of the log belongs to another past of it and counts as none.
    pub async fn read(bus: &Bus) -> Result<Option<Self>, BusError> {
        let (_, Some(kept)) = Self::to_replace(bus).await? else { return Ok(None) };
        let end = bus.end().await?;
        Ok(Some(kept).filter(|kept| kept.through <= end))
    }

    /// Returns the revision to replace, and the commands saved for this log.
    async fn to_replace(bus: &Bus) -> Result<(u64, Option<Self>), BusError> {
        let log = bus.log()?.id;
        let (revision, entry) = bus.value_to_replace(SNAPSHOTS_BUCKET, &key()).await?;
        let kept = entry.and_then(|entry| serde_json::from_slice::<Self>(&entry.value).ok());
        Ok((revision, kept.filter(|kept| kept.log == log)))
    }
}

impl DeclaredCommands {
    /// Writes down what is known until `shutdown`, whenever the log has grown by so many messages.
    pub fn keep(&self, every: u64, shutdown: CancellationToken) {
        let declared = self.clone();
        self.bus.spawn(async move { _ = shutdown.run_until_cancelled(declared.keep_on(every)).await });
    }

    async fn keep_on(&self, every: u64) {
        let look = Duration::from_millis(self.bus.limits.checkpoint_ms);
        let mut kept = 0;
        loop {
            tokio::time::sleep(look).await;
            let at = self.bus.standing.farthest().max(*self.through.borrow());
            if at < every.saturating_add(kept) {
                continue;
            }
            kept = self.write_down(at, every).await.unwrap_or_else(|error| {
                tracing::debug!(%error, "what agents declare was not written down");
                at
            });
        }
    }

    /// Saves the known commands if due, and returns the sequence the saved copy reaches, which another replica may have
    /// written.
    async fn write_down(&self, at: u64, every: u64) -> Result<u64, BusError> {
        let (revision, there) = Kept::to_replace(&self.bus).await?;
        let there = there.map_or(0, |there| there.through);
        // One that is farther than this may be of another past.
        if at < there.saturating_add(every) && (there <= at || there <= self.bus.end().await?) {
            return Ok(there);
        }
        self.caught_up(at).await?;
        let Some(kept) = self.as_is(at)? else { return Ok(at) };
        let value = serde_json::to_vec(&kept).unwrap_or_default();
        self.bus.update_value(SNAPSHOTS_BUCKET, &key(), value.into(), revision).await?;
        Ok(at)
    }

    /// Returns the known commands for saving, or `None` if some were left out.
    fn as_is(&self, through: u64) -> Result<Option<Kept>, BusError> {
        let log = self.bus.log()?.id;
        let known = self.known();
        let of_each = known.by_agent().map(|(agent, all)| (agent.clone(), all.iter().map(Into::into).collect()));
        Ok(known.is_whole().then(|| Kept { log, through, declared: of_each.collect() }))
    }
}

/// Returns the key of the saved commands, one per reader version: what a build reads in definitions depends on it.
fn key() -> String {
    format!("commands.{READER}")
}
