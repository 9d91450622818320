//! A message of the log as it is handed out whole: for whoever reads an agent's log elsewhere, or keeps it in a file with
//! one of these a line.

use kairo_proto::{ContentType, time, v1::LogMessage};

use crate::{
    envelope::{CONTENT_TYPE, WHOSE},
    hash_chain::ContentDigest,
    personal::ContentOwners,
    record::{Record, StoredMessageRef},
    vocabulary::{self, NotUnderstood},
};

/// Largest body that is read, in bytes: what the server takes by default.
const MAX_BODY: usize = 1024 * 1024;

/// The error for a message that is none of a log, as it lacks the time at which the server stored it.
#[derive(Debug, thiserror::Error)]
#[error("stored: expected when the server stored the message")]
pub struct NotStored;

/// The message, without what told the server how to store it. `headers` in any order; of several of one name the last
/// counts.
pub fn to_log_message(stored: StoredMessageRef<'_>, headers: impl Iterator<Item = (String, String)>) -> LogMessage {
    LogMessage {
        sequence: stored.sequence,
        subject: stored.subject.to_owned(),
        stored: Some(time::message(stored.at)),
        headers: headers.filter(|(name, _)| !name.starts_with("Nats-")).collect(),
        data: stored.payload.to_vec(),
    }
}

/// Returns true if it was sealed where it is stored and is not here, so that digests of what is stored do not fit it.
pub fn is_opened(message: &LogMessage) -> bool {
    let header = |name: &str| message.headers.get(name).map(String::as_str);
    header(WHOSE).is_some() && header(CONTENT_TYPE) != Some(ContentType::SEALED)
}

/// Returns the owners of the words in it.
pub fn content_owners(message: &LogMessage) -> ContentOwners {
    message.headers.get(WHOSE).map(|whose| ContentOwners::from_header(whose)).unwrap_or_default()
}

/// Reads a message that was handed out.
///
/// # Errors
/// The outer one where it is no message at all, the inner one where it is one that a newer reader understands, or nobody.
pub fn decode_record(message: &LogMessage) -> Result<Result<Record, NotUnderstood>, NotStored> {
    let LogMessage { sequence, subject, stored, headers, data } = message;
    let at = stored.as_ref().and_then(time::read).ok_or(NotStored)?;
    let stored = StoredMessageRef { sequence: *sequence, subject, payload: data, at };
    let header = |name: &'static str| headers.get(name).map(String::as_str);
    let read = Record::read(stored, header, MAX_BODY);
    Ok(match vocabulary::newer_reader_needed(subject, header, &read) {
        Some(newer) => Err(newer.into()),
        None => read.map_err(NotUnderstood::from),
    })
}

/// Returns the content that digests of the agent's hash chain are made of.
///
/// # Errors
/// If it is no message of a log.
pub fn content_digest(message: &LogMessage) -> Result<ContentDigest, NotStored> {
    let LogMessage { subject, stored, headers, data, .. } = message;
    let at = stored.as_ref().and_then(time::read).ok_or(NotStored)?;
    let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    Ok(ContentDigest::of_message(subject, headers, data, at))
}
