//! A message of the log as it is handed out whole: for whoever reads an agent's log elsewhere, or keeps it in a file with
//! one of these a line.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::record::{Record, Stored, Unreadable};

/// Largest body that is read, in bytes: what the server takes by default.
const MAX_BODY: usize = 1024 * 1024;

/// A message as it stands in the log, without what told the server how to store it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogMessage {
    pub sequence: u64,
    /// Without its partition.
    pub subject: String,
    /// When the server stored it.
    pub stored: Timestamp,
    pub headers: BTreeMap<String, String>,
    /// The body's bytes in base64.
    pub data: String,
}

/// What stands in a log that is no message.
#[derive(Debug, thiserror::Error)]
#[error("data: expected base64, {0}")]
pub struct NotBase64(#[from] base64::DecodeError);

impl LogMessage {
    /// `headers` in any order; of several of one name the last counts.
    pub fn new(stored: Stored<'_>, headers: impl Iterator<Item = (String, String)>) -> Self {
        Self {
            sequence: stored.sequence,
            subject: stored.subject.to_owned(),
            stored: stored.at,
            headers: headers.filter(|(name, _)| !name.starts_with("Nats-")).collect(),
            data: STANDARD.encode(stored.payload),
        }
    }

    /// What it says.
    ///
    /// # Errors
    /// The outer one where it is no message at all, the inner one where it is one that cannot be read.
    pub fn read(&self) -> Result<Result<Record, Unreadable>, NotBase64> {
        let payload = STANDARD.decode(&self.data)?;
        let stored = Stored { sequence: self.sequence, subject: &self.subject, payload: &payload, at: self.stored };
        Ok(Record::read(stored, |name| self.headers.get(name).map(String::as_str), MAX_BODY))
    }
}
