//! nats-servers that are a cluster: what they are called, when they have found each other, and which of them leads the log.

use std::{error::Error, time::Duration};

use async_nats::jetstream::{self, context::AccountError};
use kairo_core::subjects::EVENTS_STREAM;
use kairo_local::NatsServer;
use tokio::time::{Instant, sleep};

/// Between two times it is asked.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// The longest that a server may take for an answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// Returns the name of the server at `index`.
pub fn name(index: usize) -> String {
    format!("nats-{index}")
}

/// Waits until those of a cluster have found each other. They do not say when: asking is all there is.
pub async fn found_each_other(cluster: &jetstream::Context, within: Duration) -> Result<(), AccountError> {
    let deadline = Instant::now() + within;
    while let Err(error) = cluster.query_account().await {
        if Instant::now() > deadline {
            return Err(error);
        }
        sleep(ASK_AGAIN).await;
    }
    Ok(())
}

/// Waits until a monitored server says that it has all that the others have, as whoever kills or restarts one after the other must:
/// two of three that lack something at the same time lead nothing.
pub async fn caught_up(server: &NatsServer, within: Duration) -> Result<(), Box<dyn Error + Send + Sync>> {
    let url = format!("{}/healthz", server.monitor_url().ok_or("it is not monitored")?);
    let http = reqwest::Client::builder().no_proxy().timeout(ANSWERS_WITHIN).build()?;
    let deadline = Instant::now() + within;
    while !http.get(&url).send().await.is_ok_and(|answer| answer.status().is_success()) {
        if Instant::now() > deadline {
            return Err("a nats-server does not catch up with the others".into());
        }
        sleep(ASK_AGAIN).await;
    }
    Ok(())
}

/// Returns the index of the server that leads the log, if any of the `servers` does.
pub async fn leader(cluster: &jetstream::Context, servers: usize) -> Option<usize> {
    let stream = cluster.get_stream(EVENTS_STREAM).await.ok()?;
    let leader = stream.cached_info().cluster.as_ref()?.leader.as_ref()?;
    (0..servers).find(|index| name(*index) == *leader)
}
