//! Connections made anew, as the client counts them.
//!
//! A reader in the memory of a server is lost when that server is restarted. Heartbeats show it, but each costs a message, for each
//! of dozens of readers. Where there is only one server, a restart breaks the connection, which nobody has to ask about: then each
//! reader is checked once. Of several servers the one that has a reader may be another than the one that is spoken to.

use std::{sync::atomic::Ordering, time::Duration};

use tokio::{sync::watch, time::sleep};

/// The time between two looks at the client's count. Nothing is sent for it.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The connections made from now on.
#[derive(Clone, Debug)]
pub(super) struct Reconnects(watch::Receiver<u64>);

impl Reconnects {
    /// Watches for as long as one of the clones is there.
    pub fn watch(client: async_nats::Client) -> Self {
        let count = move || client.statistics().connects.load(Ordering::Relaxed);
        let (made, seen) = watch::channel(count());
        tokio::spawn(async move {
            while !made.is_closed() {
                sleep(LOOK_EVERY).await;
                let now = count();
                made.send_if_modified(|before| std::mem::replace(before, now) != now);
            }
        });
        Self(seen)
    }

    /// Waits for the next connection. Nothing is lost if it is dropped.
    pub async fn wait_for_next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn each_connection_is_seen_once() {
        let (made, seen) = watch::channel(1);
        let mut reconnects = Reconnects(seen);
        assert_eq!(reconnects.wait_for_next().now_or_never(), None);
        made.send_replace(2);
        assert_eq!(reconnects.wait_for_next().now_or_never(), Some(()));
        assert_eq!(reconnects.wait_for_next().now_or_never(), None);
        drop(made);
        assert_eq!(reconnects.wait_for_next().now_or_never(), None, "nobody looks any more");
    }
}
