//! Messages as the bus brings them, and the records that are read from them.

use std::borrow::Cow;

use async_nats::{
    HeaderMap, HeaderName, HeaderValue,
    header::NATS_STREAM,
    jetstream::{Message, message::Info},
};
use bytes::Bytes;
use jiff::Timestamp;
use kairo_events::{carry_forward, copies::COPY_OF, hash_chain::ContentDigest, log_message, record};
use kairo_proto::{ContentType, time, v1};
use uuid::Uuid;

pub use kairo_events::record::{DecisionPosition, Record, StoredMessageRef, UnreadableRecord};
use kairo_events::vocabulary::{self, NotUnderstood};

use crate::{
    envelope, header_lines,
    partition::{self, Partitions},
};

/// A message as it lies in the stream, not yet read.
#[derive(Clone, Debug)]
pub struct RawMessage {
    pub sequence: u64,
    /// Without the partition that it is stored under.
    pub subject: String,
    /// The partition it is stored under; none for what is not in the log, or should not be.
    pub partition: Option<u32>,
    pub headers: HeaderMap,
    pub payload: Bytes,
    /// The body as it is stored, where that was sealed and `payload` is what was opened of it.
    pub sealed: Option<Bytes>,
    /// When the server stored it.
    pub stored: Timestamp,
}

impl RawMessage {
    /// A message as a consumer delivers it, and what the server says about the delivery. The headers are taken out of
    /// it, as copying them costs more than all the rest.
    pub fn from_delivery(message: &mut Message) -> Result<(Self, Info<'_>), async_nats::Error> {
        let headers = message.message.headers.take().unwrap_or_default();
        let info = message.info()?;
        let (subject, partition) = partition::split_subject(&message.subject);
        let raw = Self {
            sequence: info.stream_sequence,
            subject: subject.to_owned(),
            partition,
            headers: mark_copy(headers, 0),
            payload: message.payload.clone(),
            sealed: None,
            stored: server_time(info.published.unix_timestamp_nanos()),
        };
        Ok((raw, info))
    }

    /// Returns the reason the message is in the wrong partition, from [`record::check_partition`].
    pub fn misplacement(&self, partitions: Partitions) -> Option<UnreadableRecord> {
        record::check_partition(&self.subject, self.partition, partitions)
    }

    /// The header of this name, as text.
    pub fn header(&self, name: &'static str) -> Option<&str> {
        // Of a name that is there for good none is made.
        self.headers.get(HeaderName::from_static(name)).map(|value| value.as_str())
    }

    /// Its id and its correlation id, without reading the rest.
    pub fn ids(&self) -> Option<(Uuid, Uuid)> {
        envelope::read_ids(|name| self.header(name))
    }

    /// The headers as text, as [`crate::header_lines`] writes them.
    pub fn header_lines(&self) -> String {
        header_lines::header_lines(&self.headers)
    }

    /// Returns true if users' content in the message is still sealed.
    pub fn is_sealed(&self) -> bool {
        self.header(envelope::CONTENT_TYPE) == Some(ContentType::SEALED)
    }

    /// Returns the message as it is stored in the stream, sealed again if it was opened.
    pub fn to_stored(&self) -> Self {
        let Some(sealed) = &self.sealed else { return self.clone() };
        let mut headers = without_header(&self.headers, envelope::FORGOTTEN);
        headers.insert(envelope::CONTENT_TYPE, ContentType::SEALED);
        Self { headers, payload: sealed.clone(), sealed: None, ..self.clone() }
    }

    /// Returns the original sequence of a message that was carried forward ([`carry_forward`]).
    pub fn carried_from(&self) -> Option<u64> {
        self.header(carry_forward::CARRIED)?.parse().ok()
    }

    /// Returns the message without the mark of having been carried forward: in its original form, at its present
    /// sequence.
    pub fn without_carried_mark(self) -> Self {
        if self.carried_from().is_none() {
            return self;
        }
        Self { headers: without_header(&self.headers, carry_forward::CARRIED), ..self }
    }

