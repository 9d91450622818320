//! The servers behind a connection, as far as the client knows them without asking.
//!
//! A reader in the memory of a server is lost with that server. The server's heartbeats show it, but each costs a message, for each
//! of dozens of readers. The client learns sooner that something happened: it connects anew, or its server tells it of a
//! server that came or went. Then each reader is checked once.

use std::{sync::atomic::Ordering, time::Duration};

use tokio::{sync::watch, time::sleep};

/// The time between two looks at what the client knows. Nothing is sent for it.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Changes of the connection or of the cluster's servers.
#[derive(Clone, Debug)]
pub(super) struct Servers(watch::Receiver<ClientView>);

/// The client's view of its connection and of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ClientView {
    /// Connections made so far.
    connections: u64,
    /// Addresses of the cluster's servers.
    addresses: Vec<String>,
}

impl ClientView {
    fn of(client: &async_nats::Client) -> Self {
        let mut addresses = client.server_info().connect_urls;
        addresses.sort_unstable();
        Self { connections: client.statistics().connects.load(Ordering::Relaxed), addresses }
    }
}

impl Servers {
    /// Watches for as long as one of the clones is there.
    pub fn watch(client: async_nats::Client) -> Self {
        let (known, changes) = watch::channel(ClientView::of(&client));
        tokio::spawn(async move {
            while !known.is_closed() {
                sleep(LOOK_EVERY).await;
                let now = ClientView::of(&client);
                known.send_if_modified(|before| {
                    let changed = *before != now;
                    *before = now;
                    changed
                });
            }
        });
        Self(changes)
    }

    /// Waits for the next change. Nothing is lost if it is dropped.
    pub async fn wait_for_change(&mut self) {
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
    async fn a_server_that_went_is_one_change() {
        let both = ClientView { connections: 1, addresses: vec!["a:4222".into(), "b:4222".into()] };
        let (known, changes) = watch::channel(both.clone());
        let mut servers = Servers(changes);
        assert_eq!(servers.wait_for_change().now_or_never(), None);
        known.send_replace(ClientView { addresses: vec!["a:4222".into()], ..both });
        assert_eq!(servers.wait_for_change().now_or_never(), Some(()));
        assert_eq!(servers.wait_for_change().now_or_never(), None);
        drop(known);
        assert_eq!(servers.wait_for_change().now_or_never(), None, "nobody looks any more");
    }
}
