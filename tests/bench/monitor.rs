//! The counters of nats-server: messages over each connection, and the contents of its streams.

use std::collections::BTreeMap;

use async_nats::jetstream::Context;
use futures::TryStreamExt;
use serde::Deserialize;

use crate::Outcome;

/// Messages that the server received from a connection and sent to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Traffic {
    pub received: u64,
    pub sent: u64,
}

#[derive(Deserialize)]
struct Connections {
    connections: Vec<Connection>,
}

#[derive(Deserialize)]
struct Connection {
    #[serde(default)]
    name: String,
    in_msgs: u64,
    out_msgs: u64,
}

/// Connections that are asked for at once: more than a run has, closed ones included.
const CONNECTIONS: u32 = 4_096;

/// Traffic by the name of the connection's client, that of closed connections included: a replica that was killed has
/// cost what it has cost. `url` is that of the monitoring pages.
pub async fn traffic(http: &reqwest::Client, url: &str) -> Outcome<BTreeMap<String, Traffic>> {
    let page = http.get(format!("{url}/connz?state=all&limit={CONNECTIONS}")).send().await?;
    let page: Connections = page.error_for_status()?.json().await?;
    let mut traffic: BTreeMap<String, Traffic> = BTreeMap::new();
    for connection in page.connections {
        let counted = traffic.entry(connection.name).or_default();
        counted.received += connection.in_msgs;
        counted.sent += connection.out_msgs;
    }
    Ok(traffic)
}

/// The number of messages that a stream has taken in, and the bytes it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Stored {
    /// The last sequence: messages ever written.
    pub messages: u64,
    /// Bytes it holds now, headers and the server's own record included.
    pub bytes: u64,
}

impl Stored {
    pub fn since(self, before: Self) -> Self {
        let messages = self.messages.saturating_sub(before.messages);
        Self { messages, bytes: self.bytes.saturating_sub(before.bytes) }
    }

    pub fn plus(self, more: Self) -> Self {
        Self { messages: self.messages + more.messages, bytes: self.bytes + more.bytes }
    }
}

pub async fn stored(jetstream: &Context, stream: &str) -> Outcome<Stored> {
    let state = jetstream.get_stream_no_info(stream).await?.get_info().await?.state;
    Ok(Stored { messages: state.last_sequence, bytes: state.bytes })
}

/// Writes to each bucket until now, whichever there are.
pub async fn buckets(jetstream: &Context) -> Outcome<BTreeMap<String, u64>> {
    let mut names = jetstream.stream_names();
    let mut buckets = BTreeMap::new();
    while let Some(name) = names.try_next().await? {
        if let Some(bucket) = name.strip_prefix("KV_") {
            // One that has just vanished has no writes.
            let written = stored(jetstream, &name).await.unwrap_or_default().messages;
            buckets.insert(bucket.to_owned(), written);
        }
    }
    Ok(buckets)
}
