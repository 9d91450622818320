//! Bytes that are sealed with data keys outside of the log, such as snapshots and images.

use kairo_events::{
    personal::{DataKey, DataKeyState},
    sealing,
};

use super::DataKeyHolder;
use crate::{
    bus::{Bus, BusError},
    ids,
};

/// The most that a generation numbered by the time may be ahead of it, in seconds.
const AHEAD_S: u32 = 86_400;

impl Bus {
    /// Bytes sealed with the data key of a holder, for a place of that name; none where nothing is sealed.
    pub async fn seal_bytes(
        &self,
        holder: DataKeyHolder<'_>,
        place: &str,
        bytes: &[u8],
    ) -> Result<Option<Vec<u8>>, BusError> {
        if !self.may_seal().await? {
            return Ok(None);
        }
        let Some(key) = self.get_or_create_data_key(holder).await? else { return Ok(None) };
        seal_with_key(&key, holder, place, bytes).map(Some)
    }

    /// Seals bytes with a data key that is made for them alone, and returns its generation as well: the time in
    /// seconds, or one above the newest, so that keys of long ago need leave no mark ([`Bus::drop_destroyed_marks`]).
    pub async fn seal_with_new_key(
        &self,
        holder: DataKeyHolder<'_>,
        place: &str,
        bytes: &[u8],
    ) -> Result<Option<(u32, Vec<u8>)>, BusError> {
        let Some(keys) = &self.data_keys else { return Ok(None) };
        if !self.may_seal().await? {
            return Ok(None);
        }
        // A number that was there before would be destroyed by whoever still has to do with that one.
        let known = self.reload_data_keys(keys, holder).await?;
        let now = u32::try_from(self.now().as_second()).unwrap_or_default();
        // A number far ahead of the time is nobody's that makes them by the time.
        let newest = known.keys().rfind(|number| **number < now.saturating_add(AHEAD_S));
        let from = now.max(newest.map_or(0, |newest| newest.saturating_add(1)));
        let key = self.create_next_generation(keys, holder, from, &known).await?;
        keys.evict(holder);
        Ok(Some((key.generation, seal_with_key(&key, holder, place, bytes)?)))
    }

    /// Opens bytes sealed in this way; `None` if the key is destroyed, or the bytes were not sealed for this place.
    pub async fn open_bytes(
        &self,
        holder: DataKeyHolder<'_>,
        place: &str,
        sealed: &[u8],
    ) -> Result<Option<Vec<u8>>, BusError> {
        let Some((generation, sealed)) = sealed.split_first_chunk() else { return Ok(None) };
        let known = self.known_data_key(holder, u32::from_be_bytes(*generation)).await?;
        let DataKeyState::Key(key) = known else { return Ok(None) };
        let place = ids::from_parts("sealed-for", &[&holder.to_string(), place]);
        Ok(sealing::open_at(&key, place, sealed).ok())
    }
}

fn seal_with_key(key: &DataKey, holder: DataKeyHolder<'_>, place: &str, bytes: &[u8]) -> Result<Vec<u8>, BusError> {
    let place = ids::from_parts("sealed-for", &[&holder.to_string(), place]);
    let sealed = sealing::seal_at(&key.key, place, bytes).map_err(BusError::unavailable("sealing"))?;
    Ok([&key.generation.to_be_bytes()[..], &sealed].concat())
}
