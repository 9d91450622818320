//! One agent's messages, and what it knew behind each of them.

use kairo_events::{
    ids::Name,
    log_message::{self, NotStored},
    subjects,
    vocabulary::{NewerReaderNeeded, NotUnderstood},
};
use kairo_mind::replay::{Replay, ReplayedCall};
use kairo_proto::{Body, v1::LogMessage};
use serde_json::{Value, json};

/// Last sequence that a log can have: others count from there.
const LAST: u64 = i64::MAX as u64;

/// The reason for which a log cannot be followed any further.
#[derive(Debug, thiserror::Error)]
pub enum BrokenLog {
    #[error("message {sequence}: {cause}")]
    Foreign { sequence: u64, cause: NotStored },
    #[error("message {sequence}: it stands behind message {after}: messages are expected in the order of the log")]
    Order { sequence: u64, after: u64 },
    #[error("message {sequence}: no log is that long: expected a sequence of at most {LAST}")]
    Beyond { sequence: u64 },
    #[error("message {sequence}: {why}. It takes a reader of version {reader}: look at this log with a newer build")]
    Newer { sequence: u64, reader: u32, why: String },
    #[error(
        "message {sequence}: the decision does not follow from what stands before it: messages are missing, or were changed"
    )]
    Hole { sequence: u64 },
}

/// Checks that a message can follow this one.
pub(crate) fn check_order(sequence: u64, after: u64) -> Result<(), BrokenLog> {
    match (sequence > after, sequence > LAST) {
        (false, _) => Err(BrokenLog::Order { sequence, after }),
        (_, true) => Err(BrokenLog::Beyond { sequence }),
        (true, false) => Ok(()),
    }
}

/// The result of taking in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppliedMessage {
    /// It is another's, or about none.
    Others,
    /// It is the agent's.
    Own,
    /// It is the agent's, and nobody can read it: it decides nothing.
    Unreadable,
}

/// The requests to models for a decision, or the reason for which it cannot be made again.
pub type Requests = Result<Vec<ReplayedCall>, String>;

/// An agent's part of a log, as far as it was taken in.
#[derive(Debug)]
pub struct Timeline {
    agent: Name,
    log: Replay,
    /// The last message that was taken in, whosever it is, and the last one of the agent.
    read: u64,
    own: u64,
    type_name: String,
    /// The message whose requests are wanted, and those.
    wanted: u64,
    requests: Option<Requests>,
}

impl Timeline {
    /// Follows the log of `agent`. The requests for the decision at `wanted` are made again when that decision is
    /// taken in; 0 for none. Sealed secrets in the log need their key for that.
    pub fn new(agent: Name, wanted: u64, secret_key: Option<[u8; 32]>) -> Self {
        Self { agent, log: Replay::new(secret_key), read: 0, own: 0, type_name: String::new(), wanted, requests: None }
    }

    /// Takes in the next message of the log. Messages of other agents are passed over.
    ///
    /// # Errors
    /// When the message is none of a log, takes a newer reader, or does not follow from what was taken in.
    pub fn apply(&mut self, message: &LogMessage) -> Result<AppliedMessage, BrokenLog> {
        let sequence = message.sequence;
        check_order(sequence, self.read)?;
        self.read = sequence;
        let of = subjects::find_route(&message.subject).filter(|(route, _)| subjects::is_agent_route(route));
        if of.as_ref().is_some_and(|(_, agent)| *agent != self.agent) {
            return Ok(AppliedMessage::Others);
        }
        let understood = log_message::decode_record(message).map_err(|cause| BrokenLog::Foreign { sequence, cause })?;
        if of.is_some() {
            self.own = sequence;
            self.type_name = message.headers.get("ce-type").cloned().unwrap_or_default();
        }
        match understood {
            Ok(record) => {
                if sequence == self.wanted && matches!(record.body, Body::AgentDecision(_)) {
                    self.requests = Some(self.log.model_calls(&record));
                }
                match self.log.apply_record(record) {
                    true => Ok(if of.is_some() { AppliedMessage::Own } else { AppliedMessage::Others }),
                    false => Err(BrokenLog::Hole { sequence }),
                }
            }
            Err(NotUnderstood::Newer(NewerReaderNeeded { reader, why })) => {
                Err(BrokenLog::Newer { sequence, reader, why })
            }
            Err(NotUnderstood::Unreadable(_)) if of.is_none() => Ok(AppliedMessage::Others),
            Err(NotUnderstood::Unreadable(_)) => {
                self.log.pass_over(sequence, &message.subject);
                Ok(AppliedMessage::Unreadable)
            }
        }
    }

    /// The last message that was taken in; 0 for none.
    pub fn last_read(&self) -> u64 {
        self.read
    }

    /// The last message of the agent; 0 for none.
    pub fn last_own(&self) -> u64 {
        self.own
    }

    /// Returns the requests to models for the wanted decision; none if no decision is at that position.
    pub fn requests(&self) -> Option<&Requests> {
        self.requests.as_ref()
    }

    /// Returns the agent's state as its decisions made it, with the positions of pending inputs under `ahead`, on
    /// which no decision was made yet. `at` and `type` are of the agent's last message.
    pub fn state(&self) -> Value {
        let snapshot = self.log.snapshot(&self.agent);
        let mut state = serde_json::to_value(&*snapshot.state).unwrap_or_default();
        if let Some(fields) = state.as_object_mut() {
            fields.insert("at".to_owned(), json!(self.own));
            fields.insert("type".to_owned(), json!(self.type_name));
            fields.insert("ahead".to_owned(), json!(snapshot.ahead));
        }
        state
    }
}
