//! The log below the level of events: messages as outsiders publish them, and what becomes of those that nobody can
//! read.

use std::path::Path;

use async_nats::{
    HeaderMap,
    jetstream::consumer::{DeliverPolicy, pull::OrderedConfig},
};
use futures::{StreamExt, TryStreamExt};
use kairo_core::{
    envelope::Envelope,
    record::RawMessage,
    subjects::{DLQ_STREAM, EVENTS_STREAM},
};
use kairo_proto::{Body, ContentType, v1::DeadLetter};
use tokio_util::bytes::Bytes;

use super::{DEADLINE, World};

/// Returns true if any file below `folder` contains this text.
fn is_in_files(folder: &Path, text: &str) -> bool {
    let entries = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    entries.into_iter().any(|path| match path.is_dir() {
        true => is_in_files(&path, text),
        false => {
            let bytes = std::fs::read(&path).unwrap_or_default();
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
        }
    })
}

impl World {
    /// Empties a bucket, deletions of keys included.
    pub async fn wipe(&self, bucket: &str) {
        let stream = self.bus.nats().unwrap().jetstream.get_stream(format!("KV_{bucket}")).await.unwrap();
        stream.purge().await.unwrap();
    }

    /// Deletes every key of a bucket once there are any, as one would by hand: a marker stays where each was.
    pub async fn delete_keys(&self, bucket: &str) {
        let store = self.bus.nats().unwrap().jetstream.get_key_value(bucket).await.unwrap();
        let there = async {
            loop {
                let keys: Vec<String> = store.keys().await.unwrap().try_collect().await.unwrap();
                if !keys.is_empty() {
                    return keys;
                }
            }
        };
        for key in tokio::time::timeout(DEADLINE, there).await.expect("the bucket stays empty") {
            store.delete(key).await.unwrap();
        }
    }

    /// Returns true if any file of nats-server contains this text.
    pub fn is_in_nats_files(&self, text: &str) -> bool {
        is_in_files(&self.nats_folder(), text)
    }

    /// The sequence of the last message of the log.
    pub async fn end_of_log(&self) -> u64 {
        let stream = self.bus.nats().unwrap().jetstream.get_stream(EVENTS_STREAM).await.unwrap();
        stream.cached_info().state.last_sequence
    }

    /// Every message of the log, as it lies there.
    pub async fn raw_log(&self) -> Vec<RawMessage> {
        let mut log = Vec::new();
        self.bus.read_all("kairo.>", 0, |raw| log.push(raw)).await.unwrap();
        log
    }

    /// Publishes past all checks and without deduplication, where the bus would, and returns the sequence.
    pub async fn publish(&self, subject: &str, headers: HeaderMap, body: impl Into<Bytes>) -> u64 {
        let published = self.bus.nats().unwrap().jetstream.publish_with_headers(
            self.bus.stored_subject(subject),
            headers,
            body.into(),
        );
        published.await.unwrap().await.unwrap().sequence
    }

    /// Publishes a message once more, to the letter.
    pub async fn publish_again(&self, message: &RawMessage) -> u64 {
        self.publish(&message.subject, own_headers(message), message.payload.clone()).await
    }

    /// The first `count` dead letters, waiting for them.
    pub async fn dead_letters(&self, count: usize) -> Vec<DeadLetter> {
        let read = async {
            let stream = self.bus.nats().unwrap().jetstream.get_stream_no_info(DLQ_STREAM).await.unwrap();
            let config = OrderedConfig { deliver_policy: DeliverPolicy::All, ..Default::default() };
            let messages = stream.create_consumer(config).await.unwrap().messages().await.unwrap();
            let letters = messages.map(|message| {
                let message = message.unwrap();
                let body = Body::decode(DeadLetter::TYPE, ContentType::Protobuf, &message.payload).unwrap();
                DeadLetter::try_from(body).unwrap()
            });
            letters.take(count).collect().await
        };
        tokio::time::timeout(DEADLINE, read).await.expect("the dead letters never came")
    }

    /// Returns the number of dead letters so far.
    pub async fn dead_letters_so_far(&self) -> u64 {
        let mut stream = self.bus.nats().unwrap().jetstream.get_stream(DLQ_STREAM).await.unwrap();
        stream.info().await.unwrap().state.messages
    }
}

/// The headers a message was published with, without those that the server adds when it is read.
pub fn own_headers(message: &RawMessage) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, values) in message.headers.iter().filter(|(name, _)| !AsRef::<str>::as_ref(*name).starts_with("Nats-")) {
        values.iter().for_each(|value| headers.append(name.clone(), value.clone()));
    }
    headers
}

/// An envelope as headers.
pub fn headers(envelope: &Envelope) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in envelope.to_headers() {
        headers.insert(name, value.as_str());
    }
    headers
}
