//! Places for what goes on at once. Whoever wants one takes it, or is refused ([`PermitPool::try_acquire`]), or waits for it in the order
//! of shares ([`PermitPool::acquire`]): who holds least goes first and, among equals, who was served longest ago.

mod state;

use std::{
    future::pending,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use super::QuotaHolder;
use state::{PermitGrant, PoolState, ServedWaiter};

/// A limited number of places, of which each holder has a limited part. Clones share the same places.
#[derive(Clone, Debug)]
pub struct PermitPool(Arc<PermitPoolInner>);

#[derive(Debug)]
struct PermitPoolInner {
    state: Mutex<PoolState>,
    /// Notified when the last place was given back.
    empty: Notify,
}

/// The reasons there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPermit {
    /// All are taken.
    All,
    /// The requester holds as many as it may.
    Own,
}

/// Dropping it gives the place back.
#[derive(Debug)]
pub struct Permit {
    places: Arc<PermitPoolInner>,
    place: PermitGrant,
}

impl PermitPool {
    /// `all` places, of which one holder has `each` at most.
    pub fn new(all: usize, each: usize) -> Self {
        Self(Arc::new(PermitPoolInner { state: Mutex::new(PoolState::new(all, each)), empty: Notify::new() }))
    }

    /// Places of which nobody is kept to less than their part.
    pub fn with_capacity(all: usize) -> Self {
        Self::new(all, all)
    }

    /// A place, if there is one within the holder's part. One that is held so is never taken back.
    ///
    /// # Errors
    /// When there is none.
    pub fn try_acquire(&self, holder: &QuotaHolder) -> Result<Permit, NoPermit> {
        self.try_acquire_as(holder, false)
    }

    /// Takes a place that is taken back ([`Permit::wait_until_revoked`]) when others are owed it.
    ///
    /// # Errors
    /// When there is none.
    pub fn try_acquire_revocable(&self, holder: &QuotaHolder) -> Result<Permit, NoPermit> {
        self.try_acquire_as(holder, true)
    }

    fn try_acquire_as(&self, holder: &QuotaHolder, revocable: bool) -> Result<Permit, NoPermit> {
        let place = self.0.lock_state().try_grant(holder, revocable.then(CancellationToken::new))?;
        Ok(Permit { places: self.0.clone(), place })
    }

    /// Waits for a place.
    pub async fn acquire(&self, holder: &QuotaHolder) -> Permit {
        self.acquire_many(holder, 1).await
    }

    /// Waits for so many places at once; for all there are, where that is less.
    pub async fn acquire_many(&self, holder: &QuotaHolder, places: usize) -> Permit {
        let (tell, told) = oneshot::channel();
        self.0.lock_state().enqueue_waiter(holder, places, tell);
        let mut waiting = QueuedWaiter { places: &self.0, holder, told };
        self.0.serve_waiters();
        match (&mut waiting.told).await {
            Ok(permit) => permit,
            // Never: whoever waits is served or leaves.
            Err(_) => pending().await,
        }
    }

    /// Waits until every place was given back.
    pub async fn wait_until_idle(&self) {
        loop {
            let mut empty = std::pin::pin!(self.0.empty.notified());
            empty.as_mut().enable();
            if self.in_use() == 0 {
                return;
            }
            empty.await;
        }
    }

    /// Places that somebody holds.
    pub fn in_use(&self) -> usize {
        self.0.lock_state().used()
    }

    /// Places that nobody holds.
    pub fn available(&self) -> usize {
        self.0.lock_state().free()
    }
}

impl PermitPoolInner {
    fn lock_state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives what is free to those who wait. Who has left meanwhile gives it back.
    fn serve_waiters(self: &Arc<Self>) {
        let served = self.lock_state().serve_waiters();
        for ServedWaiter { place, tell } in served {
            // A permit that comes back is dropped here, where nothing is locked.
            drop(tell.send(Permit { places: self.clone(), place }));
        }
    }
}

impl Permit {
    /// Counts the place as another holder's from here on.
    ///
    /// # Errors
    /// When they may have none; then it stays as it is.
    pub fn transfer_to(&mut self, holder: &QuotaHolder) -> Result<(), NoPermit> {
        self.place = self.places.lock_state().transfer_to(&self.place, holder)?;
        Ok(())
    }

    /// Waits until the place is taken back; for ever where it never is. What it was held for is to end then.
    pub async fn wait_until_revoked(&self) {
        match self.place.revocation() {
            Some(revoked) => revoked.cancelled().await,
            None => pending().await,
        }
    }

    /// Returns the token that is cancelled when the place is revoked.
    pub fn revocation_token(&self) -> CancellationToken {
        self.place.revocation().cloned().unwrap_or_default()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let used = {
            let mut state = self.places.lock_state();
            state.return_grant(&self.place);
            state.used()
        };
        if used == 0 {
            self.places.empty.notify_waiters();
        }
        self.places.serve_waiters();
    }
}

/// Somebody in the queue, who leaves it when they wait no more.
struct QueuedWaiter<'p> {
    places: &'p Arc<PermitPoolInner>,
    holder: &'p QuotaHolder,
    told: oneshot::Receiver<Permit>,
}

impl Drop for QueuedWaiter<'_> {
    fn drop(&mut self) {
        self.told.close();
        self.places.lock_state().drop_closed_waiters(self.holder);
        // One that came in the same moment is given back.
        drop(self.told.try_recv());
        self.places.serve_waiters();
    }
}

#[cfg(test)]
mod tests;
