//! The contents of the object store, kept current by following it: the bytes stored per key and user, and since when.
//!
//! Each gateway follows the store for itself, and counts the bytes it is storing right now. Several gateways that store
//! for the same key at the same moment do not see each other's bytes yet, so together they may exceed the bound; the
//! next request finds it reached.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::StreamExt;
use kairo_core::bus::{
    BusError,
    objects::{MediaObject, MediaStore, StoredFor},
};
use tokio::{
    sync::oneshot,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// Pause before the store is followed anew when that broke off.
const PAUSE: Duration = Duration::from_secs(1);
/// Timeout of the first reading of the store.
const READ_WITHIN: Duration = Duration::from_secs(30);

/// The most bytes that may be stored for a key and for a user.
#[derive(Clone, Copy, Debug)]
pub struct StorageBounds {
    pub key: u64,
    pub user: u64,
}

/// The bound that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceededBound {
    Key,
    User,
}

/// Cloning it is cheap.
#[derive(Clone, Default)]
pub struct ObjectInventory(Arc<Mutex<InventoryState>>);

#[derive(Default)]
struct InventoryState {
    /// By digest; what was removed as well, until it is forgotten.
    kept: HashMap<String, MediaObject>,
    /// By digest; objects being stored, until they are seen in the store.
    coming: HashMap<String, (StoredFor, u64)>,
}

/// Bytes on their way into the store. They count until they are seen there, or until it is dropped without [`IncomingObject::mark_stored`]. Those
/// that were there already, stored by others, count here until the gateway is started anew: what is left shows nothing of it.
pub struct IncomingObject {
    inventory: ObjectInventory,
    digest: String,
    came: bool,
}

impl ObjectInventory {
    /// Reads what there is, and follows it until shutdown.
    pub async fn follow(objects: &MediaStore, shutdown: CancellationToken) -> Self {
        let inventory = Self::default();
        let objects = objects.clone();
        let following = inventory.clone();
        let (told, whole) = oneshot::channel();
        tokio::spawn(async move {
            let mut told = Some(told);
            let going_on = async {
                loop {
                    if let Err(error) = following.follow_store(&objects, &mut told).await {
                        tracing::warn!(%error, "the object store is not followed");
                    }
                    sleep(PAUSE).await;
                }
            };
            shutdown.run_until_cancelled(going_on).await;
        });
        // Without nats for that long, what is stored is not counted at first, and nothing can be stored either.
        drop(timeout(READ_WITHIN, whole).await);
        inventory
    }

    async fn follow_store(&self, objects: &MediaStore, told: &mut Option<oneshot::Sender<()>>) -> Result<(), BusError> {
        let (mut there, changes) = objects.follow_objects().await?;
        let mut changes = Box::pin(changes);
        // What was forgotten meanwhile nobody says.
        let mut whole = HashMap::new();
        while there > 0
            && let Some(kept) = changes.next().await.transpose()?
        {
            whole.extend(kept.map(|kept| (kept.digest.clone(), kept)));
            there -= 1;
        }
        self.lock_state().reset(whole);
        if let Some(told) = told.take() {
            _ = told.send(());
        }
        while let Some(kept) = changes.next().await.transpose()? {
            kept.into_iter().for_each(|kept| self.lock_state().apply_change(kept));
        }
        Ok(())
    }

    fn lock_state(&self) -> MutexGuard<'_, InventoryState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if these bytes already count for this key and user.
    pub fn has(&self, digest: &str, whose: &StoredFor) -> bool {
        let known = self.lock_state();
        let is_kept = known.kept.get(digest).is_some_and(|kept| !kept.is_removed && kept.stored_for == *whose);
        is_kept || known.coming.get(digest).is_some_and(|(other, _)| other == whose)
    }

