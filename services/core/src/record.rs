//! What stands in the log: an envelope and a body at a sequence.

use async_nats::{
    HeaderMap, HeaderName,
    jetstream::{Message, message::Info},
};
use bytes::Bytes;
use jiff::Timestamp;
use kairo_proto::{Body, Unreadable as UnreadableBody};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    envelope::{self, BadHeader, Envelope},
    header_lines,
    partition::{self, Partitions},
    subjects,
};

/// An event at its place in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The sequence in the stream; 0 for what is not stored.
    pub sequence: u64,
    pub subject: String,
    pub envelope: Envelope,
    pub body: Body,
}

/// Where in the log something was decided: later places know what was decided at earlier ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// The sequence of the decision.
    pub sequence: u64,
    /// Which of its events, counted from 0.
    pub position: usize,
}

/// A message as it lies in the stream, not yet read.
#[derive(Clone, Debug)]
pub struct Raw {
    pub sequence: u64,
    /// Without the partition that it is stored under.
    pub subject: String,
    /// The partition it is stored under; none for what is not in the log, or should not be.
    pub partition: Option<u32>,
    pub headers: HeaderMap,
    pub payload: Bytes,
    /// When the server stored it.
    pub stored: Timestamp,
}

/// Why a message is not a record. The text goes into dead letters.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum Unreadable {
    #[error(transparent)]
    Header(#[from] BadHeader),
    #[error(transparent)]
    Body(#[from] UnreadableBody),
    #[error("subject is not in the table of subjects")]
    UnknownSubject,
    #[error("type {found:?} does not belong on this subject, expected {expected}")]
    WrongType { found: String, expected: String },
    #[error("body of {size} bytes is larger than the limit of {limit}")]
    TooLarge { size: usize, limit: usize },
    #[error("subject ends in {}, expected the partition of its owner, {expected}", found.map_or("no partition".to_owned(), |found| format!("partition {found}")))]
    WrongPartition { expected: u32, found: Option<u32> },
}

impl Raw {
    /// A message as a consumer delivers it, and what the server says about the delivery. The headers are taken out of
    /// it, as copying them costs more than all the rest.
    pub fn delivered(message: &mut Message) -> Result<(Self, Info<'_>), async_nats::Error> {
        let headers = message.message.headers.take().unwrap_or_default();
        let info = message.info()?;
        let (subject, partition) = partition::split(&message.subject);
        let raw = Self {
            sequence: info.stream_sequence,
            subject: subject.to_owned(),
            partition,
            headers,
            payload: message.payload.clone(),
            stored: server_time(info.published.unix_timestamp_nanos()),
        };
        Ok((raw, info))
    }

    /// Why it is not where it belongs: whoever published it wrote another partition than its owner's, or none. What is
    /// wrong with its subject apart from that is for others to say.
    pub fn misplaced(&self, partitions: Partitions) -> Option<Unreadable> {
        let mut tokens = self.subject.strip_prefix("kairo.")?.split('.').skip(1);
        let (Some(owner), Some(_), None) = (tokens.next(), tokens.next(), tokens.next()) else { return None };
        let expected = partitions.of(owner);
        let found = self.partition;
        (found != Some(expected)).then_some(Unreadable::WrongPartition { expected, found })
    }

    /// The header of this name, as text.
    pub fn header(&self, name: &'static str) -> Option<&str> {
        // Of a name that is there for good none is made.
        self.headers.get(HeaderName::from_static(name)).map(|value| value.as_str())
    }

    /// Its id and its correlation id, without reading the rest.
    pub fn ids(&self) -> Option<(Uuid, Uuid)> {
        envelope::ids(|name| self.header(name))
    }

    /// The headers as text, as [`crate::header_lines`] writes them.
    pub fn header_lines(&self) -> String {
        header_lines::header_lines(&self.headers)
    }

    /// Reads it whole. `max_body` is in bytes.
    pub fn read(&self, max_body: usize) -> Result<Record, Unreadable> {
        if self.payload.len() > max_body {
            return Err(Unreadable::TooLarge { size: self.payload.len(), limit: max_body });
        }
        let mut envelope = Envelope::from_headers(|name| self.header(name))?;
        let (route, _) = subjects::route(&self.subject).ok_or(Unreadable::UnknownSubject)?;
        let body = Body::decode(&envelope.type_name, envelope.content, &self.payload)?;
        if !route.types.contains(&envelope.type_name.as_str()) {
            let expected = route.types.join(" or ");
            return Err(Unreadable::WrongType { found: envelope.type_name, expected });
        }
        if matches!(body, Body::TaskDue(_)) {
            // Its headers were written when the timer was set. When the task became due is when the log took it in; that
            // is the same for all who read it, and what tells whether it was late.
            envelope.time = self.stored;
        }
        Ok(Record { sequence: self.sequence, subject: self.subject.clone(), envelope, body })
    }
}

/// A server's time, in nanoseconds since the epoch; what does not fit counts as the epoch.
pub(crate) fn server_time(nanoseconds: i128) -> Timestamp {
    Timestamp::from_nanosecond(nanoseconds).unwrap_or(Timestamp::UNIX_EPOCH)
}
