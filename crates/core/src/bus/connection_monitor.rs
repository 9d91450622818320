//! The state of a replica's own connection. While the server was away, heartbeats were missed on all sides, and no
//! replica may be given up for lost before all had the time to come back.

use std::time::Duration;

use tokio::time::Instant;

use super::{Bus, port};
use crate::watch;

/// The connection to nats, as seen from time to time.
#[derive(Clone)]
pub struct ConnectionMonitor {
    bus: Bus,
    ack_wait: Duration,
    seen: watch::Sender<ObservedConnection>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct ObservedConnection {
    up: bool,
    /// Counts every connection that was made.
    number: u64,
    since: Instant,
}

impl ObservedConnection {
    /// Takes in what is the case at `now`; true when that is another connection than before.
    fn apply_status(&mut self, up: bool, number: u64, now: Instant) -> bool {
        let changed = (self.up, self.number) != (up, number);
        if changed {
            *self = Self { up, number, since: now };
        }
        changed
    }
}

impl ConnectionMonitor {
    pub fn new(bus: &Bus) -> Self {
        let none = ObservedConnection { up: false, number: 0, since: Instant::now() };
        let ack_wait = Duration::from_millis(bus.limits.ack_wait_ms);
        let contact = Self { bus: bus.clone(), ack_wait, seen: watch::Sender::new(none) };
        contact.refresh();
        contact
    }

    /// Returns how long the connection has been up without a break, as far as was seen.
    pub fn uptime(&self) -> Duration {
        self.refresh();
        let connection = *self.seen.borrow();
        if connection.up { connection.since.elapsed() } else { Duration::ZERO }
    }

    /// Returns true if the connection is so young (less than the ack wait) that other replicas, alive like this one,
    /// may not have theirs back yet.
    pub fn is_young(&self) -> bool {
        self.uptime() < self.ack_wait
    }

    /// The connections made from now on.
    pub fn reconnections(&self) -> ReconnectionStream {
        ReconnectionStream { seen: self.seen.subscribe() }
    }

    /// Notes what is the case now. A break between two looks is seen by the second.
    pub fn refresh(&self) {
        let port::ConnectionStatus { up, number } = self.bus.connection();
        self.seen.send_if_modified(|connection| connection.apply_status(up, number, Instant::now()));
    }
}

/// See [`ConnectionMonitor::reconnections`].
pub struct ReconnectionStream {
    seen: watch::Receiver<ObservedConnection>,
}

impl ReconnectionStream {
    /// Waits until there is another connection than before.
    pub async fn next_reconnection(&mut self) {
        loop {
            if self.seen.wait_for_change().await.is_err() {
                // Nobody looks any more.
                std::future::pending().await
            }
            if self.seen.borrow_and_update().up {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_as_old_as_its_last_break() {
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        let mut connection = ObservedConnection { up: true, number: 1, since: start };
        assert!(!connection.apply_status(true, 1, later(1)));
        assert_eq!(connection.since, start);
        assert!(connection.apply_status(true, 2, later(2)), "broken and back between two looks");
        assert!(connection.apply_status(false, 2, later(3)));
        assert!(connection.apply_status(true, 3, later(4)));
        assert_eq!(connection.since, later(4));
    }
}
