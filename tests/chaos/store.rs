//! Faults of what nats-server keeps: buckets that are emptied, messages that come once more.

use async_nats::HeaderMap;
use kairo_core::{
    bus::Bus,
    record::Raw,
    subjects::{CLAIMS_BUCKET, EVENTS_STREAM, SNAPSHOTS_BUCKET},
};

use super::{Outcome, plan::Blow, random::Random};

/// Marks what was published once more, so that it is not counted.
const MARK: &str = "chaos-published-again";
/// How far back in the log messages are chosen.
const REACH: u64 = 400;

/// Whether a message is one of ours.
pub fn published_again(message: &Raw) -> bool {
    message.header(MARK).is_some()
}

pub struct Store {
    bus: Bus,
}

impl Store {
    pub fn new(bus: Bus) -> Self {
        Self { bus }
    }

    /// What was done, to be counted and to be noted.
    pub async fn strike(&self, blow: Blow) -> Outcome<(&'static str, String)> {
        match blow {
            Blow::WipeClaims => self.wipe(CLAIMS_BUCKET).await,
            Blow::WipeSnapshots => self.wipe(SNAPSHOTS_BUCKET).await,
            Blow::PublishAgain { messages, choice } => self.publish_again(messages, choice).await,
            Blow::Rebuild => Err("that is done to the read model".into()),
            Blow::Kill { .. } | Blow::Freeze { .. } | Blow::Restart => Err("that is done to processes".into()),
        }
    }

    async fn wipe(&self, bucket: &str) -> Outcome<(&'static str, String)> {
        self.bus.jetstream.get_stream(format!("KV_{bucket}")).await?.purge().await?;
        Ok(("bucket wiped", format!("{bucket} wiped")))
    }

    async fn publish_again(&self, messages: u64, choice: u64) -> Outcome<(&'static str, String)> {
        let stream = self.bus.jetstream.get_stream(EVENTS_STREAM).await?;
        let end = stream.cached_info().state.last_sequence;
        let mut random = Random::new(choice, "again");
        let mut published = Vec::new();
        for _ in 0..messages {
            let after = end.saturating_sub(1 + random.below(REACH.min(end)));
            let page = self.bus.read("kairo.>", after).await?;
            let Some(message) = page.messages.first().filter(|message| !in_force(message)) else { continue };
            let sent = self.bus.jetstream.publish_with_headers(
                message.subject.clone(),
                marked(message),
                message.payload.clone(),
            );
            let written = sent.await?.await?;
            published.push(format!("{} as {}", message.sequence, written.sequence));
        }
        Ok(("message published again", format!("published again: {}", published.join(", "))))
    }
}

/// Of what the newest message puts in force, an old one published again would be a new one; and ours are not history.
fn in_force(message: &Raw) -> bool {
    message.subject.starts_with("kairo.system.") || message.subject.ends_with(".defined") || published_again(message)
}

/// The headers a message was published with, and the mark. The server adds its own when a message is read.
fn marked(message: &Raw) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, values) in message.headers.iter().filter(|(name, _)| !AsRef::<str>::as_ref(*name).starts_with("Nats-")) {
        values.iter().for_each(|value| headers.append(name.clone(), value.clone()));
    }
    headers.insert(MARK, "true");
    headers
}
