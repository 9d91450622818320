//! What agents declare, written down by router, so that whoever starts reads only the definitions behind it, of a million agents
//! perhaps. It is in the bucket of snapshots, may be lost with it at any time, and is then made again of the log.

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

/// What is written down.
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
    /// What is written down of this log, by a router that reads what this build does. One of another past of it, in which it was
    /// longer, counts as none.
    pub async fn read(bus: &Bus) -> Result<Option<Self>, BusError> {
        let (_, Some(kept)) = Self::to_replace(bus).await? else { return Ok(None) };
        let end = bus.end().await?;
        Ok(Some(kept).filter(|kept| kept.through <= end))
    }

    /// What is written down of this log, and the revision to write the next with.
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

    /// Where what is written down goes to, which another replica may have written.
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

    /// What is known, if that is all there is.
    fn as_is(&self, through: u64) -> Result<Option<Kept>, BusError> {
        let log = self.bus.log()?.id;
        let known = self.known();
        let of_each = known.by_agent().map(|(agent, all)| (agent.clone(), all.iter().map(Into::into).collect()));
        Ok(known.is_whole().then(|| Kept { log, through, declared: of_each.collect() }))
    }
}

/// What one reads of definitions depends on what it understands.
fn key() -> String {
    format!("commands.{READER}")
}
