//! Another master key: data keys are kept under the one in force, and what they were kept under before is written over.

use super::{
    DataKeys, Stored,
    entries::{stored_as, stream},
    other_master,
    standing::Entry,
};
use crate::{
    bus::{Bus, BusError, port::Asked},
    record::Raw,
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
        let (mut after, mut changed) = (0, 0);
        loop {
            let page = self.read_in(&stream(), &stored_as(">"), after).await?;
            for raw in &page.messages {
                after = raw.sequence;
                changed += u64::from(self.rewrap(keys, raw).await?);
            }
            if page.messages.is_empty() || !page.more {
                return Ok(changed);
            }
        }
    }

    async fn rewrap(&self, keys: &DataKeys, raw: &Raw) -> Result<bool, BusError> {
        let Some(key) = raw.subject.strip_prefix(&stored_as("")) else { return Ok(false) };
        let Some((name, number)) = key.rsplit_once('.') else { return Ok(false) };
        let (Ok(number), Ok(Stored::Wrapped { master, .. })) = (number.parse(), serde_json::from_slice(&raw.payload))
        else {
            return Ok(false);
        };
        if keys.masters.first().is_some_and(|(digest, _)| *digest == master) {
            return Ok(false);
        }
        let newest =
            self.port.last(&stream(), &raw.subject, Asked::Leader).await.map_err(BusError::unavailable(DOING))?;
        if let Some(newest) = newest.filter(|newest| newest.sequence != raw.sequence) {
            // Whoever wrapped it anew came no further. Nothing else that was written over it may take its place.
            let [before, newest_entry] = [raw, &newest].map(|entry| keys.entry(name, number, entry));
            if let (Entry::Key(before), Entry::Key(again)) = (before, newest_entry)
                && before == again
            {
                self.erase_replaced(key, newest.sequence).await?;
            }
            return Ok(false);
        }
        let open = match keys.entry(name, number, raw) {
            Entry::Key(open) => open,
            Entry::OtherMaster(digest) => return Err(BusError::Refused(other_master(name, number, &digest))),
            Entry::Destroyed | Entry::Damaged => return Ok(false),
        };
        let wrapped = keys.wrapped(name, number, &open).map_err(BusError::unavailable(DOING))?;
        let newest = match self.update_value(DATA_KEYS_BUCKET, key, wrapped, raw.sequence).await {
            // It was destroyed meanwhile, or somebody else is at it.
            Err(BusError::Conflict { .. }) => return Ok(false),
            newest => newest?,
        };
        self.erase_replaced(key, newest).await?;
        Ok(true)
    }

    /// Writes over, in the server's files, whatever stood under a key of the bucket of data keys before its newest revision. The bucket
    /// keeps it until then: what the server drops by itself stays in its files for a while.
    pub async fn erase_replaced(&self, key: &str, newest: u64) -> Result<(), BusError> {
        let revisions = self.revisions(DATA_KEYS_BUCKET, key).await?;
        for raw in revisions.iter().filter(|raw| raw.sequence < newest) {
            self.erase_revision(DATA_KEYS_BUCKET, raw.sequence).await?;
        }
        Ok(())
    }
}
