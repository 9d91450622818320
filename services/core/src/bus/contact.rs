//! The state of a replica's own connection. While the server was away, heartbeats were missed on all sides, and no
//! replica may be given up for lost before all had the time to come back.

use std::time::Duration;

use tokio::time::Instant;

use super::{Bus, port};
use crate::watch;

/// The connection to nats, as seen from time to time.
#[derive(Clone)]
pub struct Contact {
    bus: Bus,
    ack_wait: Duration,
    seen: watch::Sender<Connection>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Connection {
    up: bool,
    /// Counts every connection that was made.
    number: u64,
    since: Instant,
}

impl Connection {
    /// Takes in what is the case at `now`; true when that is another connection than before.
    fn see(&mut self, up: bool, number: u64, now: Instant) -> bool {
        let changed = (self.up, self.number) != (up, number);
        if changed {
            *self = Self { up, number, since: now };
        }
        changed
    }
}

impl Contact {
    pub fn new(bus: &Bus) -> Self {
        let none = Connection { up: false, number: 0, since: Instant::now() };
        let ack_wait = Duration::from_millis(bus.limits.ack_wait_ms);
        let contact = Self { bus: bus.clone(), ack_wait, seen: watch::Sender::new(none) };
        contact.look();
        contact
    }

    /// Returns how long the connection has been up without a break, as far as was seen.
    pub fn unbroken(&self) -> Duration {
        self.look();
        let connection = *self.seen.borrow();
        if connection.up { connection.since.elapsed() } else { Duration::ZERO }
    }

    /// Returns true if the connection is so young (less than the ack wait) that other replicas, alive like this one,
    /// may not have theirs back yet.
    pub fn is_young(&self) -> bool {
        self.unbroken() < self.ack_wait
    }

    /// The connections made from now on.
    pub fn reconnections(&self) -> Reconnections {
        Reconnections { seen: self.seen.subscribe() }
    }

    /// Notes what is the case now. A break between two looks is seen by the second.
    pub fn look(&self) {
        let port::Connection { up, number } = self.bus.connection();
        self.seen.send_if_modified(|connection| connection.see(up, number, Instant::now()));
    }
}

/// See [`Contact::reconnections`].
pub struct Reconnections {
    seen: watch::Receiver<Connection>,
}

impl Reconnections {
    /// Waits until there is another connection than before.
    pub async fn next(&mut self) {
        loop {
            if self.seen.changed().await.is_err() {
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
        let mut connection = Connection { up: true, number: 1, since: start };
        assert!(!connection.see(true, 1, later(1)));
        assert_eq!(connection.since, start);
        assert!(connection.see(true, 2, later(2)), "broken and back between two looks");
        assert!(connection.see(false, 2, later(3)));
        assert!(connection.see(true, 3, later(4)));
        assert_eq!(connection.since, later(4));
    }
}
