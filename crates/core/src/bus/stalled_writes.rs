//! The state of writes to the log. While some do not reach it, nothing costly is begun: its result could not be stored.

use super::BusError;
use crate::watch;

/// The writes of this process that the server has refused or not answered, and that are being tried again.
#[derive(Clone, Debug, Default)]
pub struct StalledWrites {
    stalled: watch::Sender<StallState>,
}

#[derive(Clone, Debug, Default)]
struct StallState {
    count: usize,
    /// The error of the write that stalled last.
    reason: String,
}

/// A write that is being tried again; dropped when it was written, or given up.
#[derive(Debug)]
pub struct StalledWrite(StalledWrites);

impl StalledWrites {
    /// A write was not acknowledged. `before` is what an earlier try of the same write came to.
    pub fn mark_stalled(&self, error: &BusError, before: Option<StalledWrite>) -> StalledWrite {
        let again = before.is_some();
        self.stalled.send_modify(|stalls| {
            stalls.count += usize::from(!again);
            stalls.reason = error.to_string();
        });
        before.unwrap_or_else(|| StalledWrite(self.clone()))
    }

    /// Returns the reason nothing is begun at the moment, or `None` if writes go through.
    pub fn stall_reason(&self) -> Option<String> {
        let stalls = self.stalled.borrow();
        (stalls.count > 0).then(|| stalls.reason.clone())
    }

    /// Waits until everything that was written is in the log.
    pub async fn wait_until_flowing(&self) {
        // The sender is here, so it cannot be gone.
        let _ = self.stalled.subscribe().wait_for(|stalls| stalls.count == 0).await;
    }
}

impl Drop for StalledWrite {
    fn drop(&mut self) {
        self.0.stalled.send_modify(|stalls| stalls.count = stalls.count.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> BusError {
        BusError::Unavailable { doing: "publishing", source: "maximum bytes exceeded".into() }
    }

    #[tokio::test]
    async fn they_flow_again_when_the_last_one_was_written() {
        let writes = StalledWrites::default();
        writes.wait_until_flowing().await;
        let one = writes.mark_stalled(&full(), None);
        let one = writes.mark_stalled(&full(), Some(one));
        let other = writes.mark_stalled(&full(), None);
        assert!(writes.stall_reason().unwrap().contains("maximum bytes exceeded"));
        let waiting = tokio::spawn({
            let writes = writes.clone();
            async move { writes.wait_until_flowing().await }
        });
        drop(one);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(other);
        waiting.await.unwrap();
        assert_eq!(writes.stall_reason(), None);
    }
}
