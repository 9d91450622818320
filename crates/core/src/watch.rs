//! One value that many watch, each of them woken in the order in which it began to wait.
//!
//! As [`tokio::sync::watch`], which suits where one waits: of several, it draws by lot who is woken first, and then one
//! seed would not always give the same run of the simulation.

use std::{
    fmt::Debug,
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

/// Changes the value. When the last clone is dropped, nobody will any more.
#[derive(Debug)]
pub struct Sender<T>(Arc<LastSender<T>>);

/// Sees the changes.
#[derive(Debug)]
pub struct Receiver<T> {
    shared: Arc<WatchInner<T>>,
    seen: u64,
}

/// The value cannot change any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nobody is left to change it")]
pub struct Closed;

/// The value, which cannot change meanwhile: not to be held for long.
pub struct Ref<'a, T>(MutexGuard<'a, WatchState<T>>);

/// The state shared by all senders; dropped with the last of them.
#[derive(Debug)]
struct LastSender<T>(Arc<WatchInner<T>>);

#[derive(Debug)]
struct WatchInner<T> {
    state: Mutex<WatchState<T>>,
    changed: Notify,
}

#[derive(Debug)]
struct WatchState<T> {
    value: T,
    /// Counts changes.
    version: u64,
    closed: bool,
}

impl<T> WatchInner<T> {
    fn lock(&self) -> MutexGuard<'_, WatchState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Sender<T> {
    pub fn new(value: T) -> Self {
        let state = Mutex::new(WatchState { value, version: 0, closed: false });
        Self(Arc::new(LastSender(Arc::new(WatchInner { state, changed: Notify::new() }))))
    }

    pub fn send_replace(&self, value: T) {
        self.send_modify(|it| *it = value);
    }

    pub fn send_modify(&self, change: impl FnOnce(&mut T)) {
        self.send_if_modified(|value| {
            change(value);
            true
        });
    }

    /// Modifies the value, and wakes the receivers if `change` returns true.
    pub fn send_if_modified(&self, change: impl FnOnce(&mut T) -> bool) {
        let mut state = self.shared().lock();
        if change(&mut state.value) {
            state.version += 1;
            drop(state);
            self.shared().changed.notify_waiters();
        }
    }

    pub fn borrow(&self) -> Ref<'_, T> {
        Ref(self.shared().lock())
    }

    /// Sees the changes from now on.
    pub fn subscribe(&self) -> Receiver<T> {
        let seen = self.shared().lock().version;
        Receiver { shared: self.shared().clone(), seen }
    }

    fn shared(&self) -> &Arc<WatchInner<T>> {
        &self.0.0
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Default> Default for Sender<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Drop for LastSender<T> {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.changed.notify_waiters();
    }
}

impl<T> Receiver<T> {
    /// Waits for a change that was not seen. Nothing is lost if it is dropped.
    pub async fn wait_for_change(&mut self) -> Result<(), Closed> {
        loop {
            // First, so that no change falls between the look and the wait.
            let changed = self.shared.changed.notified();
            {
                let state = self.shared.lock();
                if state.version != self.seen {
                    self.seen = state.version;
                    return Ok(());
                }
                if state.closed {
                    return Err(Closed);
                }
            }
            changed.await;
        }
    }

    /// The value, which then was seen.
    pub fn borrow_and_update(&mut self) -> Ref<'_, T> {
        let state = self.shared.lock();
        self.seen = state.version;
        Ref(state)
    }

    /// Waits until this holds of the value.
    pub async fn wait_for(&mut self, holds: impl Fn(&T) -> bool) -> Result<T, Closed>
    where
        T: Clone,
    {
        loop {
            {
                let value = self.borrow_and_update();
                if holds(&value) {
                    return Ok(value.clone());
                }
            }
            self.wait_for_change().await?;
        }
    }
}

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.value
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::{sync::mpsc, task::yield_now};

    use super::*;

    #[tokio::test]
    async fn all_are_woken_in_the_order_in_which_they_began_to_wait() {
        // No more than the runtime lets run before it comes back here.
        const MANY: usize = 20;
        let sender = Sender::new(0);
        let (woken, mut order) = mpsc::unbounded_channel();
        for number in 0..MANY {
            let mut receiver = sender.subscribe();
            let woken = woken.clone();
            tokio::spawn(async move {
                receiver.wait_for(|value| *value == 2).await.unwrap();
                woken.send(number).unwrap();
            });
        }
        yield_now().await;
        sender.send_replace(1);
        yield_now().await;
        sender.send_replace(2);
        for number in 0..MANY {
            assert_eq!(order.recv().await, Some(number));
        }
    }

    #[tokio::test]
    async fn a_change_is_seen_once_and_the_end_after_it() {
        let sender = Sender::new(0);
        let mut receiver = sender.subscribe();
        assert_eq!(receiver.wait_for_change().now_or_never(), None);
        sender.send_if_modified(|_| false);
        assert_eq!(receiver.wait_for_change().now_or_never(), None);
        let other = sender.clone();
        drop(sender);
        other.send_modify(|value| *value += 7);
        assert_eq!(receiver.wait_for_change().await, Ok(()));
        assert_eq!(*receiver.borrow_and_update(), 7);
        other.send_replace(8);
        drop(other);
        assert_eq!(receiver.wait_for_change().await, Ok(()));
        assert_eq!(receiver.wait_for_change().await, Err(Closed));
        assert_eq!(receiver.wait_for(|value| *value == 8).await, Ok(8));
        assert_eq!(receiver.wait_for(|value| *value == 9).await, Err(Closed));
    }
}
