//! Destroying data keys: their bytes are written over in the server's files, and a mark is left in their place.

use kairo_events::{copies::COPY_OF, personal::DataKeyState};

use super::{DataKeyHolder, NO_MASTER_KEY, StoredDataKey, effective_entry::MOST_ENTRIES};
use crate::{
    bus::{Bus, BusError},
    record::RawMessage,
    subjects::DATA_KEYS_BUCKET,
};

const DESTROYING: &str = "destroying a data key";

/// The state of a generation, for those who change it.
#[derive(Clone, Debug)]
pub struct KeyGeneration {
    pub number: u32,
    pub is_destroyed: bool,
    /// Its key in the bucket.
    key: String,
}

impl Bus {
    /// Every generation of a holder's data keys, the oldest first. Damaged ones are left out.
    ///
    /// # Errors
    /// [`BusError::Refused`] without a master key.
    pub async fn key_generations(&self, holder: DataKeyHolder<'_>) -> Result<Vec<KeyGeneration>, BusError> {
        let Some(keys) = &self.data_keys else { return Err(BusError::Refused(NO_MASTER_KEY.to_owned())) };
        let known = self.reload_data_keys(keys, holder).await?;
        let generation = |(number, known)| KeyGeneration {
            number,
            is_destroyed: matches!(known, DataKeyState::Destroyed),
            key: format!("{holder}.{number}"),
        };
        Ok(known.into_iter().map(generation).collect())
    }

    /// Destroys a data key.
    pub async fn destroy_data_key(&self, generation: &KeyGeneration) -> Result<(), BusError> {
        let entries = self.read_revisions(DATA_KEYS_BUCKET, &generation.key).await?;
        let mark = match entries.last().filter(|entry| is_destroyed_mark(entry)) {
            // Whoever left it may have come no further.
            Some(mark) => mark.sequence,
            None => {
                // There has to be room for the mark: whatever else was written over the key goes first.
                let excess = entries.len().saturating_sub(MOST_ENTRIES - 1);
                for entry in entries.iter().skip(1).take(excess) {
                    self.erase_revision(DATA_KEYS_BUCKET, entry.sequence).await?;
                }
                let mark = serde_json::to_vec(&StoredDataKey::Destroyed).map_err(BusError::unavailable(DESTROYING))?;
                // The mark before the key is erased: a key that is nowhere is nobody's to make again.
                self.put_value(DATA_KEYS_BUCKET, &generation.key, mark.into()).await?
            }
        };
        self.erase_older_revisions(&generation.key, mark).await
    }

    /// Destroys the generations of a holder up to this one.
    pub async fn destroy_data_keys(&self, holder: DataKeyHolder<'_>, newest: u32) -> Result<(), BusError> {
        for generation in self.key_generations(holder).await?.iter().filter(|generation| generation.number <= newest) {
            self.destroy_data_key(generation).await?;
        }
        self.forget_data_keys(holder);
        Ok(())
    }

    /// Drops the marks of generations that were destroyed, up to this one: nobody comes back to what was sealed with them.
    pub async fn drop_destroyed_marks(&self, holder: DataKeyHolder<'_>, newest: u32) -> Result<(), BusError> {
        if self.data_keys.is_none() {
            return Ok(());
        }
        let destroyed = |it: &&KeyGeneration| it.is_destroyed && it.number <= newest;
        for generation in self.key_generations(holder).await?.iter().filter(destroyed) {
            for entry in self.read_revisions(DATA_KEYS_BUCKET, &generation.key).await? {
                self.erase_revision(DATA_KEYS_BUCKET, entry.sequence).await?;
            }
        }
        Ok(())
    }
}

fn is_destroyed_mark(entry: &RawMessage) -> bool {
    entry.header(COPY_OF).is_none() && matches!(serde_json::from_slice(&entry.payload), Ok(StoredDataKey::Destroyed))
}
