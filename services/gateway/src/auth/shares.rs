//! Permits for what goes on at once, of which nobody may hold more than a share: whoever takes all they can get leaves the
//! rest to others.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::limits::Whose;

/// So many permits, and so many of them at most for each.
#[derive(Clone)]
pub struct Shares {
    permits: Arc<Semaphore>,
    all: u32,
    each: usize,
    held: Arc<Mutex<HashMap<Whose, usize>>>,
}

/// Why there is no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPermit {
    /// All are taken.
    All,
    /// Whoever asks holds as many as they may.
    Own,
}

/// Dropping it gives it back.
#[derive(Debug)]
pub struct Permit {
    _one: OwnedSemaphorePermit,
    _holder: Option<Holder>,
}

#[derive(Debug)]
struct Holder {
    whose: Whose,
    held: Arc<Mutex<HashMap<Whose, usize>>>,
}

impl Shares {
    pub fn new(all: usize, each: usize) -> Self {
        let all = u32::try_from(all).unwrap_or(u32::MAX);
        Self { permits: Arc::new(Semaphore::new(all as usize)), all, each, held: Arc::default() }
    }

    /// A permit, if there is one; of nobody in particular where it is not said whose.
    pub fn take(&self, whose: Option<Whose>) -> Result<Permit, NoPermit> {
        let holder = whose.map(|whose| self.hold(whose)).transpose()?;
        let one = self.permits.clone().try_acquire_owned().map_err(|_| NoPermit::All)?;
        Ok(Permit { _one: one, _holder: holder })
    }

    fn hold(&self, whose: Whose) -> Result<Holder, NoPermit> {
        let mut held = lock(&self.held);
        let count = held.entry(whose.clone()).or_default();
        if *count >= self.each {
            return Err(NoPermit::Own);
        }
        *count += 1;
        Ok(Holder { whose, held: self.held.clone() })
    }

    /// Waits until every permit was given back.
    pub async fn returned(&self) {
        drop(self.permits.acquire_many(self.all).await);
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        if let Entry::Occupied(mut count) = lock(&self.held).entry(self.whose.clone()) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

fn lock(held: &Mutex<HashMap<Whose, usize>>) -> MutexGuard<'_, HashMap<Whose, usize>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str) -> Option<Whose> {
        Some(Whose::Key(id.to_owned()))
    }

    #[test]
    fn nobody_takes_the_permits_of_others() {
        let shares = Shares::new(3, 2);
        let taken = [shares.take(key("a")).unwrap(), shares.take(key("a")).unwrap()];
        assert_eq!(shares.take(key("a")).unwrap_err(), NoPermit::Own);
        let other = shares.take(key("b")).unwrap();
        assert_eq!(shares.take(key("b")).unwrap_err(), NoPermit::All);
        // What was refused is not counted.
        drop(other);
        drop(taken);
        assert!(lock(&shares.held).is_empty());
        let nobodys = [None, None, None].map(|nobody| shares.take(nobody).unwrap());
        assert_eq!(shares.take(None).unwrap_err(), NoPermit::All);
        drop(nobodys);
        assert!(shares.take(key("a")).is_ok());
    }
}
