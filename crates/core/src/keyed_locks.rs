//! One lock and one value for each key, made when first asked for, at most so many.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex as StdMutex, PoisonError},
};

use tokio::sync::Mutex;

/// The value of a key. Whoever holds the lock is the only one in this process to work on that key.
pub type KeyedLock<V> = Arc<Mutex<V>>;

/// A bounded map of locks. When it is full, values nobody is using are forgotten: they must be caches.
pub struct KeyedLocks<K, V> {
    capacity: usize,
    locks: StdMutex<BTreeMap<K, KeyedLock<V>>>,
}

impl<K: Clone + Ord, V: Default> KeyedLocks<K, V> {
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), locks: StdMutex::default() }
    }

    /// The slot of a key.
    pub fn get(&self, key: &K) -> KeyedLock<V> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = locks.get(key) {
            return slot.clone();
        }
        if locks.len() >= self.capacity {
            // Half of the idle ones go, so that this is rare.
            let mut keep = self.capacity / 2;
            locks.retain(|_, slot| {
                let busy = Arc::strong_count(slot) > 1;
                let kept = busy || keep > 0;
                keep = keep.saturating_sub(1);
                kept
            });
        }
        locks.entry(key.clone()).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn full_slots_forget_only_what_is_idle() {
        let locks = KeyedLocks::<u32, u32>::new(2);
        let busy = locks.get(&1);
        let mut held = busy.lock().await;
        *held = 7;
        for key in 2..100 {
            *locks.get(&key).lock().await = key;
        }
        drop(held);
        assert_eq!(*locks.get(&1).lock().await, 7);
        assert!(locks.locks.lock().unwrap().len() <= 3);
    }
}
