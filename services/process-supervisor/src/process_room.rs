//! Room for processes: how many may run here at once, of which each user has a share, and who waits.

use std::time::Duration;

use kairo_core::sharing::{
    QuotaHolder,
    permit_pool::{Permit, PermitPool},
};
use tokio_util::sync::CancellationToken;

/// The free places out of `limits.concurrent`.
pub struct Room {
    places: PermitPool,
    concurrent: usize,
    patience: Duration,
    /// Cancelled when nothing more shall be begun.
    shutdown: CancellationToken,
}

impl Room {
    /// Room for `concurrent` processes, which an invoke waits for no longer than `patience`.
    pub fn new(concurrent: usize, patience: Duration, shutdown: CancellationToken) -> Self {
        Self { places: PermitPool::with_capacity(concurrent), concurrent, patience, shutdown }
    }

    /// Room for one process of an invoke of which nothing has begun here. `None` when it is for others to run: nothing
    /// more shall be begun here, or it has waited so long that another replica may well have room by now.
    pub async fn wait_for_first(&self, holder: &QuotaHolder) -> Option<Permit> {
        if self.places.available() == 0 {
            let concurrent = self.concurrent;
            tracing::warn!(?holder, concurrent, "no room for another process, it waits (limits.concurrent)");
        }
        tokio::time::timeout(self.patience, self.wait_for_more(holder)).await.unwrap_or_default()
    }

    /// Room for one process of an invoke that stays here. `None` when nothing more shall be begun.
    pub async fn wait_for_more(&self, holder: &QuotaHolder) -> Option<Permit> {
        tokio::select! {
            biased;
            () = self.shutdown.cancelled() => None,
            permit = self.places.acquire(holder) => Some(permit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ann() -> QuotaHolder {
        QuotaHolder::for_user("ann")
    }

    #[tokio::test]
    async fn whoever_waits_gets_what_becomes_free() {
        let room = Room::new(1, Duration::from_secs(60), CancellationToken::new());
        let agent = ann();
        let first = room.wait_for_first(&agent).await.expect("room");
        let (second, ()) = tokio::join!(room.wait_for_first(&agent), async { drop(first) });
        assert!(second.is_some());
    }

    #[tokio::test]
    async fn without_room_it_is_for_others() {
        let room = Room::new(1, Duration::ZERO, CancellationToken::new());
        let agent = ann();
        let _first = room.wait_for_first(&agent).await.expect("room");
        assert!(room.wait_for_first(&agent).await.is_none());
    }

    #[tokio::test]
    async fn one_user_leaves_room_to_the_others() {
        let room = Room::new(4, Duration::ZERO, CancellationToken::new());
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(room.wait_for_first(&QuotaHolder::for_user("flood")).await.expect("room"));
        }
        assert!(room.wait_for_first(&QuotaHolder::for_user("flood")).await.is_none());
        assert!(room.wait_for_first(&ann()).await.is_some());
    }

    #[tokio::test]
    async fn nothing_is_begun_after_shutdown() {
        let shutdown = CancellationToken::new();
        let room = Room::new(1, Duration::from_secs(60), shutdown.clone());
        shutdown.cancel();
        assert!(room.wait_for_first(&ann()).await.is_none());
        assert!(room.wait_for_more(&ann()).await.is_none());
    }
}
