//! Buckets of keys and values that are no facts: who is there, who owns what, snapshots.
//!
//! A bucket is a stream, its keys are subjects, so a value is written under the same guard as an event. Values are read
//! from the stream's leader: a server that lags behind would show an older one.

use bytes::Bytes;
use jiff::Timestamp;
use kairo_events::copies::COPY_OF;

use super::{
    Bus, BusError,
    port::{Headers, OutgoingMessage, ReadSource, StoreError, StreamTail, TailStart},
};
use crate::record::RawMessage;

/// A value, and the revision to write the next one with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketEntry {
    pub key: String,
    pub revision: u64,
    pub value: Bytes,
}

/// Tells a write from every other. The revision alone does not: a bucket that was lost and made again counts from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketRevision {
    pub revision: u64,
    /// By the server's clock.
    pub stored: Timestamp,
}

/// The headers that mark an entry as deleted by a client or expired at the server, and the value of a deletion.
pub const OPERATION: &str = "KV-Operation";
pub(super) const DELETED: &str = "DEL";
const EXPIRED: &str = "Nats-Marker-Reason";
const READING: &str = "reading a bucket";

impl Bus {
    /// Writes a value, whatever there was; the new revision.
    pub async fn put_value(&self, bucket: &'static str, key: &str, value: Bytes) -> Result<u64, BusError> {
        self.store_value(value_message(bucket, key, value), 0).await
    }

    /// Writes a value only if `expected` is still the revision of the key, 0 for none; the new revision.
    ///
    /// # Errors
    /// [`BusError::Conflict`] if it is not.
    pub async fn update_value(
        &self,
        bucket: &'static str,
        key: &str,
        value: Bytes,
        expected: u64,
    ) -> Result<u64, BusError> {
        self.store_value(value_message(bucket, key, value).with_guard(expected), expected).await
    }

    /// Deletes a value only if `expected` is still the revision of the key.
    ///
    /// # Errors
    /// [`BusError::Conflict`] if it is not.
    pub async fn delete_value(&self, bucket: &'static str, key: &str, expected: u64) -> Result<(), BusError> {
        self.store_value(deletion_message(bucket, key).with_guard(expected), expected).await.map(drop)
    }

    /// Deletes a value, whatever there was; the mark of that stays.
    pub async fn mark_deleted(&self, bucket: &'static str, key: &str) -> Result<(), BusError> {
        self.store_value(deletion_message(bucket, key), 0).await.map(drop)
    }

    /// The value of a key as the leader has it.
    pub async fn read_value(&self, bucket: &'static str, key: &str) -> Result<Option<BucketEntry>, BusError> {
        Ok(self.read_value_with_revision(bucket, key).await?.1)
    }

    /// Reads the value of a key, with the revision to write the next one with; a deleted value has one, too.
    pub async fn read_value_with_revision(
        &self,
        bucket: &'static str,
        key: &str,
    ) -> Result<(u64, Option<BucketEntry>), BusError> {
        let last =
            self.port.last_message(&bucket_stream(bucket), &bucket_subject(bucket, key), ReadSource::Leader).await;
        let last = last.map_err(BusError::unavailable(READING))?;
        let revision = last.as_ref().map_or(0, |last| last.sequence);
        let entry = last.filter(is_value).map(|raw| BucketEntry { key: key.to_owned(), revision, value: raw.payload });
        Ok((revision, entry))
    }

    /// Every key that `filter` names (wildcards allowed), in one round trip; at most 1024. Any server may answer.
    pub async fn read_values(&self, bucket: &'static str, filter: &str) -> Result<Vec<BucketEntry>, BusError> {
        let prefix = bucket_subject(bucket, "");
        let last = self.port.last_of_each(&bucket_stream(bucket), &[bucket_subject(bucket, filter)]).await;
        let entries = last.map_err(BusError::unavailable(READING))?.into_iter().filter(is_value);
        Ok(entries
            .filter_map(|raw| {
                let key = raw.subject.strip_prefix(&prefix)?.to_owned();
                Some(BucketEntry { key, revision: raw.sequence, value: raw.payload })
            })
            .collect())
    }

    /// Every entry of a key that is still there, the oldest first, whoever wrote it: at most [`PAGE`](super::read::PAGE).
    pub async fn read_revisions(&self, bucket: &'static str, key: &str) -> Result<Vec<RawMessage>, BusError> {
        Ok(self.read_page_in(&bucket_stream(bucket), &bucket_subject(bucket, key), 0).await?.messages)
    }

    /// Removes one entry for good, and has its bytes written over. The entry before it counts then.
    pub async fn erase_revision(&self, bucket: &'static str, revision: u64) -> Result<(), BusError> {
        let erased = self.port.erase_message(&bucket_stream(bucket), revision).await;
        erased.map(drop).map_err(BusError::unavailable("removing an entry of a bucket"))
    }

    /// Reads every entry that is there and then what is written, in order, whoever wrote it.
    pub async fn tail_bucket(&self, bucket: &'static str) -> Result<Box<dyn StreamTail>, BusError> {
        let tail =
            self.port.tail_stream(&bucket_stream(bucket), &[bucket_subject(bucket, ">")], TailStart::After(0)).await;
        tail.map_err(BusError::unavailable(READING))
    }

    /// Returns the newest entry that `filter` names (wildcards allowed), as the leader has it.
    pub async fn newest_revision(
        &self,
        bucket: &'static str,
        filter: &str,
    ) -> Result<Option<BucketRevision>, BusError> {
        let last =
            self.port.last_message(&bucket_stream(bucket), &bucket_subject(bucket, filter), ReadSource::Leader).await;
        let last = last.map_err(BusError::unavailable(READING))?;
        Ok(last.map(|last| BucketRevision { revision: last.sequence, stored: last.stored }))
    }

    async fn store_value(&self, message: OutgoingMessage, expected: u64) -> Result<u64, BusError> {
        match self.store_message(message).await {
            Ok(written) => Ok(written.sequence),
            Err(StoreError::WrongLastSequence) => Err(BusError::Conflict { expected }),
            Err(error) => Err(BusError::unavailable("writing to a bucket")(error)),
        }
    }
}

fn value_message(bucket: &str, key: &str, value: Bytes) -> OutgoingMessage {
    OutgoingMessage::new(bucket_subject(bucket, key), Headers::new(), value)
}

fn deletion_message(bucket: &str, key: &str) -> OutgoingMessage {
    let mut headers = Headers::new();
    headers.insert(OPERATION, DELETED);
    OutgoingMessage::new(bucket_subject(bucket, key), headers, Bytes::new())
}

fn is_value(raw: &RawMessage) -> bool {
    [OPERATION, EXPIRED, COPY_OF].into_iter().all(|header| raw.header(header).is_none())
}

fn bucket_stream(bucket: &str) -> String {
    format!("KV_{bucket}")
}

/// The subject of a key.
pub fn bucket_subject(bucket: &str, key: &str) -> String {
    format!("$KV.{bucket}.{key}")
}
