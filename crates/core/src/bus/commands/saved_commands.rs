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
pub struct SavedCommands {
    /// The log it is about.
    log: Uuid,
    /// Every definition up to here is in it, and declares something or nothing.
    pub through: u64,
    pub declared: BTreeMap<Name, Vec<SavedCommand>>,
}

/// A command.
#[derive(Debug, Serialize, Deserialize)]
pub struct SavedCommand {
    value: String,
    label: String,
    help: String,
}

impl From<&ProfileCommand> for SavedCommand {
    fn from(ProfileCommand { value, label, help }: &ProfileCommand) -> Self {
        Self { value: value.clone(), label: label.clone(), help: help.clone() }
    }
}

impl From<SavedCommand> for ProfileCommand {
    fn from(SavedCommand { value, label, help }: SavedCommand) -> Self {
        Self { value, label, help }
    }
}

impl SavedCommands {
    /// Reads the commands saved for this log by a router with the same reader version. A copy that reaches beyond the
    /// end of the log belongs to another past of it and counts as none.
    pub async fn load(bus: &Bus) -> Result<Option<Self>, BusError> {
        let (_, Some(kept)) = Self::load_with_revision(bus).await? else { return Ok(None) };
        let end = bus.end_sequence().await?;
        Ok(Some(kept).filter(|kept| kept.through <= end))
    }

    /// Returns the revision to replace, and the commands saved for this log.
    async fn load_with_revision(bus: &Bus) -> Result<(u64, Option<Self>), BusError> {
        let log = bus.log_identity()?.id;
        let (revision, entry) = bus.read_value_with_revision(SNAPSHOTS_BUCKET, &saved_commands_key()).await?;
        let kept = entry.and_then(|entry| serde_json::from_slice::<Self>(&entry.value).ok());
        Ok((revision, kept.filter(|kept| kept.log == log)))
    }
}

impl DeclaredCommands {
    /// Writes down what is known until `shutdown`, whenever the log has grown by so many messages.
    pub fn save_periodically(&self, every: u64, shutdown: CancellationToken) {
        let declared = self.clone();
        self.bus.spawn(async move { _ = shutdown.run_until_cancelled(declared.run_saving(every)).await });
    }

    async fn run_saving(&self, every: u64) {
        let look = Duration::from_millis(self.bus.limits.checkpoint_ms);
        let mut kept = 0;
        loop {
            tokio::time::sleep(look).await;
            let at = self.bus.standing.farthest_read().max(*self.through.borrow());
            if at < every.saturating_add(kept) {
                continue;
            }
            kept = self.save_if_due(at, every).await.unwrap_or_else(|error| {
                tracing::debug!(%error, "what agents declare was not written down");
                at
            });
        }
    }

    /// Saves the known commands if due, and returns the sequence the saved copy reaches, which another replica may have
    /// written.
    async fn save_if_due(&self, at: u64, every: u64) -> Result<u64, BusError> {
        let (revision, there) = SavedCommands::load_with_revision(&self.bus).await?;
        let there = there.map_or(0, |there| there.through);
        // One that is farther than this may be of another past.
        if at < there.saturating_add(every) && (there <= at || there <= self.bus.end_sequence().await?) {
            return Ok(there);
        }
        self.catch_up(at).await?;
        let Some(kept) = self.to_saved(at)? else { return Ok(at) };
        let value = serde_json::to_vec(&kept).unwrap_or_default();
        self.bus.update_value(SNAPSHOTS_BUCKET, &saved_commands_key(), value.into(), revision).await?;
        Ok(at)
    }

    /// Returns the known commands for saving, or `None` if some were left out.
    fn to_saved(&self, through: u64) -> Result<Option<SavedCommands>, BusError> {
        let log = self.bus.log_identity()?.id;
        let known = self.lock_commands();
        let of_each = known.by_agent().map(|(agent, all)| (agent.clone(), all.iter().map(Into::into).collect()));
        Ok(known.is_complete().then(|| SavedCommands { log, through, declared: of_each.collect() }))
    }
}

/// Returns the key of the saved commands, one per reader version: what a build reads in definitions depends on it.
fn saved_commands_key() -> String {
    format!("commands.{READER}")
}
