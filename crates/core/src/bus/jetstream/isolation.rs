//! A server that is cut off from the others keeps its clients, and can do nothing for them. Nothing tells them so: what they
//! ask for is merely not done. So after a while of that another server is tried.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::JetStream;

/// The time since which no request that needs the other servers was completed over a connection.
#[derive(Clone, Debug)]
pub(super) struct IsolationDetector {
    /// The longest such time before another server is tried; `None` if there is no other server.
    after: Option<Duration>,
    since: Arc<Mutex<Option<Instant>>>,
}

impl IsolationDetector {
    pub fn new(after: Option<Duration>) -> Self {
        Self { after, since: Arc::default() }
    }

    /// Returns true if there are other servers.
    pub fn has_other_servers(&self) -> bool {
        self.after.is_some()
    }

    /// Something was done or not; whether another server is to be tried now, which then has as long.
    fn note_outcome(&self, done: bool, now: Instant) -> bool {
        let Some(after) = self.after else { return false };
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        if done {
            *since = None;
            return false;
        }
        let is_over = now.duration_since(*since.get_or_insert(now)) >= after;
        if is_over {
            *since = Some(now);
        }
        is_over
    }
}

impl JetStream {
    /// Something was asked of the server that it can only do together with the others.
    pub async fn note_quorum_request(&self, done: bool) {
        if !self.isolation.note_outcome(done, Instant::now()) {
            return;
        }
        tracing::warn!("this server does nothing for its clients, trying another one");
        if let Err(error) = self.client.force_reconnect().await {
            tracing::debug!(%error, "the connection is not left");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_server_is_tried_when_nothing_was_done_for_a_while() {
        let isolation = IsolationDetector::new(Some(Duration::from_secs(5)));
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        assert!(!isolation.note_outcome(false, start) && !isolation.note_outcome(false, later(4)));
        assert!(isolation.note_outcome(false, later(5)));
        // That one has as long.
        assert!(!isolation.note_outcome(false, later(9)) && isolation.note_outcome(false, later(10)));
        assert!(!isolation.note_outcome(true, later(11)) && !isolation.note_outcome(false, later(12)));
        assert!(!isolation.note_outcome(false, later(16)) && isolation.note_outcome(false, later(17)));
        assert!(!IsolationDetector::new(None).note_outcome(false, later(99)));
    }
}
