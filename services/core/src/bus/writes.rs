//! The state of writes to the log. While some do not reach it, nothing costly is begun: its result could not be stored.

use super::BusError;
use crate::watch;

/// The writes of this process that the server has refused or not answered, and that are being tried again.
#[derive(Clone, Debug, Default)]
pub struct Writes {
    stalled: watch::Sender<Stalls>,
}

#[derive(Clone, Debug, Default)]
struct Stalls {
    count: usize,
    /// The error of the write that stalled last.
    reason: String,
}

/// A write that is being tried again; dropped when it was written, or given up.
#[derive(Debug)]
pub struct Stalled(Writes);

impl Writes {
    /// A write was not acknowledged. `before` is what an earlier try of the same write came to.
    pub fn stall(&self, error: &BusError, before: Option<Stalled>) -> Stalled {
        let again = before.is_some();
        self.stalled.send_modify(|stalls| {
            stalls.count += usize::from(!again);
            stalls.reason = error.to_string();
        });
        before.unwrap_or_else(|| Stalled(self.clone()))
    }

    /// Returns the reason nothing is begun at the moment, or `None` if writes go through.
    pub fn why_stalled(&self) -> Option<String> {
        let stalls = self.stalled.borrow();
        (stalls.count > 0).then(|| stalls.reason.clone())
    }

    /// Waits until everything that was written is in the log.
    pub async fn flowing(&self) {
        // The sender is here, so it cannot be gone.
        let _ = self.stalled.subscribe().wait_for(|stalls| stalls.count == 0).await;
    }
}

impl Drop for Stalled {
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
        let writes = Writes::default();
        writes.flowing().await;
        let one = writes.stall(&full(), None);
        let one = writes.stall(&full(), Some(one));
        let other = writes.stall(&full(), None);
        assert!(writes.why_stalled().unwrap().contains("maximum bytes exceeded"));
        let waiting = tokio::spawn({
            let writes = writes.clone();
            async move { writes.flowing().await }
        });
        drop(one);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(other);
        waiting.await.unwrap();
        assert_eq!(writes.why_stalled(), None);
    }
}
