//! Another master key: data keys are kept under the one in force, and what they were kept under before is written over.

use super::{
    DataKeys, StoredDataKey,
    effective_entry::DecodedEntry,
    entries::{data_key_stream, data_key_subject},
    other_master_message,
};
use crate::{
    bus::{Bus, BusError, port::ReadSource},
    record::RawMessage,
    subjects::DATA_KEYS_BUCKET,
};

const DOING: &str = "wrapping data keys anew";

impl Bus {
    /// Keeps every data key under the master key in force. How many were kept under another one. It may be done again wherever it
    /// was interrupted.
    ///
    /// # Errors
    /// [`BusError::Refused`] where there is one whose master key is not configured, which is named by its digest; those before it
    /// are kept anew by then.
    pub async fn rewrap_data_keys(&self) -> Result<u64, BusError> {
        let Some(keys) = &self.data_keys else { return Ok(0) };
        let mut after = 0;
        let mut changed = 0;
        loop {
            let page = self.read_page_in(&data_key_stream(), &data_key_subject(">"), after).await?;
            for raw in &page.messages {
                after = raw.sequence;
                changed += u64::from(self.rewrap_entry(keys, raw).await?);
            }
            if page.messages.is_empty() || !page.more {
                return Ok(changed);
            }
        }
    }

    async fn rewrap_entry(&self, keys: &DataKeys, raw: &RawMessage) -> Result<bool, BusError> {
        let Some(key) = raw.subject.strip_prefix(&data_key_subject("")) else { return Ok(false) };
        let Some((name, number)) = key.rsplit_once('.') else { return Ok(false) };
        let (Ok(number), Ok(StoredDataKey::Wrapped { master, .. })) =
            (number.parse(), serde_json::from_slice(&raw.payload))
        else {
            return Ok(false);
        };
        if keys.masters.first().is_some_and(|(digest, _)| *digest == master) {
            return Ok(false);
        }
        let newest = self
            .port
            .last_message(&data_key_stream(), &raw.subject, ReadSource::Leader)
            .await
            .map_err(BusError::unavailable(DOING))?;
        if let Some(newest) = newest.filter(|newest| newest.sequence != raw.sequence) {
            // Whoever wrapped it anew came no further. Nothing else that was written over it may take its place.
            let [before, newest_entry] = [raw, &newest].map(|entry| keys.decode_entry(name, number, entry));
            if let (DecodedEntry::Key(before), DecodedEntry::Key(again)) = (before, newest_entry)
                && before == again
            {
                self.erase_older_revisions(key, newest.sequence).await?;
            }
            return Ok(false);
        }
        let open = match keys.decode_entry(name, number, raw) {
            DecodedEntry::Key(open) => open,
            DecodedEntry::OtherMaster(digest) => {
                return Err(BusError::Refused(other_master_message(name, number, &digest)));
            }
            DecodedEntry::Destroyed | DecodedEntry::Damaged => return Ok(false),
        };
        let wrapped = keys.wrap_key(name, number, &open).map_err(BusError::unavailable(DOING))?;
        let newest = match self.update_value(DATA_KEYS_BUCKET, key, wrapped, raw.sequence).await {
            // It was destroyed meanwhile, or somebody else is at it.
            Err(BusError::Conflict { .. }) => return Ok(false),
            newest => newest?,
        };
        self.erase_older_revisions(key, newest).await?;
        Ok(true)
    }

    /// Writes over, in the server's files, whatever stood under a key of the bucket of data keys before its newest revision. The bucket
    /// keeps it until then: what the server drops by itself stays in its files for a while.
    pub async fn erase_older_revisions(&self, key: &str, newest: u64) -> Result<(), BusError> {
        let revisions = self.read_revisions(DATA_KEYS_BUCKET, key).await?;
        for raw in revisions.iter().filter(|raw| raw.sequence < newest) {
            self.erase_revision(DATA_KEYS_BUCKET, raw.sequence).await?;
        }
        Ok(())
    }
}
