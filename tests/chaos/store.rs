//! Faults of what nats-server keeps: buckets that are emptied, messages that come once more.

use std::time::Duration;

use async_nats::{
    HeaderMap,
    jetstream::{
        ErrorCode,
        context::{GetStreamError, GetStreamErrorKind},
        stream,
    },
};
use kairo_core::{bus::Bus, record::RawMessage, subjects::EVENTS_STREAM};

use tokio::time::sleep;

use super::{Outcome, plan::Blow, random::Random};

/// Buckets that say who owns what, and those that save reading the log: whichever of them there are.
const OWNERSHIP: [&str; 3] = ["KAIRO_MEMBERS", "KAIRO_OWNERS", "KAIRO_CLAIMS"];
const SNAPSHOTS: [&str; 1] = ["KAIRO_SNAPSHOTS"];
/// Marks what was published once more, so that it is not counted.
const MARK: &str = "chaos-published-again";
/// The number of messages at the end of the log that one is chosen from.
const REACH: u64 = 400;
/// Before something is tried again that the server did not do.
const AGAIN: Duration = Duration::from_millis(500);

/// Returns true if the chaos test published the message again.
pub fn published_again(message: &RawMessage) -> bool {
    message.header(MARK).is_some()
}

pub struct Store {
    bus: Bus,
}

impl Store {
    pub fn new(bus: Bus) -> Self {
        Self { bus }
    }

    /// Strikes the store; returns the name to count the blow under and the note for the journal.
    pub async fn strike(&self, blow: Blow) -> Outcome<(&'static str, String)> {
        match blow {
            Blow::WipeOwnership => self.wipe(&OWNERSHIP).await,
            Blow::WipeSnapshots => self.wipe(&SNAPSHOTS).await,
            Blow::PublishAgain { messages, choice } => self.publish_again(messages, choice).await,
            Blow::Rebuild => Err("that is done to the read model".into()),
            Blow::Promote => Err("that is done to the fleet".into()),
            Blow::FillLog { lasts } => self.fill_log(lasts).await,
            _ => Err("that is done to processes".into()),
        }
    }

    async fn wipe(&self, buckets: &[&str]) -> Outcome<(&'static str, String)> {
        let mut wiped = Vec::new();
        for bucket in buckets {
            match self.bus.nats()?.jetstream.get_stream(format!("KV_{bucket}")).await {
                Ok(stream) => {
                    stream.purge().await?;
                    wiped.push(*bucket);
                }
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        match wiped.is_empty() {
            true => Err(format!("none of {buckets:?} is there").into()),
            false => Ok(("bucket wiped", format!("{} wiped", wiped.join(", ")))),
        }
    }

    /// Has the log take no more than it holds, for so long.
    async fn fill_log(&self, lasts: Duration) -> Outcome<(&'static str, String)> {
        let jetstream = &self.bus.nats()?.jetstream;
        let stream = jetstream.get_stream(EVENTS_STREAM).await?;
        let info = stream.cached_info();
        let (before, held) = (info.config.clone(), info.state.bytes);
        let max_bytes = i64::try_from(held)?;
        jetstream.update_stream(&stream::Config { max_bytes, ..before.clone() }).await?;
        sleep(lasts).await;
        // However long it takes: a log that stays full is no trial.
        while let Err(error) = jetstream.update_stream(&before).await {
            eprintln!("chaos: the log's limit cannot be raised yet: {error}");
            sleep(AGAIN).await;
        }
        Ok(("log full", format!("the log held no more than {held} bytes for {lasts:?}")))
    }

    async fn publish_again(&self, messages: u64, choice: u64) -> Outcome<(&'static str, String)> {
        let stream = self.bus.nats()?.jetstream.get_stream(EVENTS_STREAM).await?;
        let end = stream.cached_info().state.last_sequence;
        let mut random = Random::new(choice, "again");
        let mut published = Vec::new();
        for _ in 0..messages {
            let after = end.saturating_sub(1 + random.below(REACH.min(end)));
            let page = self.bus.read_page("kairo.>", after).await?;
            let Some(message) = page.messages.first().filter(|message| !in_force(message)) else { continue };
            let sent = self.bus.nats()?.jetstream.publish_with_headers(
                self.bus.stored_subject(&message.subject),
                marked(message),
                message.payload.clone(),
            );
            let written = sent.await?.await?;
            published.push(format!("{} as {}", message.sequence, written.sequence));
        }
        Ok(("message published again", format!("published again: {}", published.join(", "))))
    }
}

fn is_missing(error: &GetStreamError) -> bool {
    matches!(error.kind(), GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

/// Of what the newest message puts in force, an old one published again would be a new one; and ours are not history.
fn in_force(message: &RawMessage) -> bool {
    message.subject.starts_with("kairo.system.") || message.subject.ends_with(".defined") || published_again(message)
}

/// The headers a message was published with, and the mark. The server adds its own when a message is read.
fn marked(message: &RawMessage) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, values) in message.headers.iter().filter(|(name, _)| !AsRef::<str>::as_ref(*name).starts_with("Nats-")) {
        values.iter().for_each(|value| headers.append(name.clone(), value.clone()));
    }
    headers.insert(MARK, "true");
    headers
}