    /// Returns the message in the form in which it is handed out.
    pub fn to_log_message(&self) -> v1::LogMessage {
        let Self { sequence, subject, payload, stored, headers, .. } = self;
        let stored = StoredMessageRef { sequence: *sequence, subject, payload, at: *stored };
        let values = headers.iter().filter_map(|(name, values)| Some((name.to_string(), values.first()?.to_string())));
        log_message::to_log_message(stored, values)
    }

    /// Returns the content that is digested in an agent's hash chain.
    pub fn hash_chain_content(&self) -> ContentDigest {
        // What was opened is summed up as it is stored.
        let Self { subject, headers, payload, stored, .. } = &*match self.sealed {
            Some(_) => Cow::Owned(self.to_stored()),
            None => Cow::Borrowed(self),
        };
        ContentDigest::of_message(subject, first_values(headers), payload, *stored)
    }

    /// One that was handed out. None where its headers cannot be headers, or it does not say when it was stored.
    pub fn from_log_message(message: &v1::LogMessage) -> Option<Self> {
        let mut headers = HeaderMap::new();
        for (name, value) in &message.headers {
            headers.insert(name.parse::<HeaderName>().ok()?, value.parse::<HeaderValue>().ok()?);
        }
        let subject = message.subject.clone();
        let payload = Bytes::from(message.data.clone());
        let stored = time::read(message.stored.as_ref()?)?;
        Some(Self { sequence: message.sequence, subject, partition: None, headers, payload, sealed: None, stored })
    }

    /// Reads it whole, for whoever acts on it: what takes a newer reader is not passed over. `max_body` is in bytes.
    pub fn read_or_reject_newer(&self, max_body: usize) -> Result<Record, NotUnderstood> {
        let read = self.read(max_body);
        match vocabulary::newer_reader_needed(&self.subject, |name| self.header(name), &read) {
            Some(newer) => Err(newer.into()),
            None => Ok(read?),
        }
    }

    /// Reads it as far as this version knows it. `max_body` is in bytes.
    pub fn read(&self, max_body: usize) -> Result<Record, UnreadableRecord> {
        let Self { sequence, subject, payload, stored, .. } = self;
        let stored = StoredMessageRef { sequence: *sequence, subject, payload, at: *stored };
        Record::read(stored, |name| self.header(name), max_body)
    }
}

/// The headers of a stored message, or only the mark of a copy ([`kairo_events::copies`]). `notes` is how often the server itself notes
/// the stream while it reads: once in an answer to a direct read, never elsewhere.
pub(crate) fn mark_copy(headers: HeaderMap, notes: usize) -> HeaderMap {
    if headers.get_all(NATS_STREAM).count() <= notes {
        return headers;
    }
    let mut marked = HeaderMap::new();
    headers.get(NATS_STREAM).into_iter().for_each(|stream| marked.insert(COPY_OF, stream.clone()));
    marked
}

/// All headers but one.
fn without_header(headers: &HeaderMap, left_out: &str) -> HeaderMap {
    let mut others = HeaderMap::new();
    for (name, values) in headers.iter().filter(|(name, _)| AsRef::<str>::as_ref(*name) != left_out) {
        values.iter().for_each(|value| others.append(name.clone(), value.clone()));
    }
    others
}

/// The headers, each with its first value, which is the one that is read.
pub(crate) fn first_values(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    headers.iter().filter_map(|(name, values)| Some((name.as_ref(), values.first()?.as_str())))
}

/// A server's time, in nanoseconds since the epoch; what does not fit counts as the epoch.
pub(crate) fn server_time(nanoseconds: i128) -> Timestamp {
    Timestamp::from_nanosecond(nanoseconds).unwrap_or(Timestamp::UNIX_EPOCH)
}
