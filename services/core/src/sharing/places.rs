//! Places for what goes on at once. Whoever wants one takes it, or is refused ([`Places::take`]), or waits for it in the order
//! of shares ([`Places::wait`]): who holds least goes first and, among equals, who was served longest ago.

mod state;

use std::{
    future::pending,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use super::Holder;
use state::{Grant, Place, State};

/// A limited number of places, of which each holder has a limited part. Clones share the same places.
#[derive(Clone, Debug)]
pub struct Places(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Notified when the last place was given back.
    empty: Notify,
}

/// The reasons there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPlace {
    /// All are taken.
    All,
    /// The requester holds as many as it may.
    Own,
}

/// Dropping it gives the place back.
#[derive(Debug)]
pub struct Permit {
    places: Arc<Shared>,
    place: Place,
}

impl Places {
    /// `all` places, of which one holder has `each` at most.
    pub fn new(all: usize, each: usize) -> Self {
        Self(Arc::new(Shared { state: Mutex::new(State::new(all, each)), empty: Notify::new() }))
    }

    /// Places of which nobody is kept to less than their part.
    pub fn shared(all: usize) -> Self {
        Self::new(all, all)
    }

    /// A place, if there is one within the holder's part. One that is held so is never taken back.
    ///
    /// # Errors
    /// When there is none.
    pub fn take(&self, holder: &Holder) -> Result<Permit, NoPlace> {
        self.take_as(holder, false)
    }

    /// Takes a place that is taken back ([`Permit::revoked`]) when others are owed it.
    ///
    /// # Errors
    /// When there is none.
    pub fn take_revocable(&self, holder: &Holder) -> Result<Permit, NoPlace> {
        self.take_as(holder, true)
    }

    fn take_as(&self, holder: &Holder, revocable: bool) -> Result<Permit, NoPlace> {
        let place = self.0.state().take(holder, revocable.then(CancellationToken::new))?;
        Ok(Permit { places: self.0.clone(), place })
    }

    /// Waits for a place.
    pub async fn wait(&self, holder: &Holder) -> Permit {
        self.wait_for(holder, 1).await
    }

    /// Waits for so many places at once; for all there are, where that is less.
    pub async fn wait_for(&self, holder: &Holder, places: usize) -> Permit {
        let (tell, told) = oneshot::channel();
        self.0.state().queue(holder, places, tell);
        let mut waiting = Waiting { places: &self.0, holder, told };
        self.0.serve();
        match (&mut waiting.told).await {
            Ok(permit) => permit,
            // Never: whoever waits is served or leaves.
            Err(_) => pending().await,
        }
    }

    /// Waits until every place was given back.
    pub async fn returned(&self) {
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
        self.0.state().used()
    }

    /// Places that nobody holds.
    pub fn free(&self) -> usize {
        self.0.state().free()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives what is free to those who wait. Who has left meanwhile gives it back.
    fn serve(self: &Arc<Self>) {
        let served = self.state().serve();
        for Grant { place, tell } in served {
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
    pub fn pass_on(&mut self, holder: &Holder) -> Result<(), NoPlace> {
        self.place = self.places.state().pass_on(&self.place, holder)?;
        Ok(())
    }

    /// Waits until the place is taken back; for ever where it never is. What it was held for is to end then.
    pub async fn revoked(&self) {
        match self.place.revoked() {
            Some(revoked) => revoked.cancelled().await,
            None => pending().await,
        }
    }

    /// Returns the token that is cancelled when the place is revoked.
    pub fn revocation(&self) -> CancellationToken {
        self.place.revoked().cloned().unwrap_or_default()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let used = {
            let mut state = self.places.state();
            state.give_back(&self.place);
            state.used()
        };
        if used == 0 {
            self.places.empty.notify_waiters();
        }
        self.places.serve();
    }
}

/// Somebody in the queue, who leaves it when they wait no more.
struct Waiting<'p> {
    places: &'p Arc<Shared>,
    holder: &'p Holder,
    told: oneshot::Receiver<Permit>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.told.close();
        self.places.state().leave(self.holder);
        // One that came in the same moment is given back.
        drop(self.told.try_recv());
        self.places.serve();
    }
}

#[cfg(test)]
mod tests;
