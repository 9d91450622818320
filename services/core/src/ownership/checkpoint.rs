//! How far a partition was dealt with: where its next owner goes on.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::pause;
use crate::{
    bus::{Bus, BusError},
    ids::Name,
    subjects::SNAPSHOTS_BUCKET,
};

/// A partition's checkpoint. It is in the bucket of snapshots, so that the two are only ever lost together: an agent that
/// a checkpoint does not name, and that has no snapshot, is one of which nothing stands before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The log it is about.
    pub log: Uuid,
    /// Everything up to here was read, and is in a snapshot or needs none.
    pub through: u64,
    /// Owners with something before that is not dealt with yet.
    pub busy: Vec<Name>,
}

/// Where a partition's checkpoint is written.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    bus: Bus,
    key: String,
    log: Uuid,
    revision: u64,
    /// What was written last, or found.
    pub last: Checkpoint,
}

/// Times a checkpoint that somebody else writes, too, is tried.
const TRIES: usize = 4;

impl Checkpoints {
    /// Reads the checkpoint of a partition. One of another log counts as none: everything is read again.
    pub async fn open(bus: &Bus, partition: u32) -> Result<Self, BusError> {
        let log = bus.log()?.id;
        let key = format!("checkpoint.{}.{partition}", bus.service.name());
        let entry = bus.value(SNAPSHOTS_BUCKET, &key).await?;
        let revision = entry.as_ref().map_or(0, |entry| entry.revision);
        let last = entry.and_then(|entry| read(&entry.value, log));
        let last = last.unwrap_or(Checkpoint { log, ..Default::default() });
        Ok(Self { bus: bus.clone(), key, log, revision, last })
    }

    /// Like [`Checkpoints::open`], as soon as the server answers.
    pub async fn open_in_time(bus: &Bus, partition: u32) -> Self {
        let mut attempt = 0;
        loop {
            match Self::open(bus, partition).await {
                Ok(checkpoints) => return checkpoints,
                Err(error) => tracing::debug!(partition, %error, "the checkpoint cannot be read yet"),
            }
            attempt += 1;
            tokio::time::sleep(pause(bus, attempt)).await;
        }
    }

    /// Moves it on. Where somebody else moved it farther, that is adopted; it never goes back.
    pub async fn write(&mut self, through: u64, busy: Vec<Name>) -> Result<(), BusError> {
        let checkpoint = Checkpoint { log: self.log, through, busy };
        if checkpoint == self.last || through < self.last.through {
            return Ok(());
        }
        let value = serde_json::to_vec(&checkpoint).unwrap_or_default();
        for _ in 0..TRIES {
            match self.bus.update_value(SNAPSHOTS_BUCKET, &self.key, value.clone().into(), self.revision).await {
                Ok(revision) => {
                    (self.revision, self.last) = (revision, checkpoint);
                    return Ok(());
                }
                Err(BusError::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
            let entry = self.bus.value(SNAPSHOTS_BUCKET, &self.key).await?;
            self.revision = entry.as_ref().map_or(0, |entry| entry.revision);
            let other = entry.and_then(|entry| read(&entry.value, self.log));
            if let Some(other) = other.filter(|other| other.through > through) {
                self.last = other;
                return Ok(());
            }
        }
        Err(BusError::Conflict { expected: self.revision })
    }
}

fn read(value: &[u8], log: Uuid) -> Option<Checkpoint> {
    serde_json::from_slice::<Checkpoint>(value).ok().filter(|checkpoint| checkpoint.log == log)
}