    /// Counts bytes that are about to be stored, if they stay within the bounds.
    pub fn reserve_bytes(
        &self,
        digest: &str,
        whose: &StoredFor,
        size: u64,
        bounds: StorageBounds,
    ) -> Result<IncomingObject, ExceededBound> {
        let mut known = self.lock_state();
        let fits = |own: Option<&String>, of: fn(&StoredFor) -> Option<&String>, most: u64| {
            own.is_none_or(|own| known.bytes_where(|other| of(other) == Some(own)).saturating_add(size) <= most)
        };
        if !fits(whose.key.as_ref(), |other| other.key.as_ref(), bounds.key) {
            return Err(ExceededBound::Key);
        }
        if !fits(whose.user.as_ref(), |other| other.user.as_ref(), bounds.user) {
            return Err(ExceededBound::User);
        }
        known.coming.insert(digest.to_owned(), (whose.clone(), size));
        Ok(IncomingObject { inventory: self.clone(), digest: digest.to_owned(), came: false })
    }

    /// Returns the objects for which `holds` is true; removed ones are included until they are forgotten.
    pub fn objects_where(&self, holds: impl Fn(&MediaObject) -> bool) -> Vec<MediaObject> {
        self.lock_state().kept.values().filter(|kept| holds(kept)).cloned().collect()
    }

    /// Forgets what is no longer there, unless it was stored again.
    pub fn forget(&self, gone: &MediaObject) {
        let mut known = self.lock_state();
        if known.kept.get(&gone.digest).is_some_and(|kept| kept.sequence == gone.sequence) {
            known.kept.remove(&gone.digest);
        }
    }
}

impl InventoryState {
    fn reset(&mut self, whole: HashMap<String, MediaObject>) {
        self.coming.retain(|digest, _| !whole.contains_key(digest));
        self.kept = whole;
    }

    fn apply_change(&mut self, kept: MediaObject) {
        self.coming.remove(&kept.digest);
        self.kept.insert(kept.digest.clone(), kept);
    }

    /// Returns the bytes stored, or being stored, for every owner for whom `holds` is true.
    fn bytes_where(&self, holds: impl Fn(&StoredFor) -> bool) -> u64 {
        let kept = self.kept.values().filter(|kept| !kept.is_removed).map(|kept| (&kept.stored_for, kept.size));
        let coming = self.coming.values().map(|(whose, size)| (whose, *size));
        kept.chain(coming).filter(|(whose, _)| holds(whose)).map(|(_, size)| size).sum()
    }
}

impl IncomingObject {
    /// They are there: whoever follows the store will see them.
    pub fn mark_stored(mut self) {
        self.came = true;
    }
}

impl Drop for IncomingObject {
    fn drop(&mut self) {
        if !self.came {
            self.inventory.lock_state().coming.remove(&self.digest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: StorageBounds = StorageBounds { key: 10, user: 6 };

    fn whose(key: Option<&str>, user: Option<&str>) -> StoredFor {
        StoredFor { key: key.map(str::to_owned), user: user.map(str::to_owned) }
    }

    #[test]
    fn a_key_and_a_user_have_so_many_bytes_and_no_more() {
        let inventory = ObjectInventory::default();
        let announce = |digest: &str, whose: &StoredFor, size| inventory.reserve_bytes(digest, whose, size, BOUNDS);
        let ann = whose(Some("k"), Some("ann"));
        let joe = whose(Some("k"), Some("joe"));
        announce("a", &ann, 6).ok().unwrap().mark_stored();
        assert_eq!(announce("b", &ann, 1).err(), Some(ExceededBound::User));
        assert_eq!(announce("b", &joe, 5).err(), Some(ExceededBound::Key));
        // What does not come does not count.
        drop(announce("b", &joe, 4).ok().unwrap());
        let coming = announce("b", &joe, 4).ok().unwrap();
        assert_eq!(announce("c", &whose(Some("k"), None), 1).err(), Some(ExceededBound::Key));
        drop(coming);
        // Who is not bounded is not counted.
        assert!(announce("c", &whose(None, None), 1_000).is_ok());
        assert!(announce("c", &whose(Some("other"), Some("eve")), 6).is_ok());
        // What is counted for one is not for another.
        assert!(inventory.has("a", &ann) && !inventory.has("a", &joe) && !inventory.has("b", &ann));
    }
}
