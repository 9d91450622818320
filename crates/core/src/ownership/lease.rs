//! The lease that tells a replica if it may still act as the owner of the partitions it took.

use std::time::Duration;

use tokio::time::Instant;

use crate::watch;

/// The lifetime of the lease, in tenths of the expiry after which others may take this replica's partitions: nothing
/// costly begins later than that after the last beat.
const TENTHS: u32 = 7;

/// Renewed at every beat that reached the server and showed that nothing was taken.
#[derive(Clone, Debug)]
pub struct Lease {
    renewed: watch::Sender<Option<Instant>>,
    lifetime: Duration,
}

impl Lease {
    /// Creates a lease that was never renewed.
    pub fn new(expiry: Duration) -> Self {
        Self { renewed: watch::Sender::new(None), lifetime: expiry * TENTHS / 10 }
    }

    /// As of `at`, when the beat began.
    pub fn renew(&self, at: Instant) {
        self.renewed.send_replace(Some(at));
    }

    pub fn is_fresh(&self) -> bool {
        self.renewed.borrow().is_some_and(|renewed| renewed.elapsed() < self.lifetime)
    }

    /// Waits until it is young enough to begin something.
    pub async fn wait_until_fresh(&self) {
        let mut renewed = self.renewed.subscribe();
        while !self.is_fresh() {
            // The sender is here, so it cannot be gone.
            let _ = renewed.wait_for_change().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_is_waited_for_once_it_is_old() {
        let lease = Lease::new(Duration::from_millis(2_500));
        assert!(!lease.is_fresh());
        lease.renew(Instant::now());
        lease.wait_until_fresh().await;
        tokio::time::advance(Duration::from_millis(1_800)).await;
        assert!(!lease.is_fresh());
        let waiting = tokio::spawn({
            let lease = lease.clone();
            async move { lease.wait_until_fresh().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        lease.renew(Instant::now());
        waiting.await.unwrap();
    }
}
