//! A record of the log: an envelope and a body at a sequence. Pure; messages as the bus brings them are in
//! `kairo-core`.

use jiff::Timestamp;
use kairo_proto::{Body, Unreadable as UnreadableBody};
use serde::{Deserialize, Serialize};

use crate::{
    carry_forward::CARRIED,
    copies::COPY_OF,
    envelope::{BadHeader, Envelope},
    partition::Partitions,
    subjects, synthetic,
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

/// The place in the log of a decided event: later places know what was decided at earlier ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DecisionPosition {
    /// The sequence of the decision.
    pub sequence: u64,
    /// The event within the decision, counted from 0.
    pub position: usize,
}

/// A message as it lies in the log, not yet read, but for its headers.
#[derive(Clone, Copy, Debug)]
pub struct StoredMessageRef<'m> {
    pub sequence: u64,
    /// Without the partition that it is stored under.
    pub subject: &'m str,
    pub payload: &'m [u8],
    /// When the server stored it.
    pub at: Timestamp,
}

/// The reason a message is not a record. The text goes into dead letters.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum UnreadableRecord {
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
    /// Nothing is wrong with it, and it is for nobody: see [`crate::carry_forward`].
    #[error("it was carried forward from message {from}, and says nothing new")]
    Carried { from: String },
    /// See [`crate::copies`].
    #[error(
        "nobody published it on this subject: the server copied it here from the stream {from}, as an answer to whoever reads there"
    )]
    Copy { from: String },
}

impl Record {
    /// Reads a message whole; `header` gives the value of a header. `max_body` is in bytes.
    pub fn read<'h>(
        stored: StoredMessageRef<'_>,
        header: impl Fn(&'static str) -> Option<&'h str>,
        max_body: usize,
    ) -> Result<Self, UnreadableRecord> {
        let StoredMessageRef { sequence, subject, payload, at } = stored;
        if let Some(from) = header(CARRIED) {
            return Err(UnreadableRecord::Carried { from: from.to_owned() });
        }
        if let Some(from) = header(COPY_OF) {
            return Err(UnreadableRecord::Copy { from: from.to_owned() });
        }
        if payload.len() > max_body {
            return Err(UnreadableRecord::TooLarge { size: payload.len(), limit: max_body });
        }
        let mut envelope = Envelope::from_headers(header)?;
        let (route, _) = subjects::find_route(subject).ok_or(UnreadableRecord::UnknownSubject)?;
        envelope.type_name = synthetic::type_to_read(envelope.type_name);
        if !route.is_entered() {
            // Only the gateway knows whom it let in.
            envelope.entered_by = None;
        }
        let body = Body::decode(&envelope.type_name, envelope.content, payload)?;
        if !route.types.contains(&envelope.type_name.as_str()) {
            let expected = route.types.join(" or ");
            return Err(UnreadableRecord::WrongType { found: envelope.type_name, expected });
        }
        if matches!(body, Body::TaskDue(_)) {
            // Its headers were written when the timer was set. When the task became due is when the log took it in; that
            // is the same for all who read it, and what tells whether it was late.
            envelope.time = at;
        }
        Ok(Self { sequence, subject: subject.to_owned(), envelope, body })
    }
}

/// Returns the error for a message of this subject that is stored under the wrong partition: its publisher wrote
/// another partition than its owner's, or none. Other faults of the subject are for others to report.
pub fn check_partition(subject: &str, found: Option<u32>, partitions: Partitions) -> Option<UnreadableRecord> {
    let mut tokens = subject.strip_prefix("kairo.")?.split('.').skip(1);
    let (Some(owner), Some(_), None) = (tokens.next(), tokens.next(), tokens.next()) else { return None };
    let expected = partitions.of(owner);
    (found != Some(expected)).then_some(UnreadableRecord::WrongPartition { expected, found })
}
