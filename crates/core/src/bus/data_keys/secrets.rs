//! Secrets of services, such as tokens, kept in buckets under the master key itself. They are no user's, so they have no data key.

use bytes::Bytes;
use kairo_events::sealing;
use uuid::Uuid;

use super::{Bus, Cause};

/// The error of sealing or opening without a master key.
const NO_KEY: &str = "there is no privacy.master_key";

impl Bus {
    /// Seals bytes for this place under the master key in force.
    ///
    /// # Errors
    /// Returns an error if there is no `privacy.master_key`.
    pub fn seal_under_master(&self, place: Uuid, bytes: &[u8]) -> Result<Bytes, Cause> {
        let keys = self.data_keys.as_ref().ok_or(NO_KEY)?;
        let (_, key) = keys.masters.first().ok_or(NO_KEY)?;
        Ok(sealing::seal_at(key, place, bytes)?.into())
    }

    /// Opens bytes sealed by [`Bus::seal_under_master`], also under a key of `privacy.old_master_keys`.
    ///
    /// # Errors
    /// Returns an error if no key opens them.
    pub fn open_under_master(&self, place: Uuid, sealed: &[u8]) -> Result<Vec<u8>, Cause> {
        let keys = self.data_keys.as_ref().ok_or(NO_KEY)?;
        let opened = keys.masters.iter().find_map(|(_, key)| sealing::open_at(key, place, sealed).ok());
        Ok(opened.ok_or(sealing::SealingError::NotOpened)?)
    }
}
