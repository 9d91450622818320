//! The outages of nats-server: the times for which a client that tries all the while can write nothing.

use std::time::Duration;

use async_nats::jetstream;
use kairo_core::subjects::SNAPSHOTS_BUCKET;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{Outcome, servers::Servers};

/// The longest that one write is waited for.
const PATIENCE: Duration = Duration::from_millis(250);
/// Between two writes.
const PACE: Duration = Duration::from_millis(10);

/// A client of its own.
pub struct Probe {
    jetstream: jetstream::Context,
}

impl Probe {
    pub async fn connect(servers: &Servers) -> Outcome<Self> {
        let mut jetstream = jetstream::new(servers.client().await?);
        jetstream.set_timeout(PATIENCE);
        Ok(Self { jetstream })
    }

    /// Writes until it is over; the longest time between two writes that were acknowledged.
    pub async fn watch(self, over: CancellationToken) -> Duration {
        let subject = format!("$KV.{SNAPSHOTS_BUCKET}.probe");
        let (mut longest, mut last) = (Duration::ZERO, Instant::now());
        while !over.is_cancelled() {
            let written = async { self.jetstream.publish(subject.clone(), "".into()).await?.await };
            if written.await.is_ok() {
                longest = longest.max(last.elapsed());
                last = Instant::now();
            }
            sleep(PACE).await;
        }
        longest.max(last.elapsed())
    }
}
