//! Checkpoints: the position in a partition from which its next owner resumes.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::retry_pause;
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

/// The format of the state a service keeps for itself: replicas of other builds keep it in another form, and must
/// neither overwrite nor rely on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateFormat {
    /// Version of the kept state.
    pub version: u32,
    /// The reader version that read the log: [`crate::vocabulary::READER`] of the build.
    pub reader: u32,
}

impl StateFormat {
    /// As part of a key.
    pub fn to_key(self) -> String {
        format!("{}-{}", self.version, self.reader)
    }

    fn parse(key: &str) -> Option<Self> {
        let (version, reader) = key.split_once('-')?;
        Some(Self { version: version.parse().ok()?, reader: reader.parse().ok()? })
    }
}

/// The key in the bucket that holds a partition's checkpoint, and its last known revision.
#[derive(Clone, Debug)]
pub struct CheckpointStore {
    bus: Bus,
    key: String,
    log: Uuid,
    revision: u64,
    /// The checkpoint written last, or found.
    pub last: Checkpoint,
}

/// Times a checkpoint that somebody else writes, too, is tried.
const TRIES: usize = 4;

impl CheckpointStore {
    /// Reads the checkpoint of a partition. One of another log, or of another past of it, counts as none: everything is
    /// read again.
    pub async fn open(bus: &Bus, partition: u32) -> Result<Self, BusError> {
        Self::load_key(bus, checkpoint_key(bus, partition)).await
    }

    /// Reads the checkpoint of a partition that rests on what is kept in this format. Where there is none, it begins
    /// where those got who understood no more, and every owner whose state is not kept in it is read from the log. One of
    /// newer readers may be behind something that this build does not understand.
    pub async fn open_with_format(bus: &Bus, partition: u32, format: StateFormat) -> Result<Self, BusError> {
        let own = format!("{}.{}", checkpoint_key(bus, partition), format.to_key());
        let mut found = Self::load_key(bus, own).await?;
        if found.last.through == 0
            && let Some(other) = Self::find_compatible(bus, partition, format.reader).await?
        {
            found.write(other.through, other.busy).await?;
        }
        Ok(found)
    }

    /// The farthest checkpoint of builds that understood no more than this.
    async fn find_compatible(bus: &Bus, partition: u32, reader: u32) -> Result<Option<Checkpoint>, BusError> {
        let log = bus.log_identity()?.id;
        let key = checkpoint_key(bus, partition);
        // Without a format is that of the first reader.
        let first = bus.read_value(SNAPSHOTS_BUCKET, &key).await?;
        let others = bus.read_values(SNAPSHOTS_BUCKET, &format!("{key}.*")).await?;
        let others = others.into_iter().filter(|entry| {
            let format = entry.key.rsplit('.').next().and_then(StateFormat::parse);
            format.is_some_and(|format| format.reader <= reader)
        });
        let end = bus.end_sequence().await?;
        let read = first.into_iter().chain(others).filter_map(|entry| parse_checkpoint(&entry.value, log));
        let read = read.filter(|checkpoint| checkpoint.through <= end);
        Ok(read.max_by_key(|checkpoint| checkpoint.through))
    }

    async fn load_key(bus: &Bus, key: String) -> Result<Self, BusError> {
        let log = bus.log_identity()?.id;
        let (revision, entry) = bus.read_value_with_revision(SNAPSHOTS_BUCKET, &key).await?;
        // A log that was restored to what it was before ends before that.
        let end = bus.end_sequence().await?;
        let last = entry.and_then(|entry| parse_checkpoint(&entry.value, log)).filter(|last| last.through <= end);
        let last = last.unwrap_or(Checkpoint { log, ..Default::default() });
        Ok(Self { bus: bus.clone(), key, log, revision, last })
    }

    /// Like [`CheckpointStore::open_with_format`], as soon as the server answers; without a format like [`CheckpointStore::open`].
    pub async fn open_with_retry(bus: &Bus, partition: u32, format: Option<StateFormat>) -> Self {
        let mut attempt = 0;
        loop {
            let opened = match format {
                Some(format) => Self::open_with_format(bus, partition, format).await,
                None => Self::open(bus, partition).await,
            };
            match opened {
                Ok(checkpoints) => return checkpoints,
                Err(error) => tracing::debug!(partition, %error, "the checkpoint cannot be read yet"),
            }
            attempt += 1;
            tokio::time::sleep(retry_pause(bus, attempt)).await;
        }
    }

    /// Returns true if writing this would not advance the checkpoint.
    pub fn already_covers(&self, through: u64, busy: &[Name]) -> bool {
        through < self.last.through || through == self.last.through && self.last.busy == busy
    }

    /// Moves it on. Where somebody else moved it farther, that is adopted; it never goes back.
    pub async fn write(&mut self, through: u64, busy: Vec<Name>) -> Result<(), BusError> {
        if self.already_covers(through, &busy) {
            return Ok(());
        }
        let checkpoint = Checkpoint { log: self.log, through, busy };
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
            let (revision, entry) = self.bus.read_value_with_revision(SNAPSHOTS_BUCKET, &self.key).await?;
            self.revision = revision;
            let other = entry.and_then(|entry| parse_checkpoint(&entry.value, self.log));
            if let Some(other) = other.filter(|other| other.through > through) {
                self.last = other;
                return Ok(());
            }
        }
        Err(BusError::Conflict { expected: self.revision })
    }
}

fn checkpoint_key(bus: &Bus, partition: u32) -> String {
    format!("checkpoint.{}.{partition}", bus.service.name())
}

fn parse_checkpoint(value: &[u8], log: Uuid) -> Option<Checkpoint> {
    serde_json::from_slice::<Checkpoint>(value).ok().filter(|checkpoint| checkpoint.log == log)
}
