//! What stands in the log: an envelope and a body at a sequence.

use async_nats::{
    HeaderMap,
    jetstream::{Message, message::Info},
};
use bytes::Bytes;
use jiff::Timestamp;
use kairo_proto::{Body, Unreadable as UnreadableBody};
use serde::{Deserialize, Serialize};

use crate::{
    envelope::{BadHeader, Envelope},
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
    pub subject: String,
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
}

impl Raw {
    /// A message as a consumer delivers it, and what the server says about the delivery. The headers are taken out of
    /// it, as copying them costs more than all the rest.
    pub fn delivered(message: &mut Message) -> Result<(Self, Info<'_>), async_nats::Error> {
        let headers = message.message.headers.take().unwrap_or_default();
        let info = message.info()?;
        let raw = Self {
            sequence: info.stream_sequence,
            subject: message.subject.to_string(),
            headers,
            payload: message.payload.clone(),
            stored: server_time(info.published.unix_timestamp_nanos()),
        };
        Ok((raw, info))
    }

    /// The header of this name, as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.as_str())
    }

    /// The headers as text, one a line, in alphabetical order; [`read_headers`] reads them again.
    pub fn header_lines(&self) -> String {
        let mut lines = String::with_capacity(512);
        let mut headers: Vec<(&str, _)> = self.headers.iter().map(|(name, values)| (name.as_ref(), values)).collect();
        headers.sort_unstable_by_key(|(name, _)| *name);
        for (name, values) in headers {
            for value in values {
                lines.extend([name, ": ", value.as_str(), "\n"]);
            }
        }
        lines
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

/// Headers that were written one a line. A line that is no header is passed over.
pub fn read_headers(lines: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines.lines().filter_map(|line| line.split_once(": ")) {
        headers.append(name, value);
    }
    headers
}

/// A server's time, in nanoseconds since the epoch; what does not fit counts as the epoch.
pub(crate) fn server_time(nanoseconds: i128) -> Timestamp {
    Timestamp::from_nanosecond(nanoseconds).unwrap_or(Timestamp::UNIX_EPOCH)
}
