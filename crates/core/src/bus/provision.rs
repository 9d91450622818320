//! The log, the streams beside it and the durable consumers: who makes them, and what services do with them.
//!
//! `kairo provision` makes what is missing ([`JetStream::provision`](super::jetstream::JetStream::provision)), and keeps
//! what is there as the operator made it. Services make nothing, and NATS would not let them; they look which log it is
//! ([`Bus::find_log`]). The one exception are buckets in memory, which a server that was restarted has forgotten
//! ([`Bus::restore_buckets`]).

pub mod topology;

use std::fmt;

use uuid::Uuid;

use super::{
    Bus, BusError, LogIdentity,
    port::{StoreError, StreamState},
};
use crate::{
    partition::Partitions,
    subjects::{Consumer, EVENTS_STREAM},
    vocabulary::FIRST,
};

/// The id and the number of partitions of the log, in the metadata of its stream.
pub const LOG_ID: &str = "kairo-log";
const PARTITIONS: &str = "kairo-partitions";
/// The epoch the log began in; the first if it is missing.
const EPOCH: &str = "kairo-epoch";
/// The sequence up to which every message that must survive a trim was carried forward ([`kairo_events::carry_forward`]).
pub const TRIMMED: &str = "kairo-trimmed";
/// The original limits of the log, present as long as it has a limit that trims it.
pub const TRIMMING: &str = "kairo-trimming";
/// The id of the log being restored, on all streams until all of them are filled.
pub const RESTORING: &str = "kairo-restoring";
/// The id this log had before it was restored, and the sequence up to which: `<id>@<sequence>`.
pub const LOG_BEFORE: &str = "kairo-log-before";

/// A stream, or a durable consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JetStreamResource {
    Stream(String),
    Consumer(Consumer),
}

/// The change made to a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProvisionChange {
    Made,
    /// It now takes, or is delivered, further subjects.
    Widened,
    /// The differences were corrected, as requested.
    Mended,
}

/// A difference between a part and its wanted configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigDrift {
    pub part: JetStreamResource,
    pub problem: String,
}

impl fmt::Display for JetStreamResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JetStreamResource::Stream(name) => write!(f, "stream {name}"),
            JetStreamResource::Consumer(consumer) => write!(f, "consumer {} of {}", consumer.name(), consumer.stream()),
        }
    }
}

impl fmt::Display for ConfigDrift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.part, self.problem)
    }
}

impl Bus {
    /// Makes whatever is missing, as [`JetStream::provision`](super::jetstream::JetStream::provision) does, and looks
    /// which log it is.
    ///
    /// # Errors
    /// [`BusError::Refused`] where the log that is there is none of this version's.
    pub async fn provision(&self) -> Result<Vec<(JetStreamResource, ProvisionChange)>, BusError> {
        let done = self.nats()?.provision().await?;
        self.find_log().await?;
        Ok(done)
    }

    /// Looks which log it is that `kairo provision` made.
    ///
    /// # Errors
    /// [`BusError::Unavailable`] while there is none; [`BusError::Refused`] where it is none of this version's, or another
    /// one than it was before.
    pub async fn find_log(&self) -> Result<(), BusError> {
        let state = self.port.stream_state(EVENTS_STREAM).await.map_err(|error| match error {
            StoreError::NoStream => StoreError::Unprovisioned(format!("there is no stream {EVENTS_STREAM}")),
            error => error,
        });
        let StreamState { metadata, .. } = state.map_err(BusError::unavailable("looking at the log"))?;
        let found = parse_log_identity(|key| metadata.get(key))?;
        if metadata.contains_key(TRIMMING) {
            tracing::warn!(
                "the log has a limit that trims it, and loses its oldest message with each new one: if no `kairo trim` is at work, one was \
                 killed; run it again, or `kairo provision`"
            );
        }
        let known = self.log.get_or_init(|| found.clone());
        if *known != found {
            return Err(BusError::Refused(format!(
                "the log is another one than when this replica started ({} instead of {}): start the service again",
                found.id, known.id
            )));
        }
        Ok(())
    }

    /// Makes buckets in memory again that the server has forgotten; those that are there stay as they are.
    pub async fn restore_buckets(&self, buckets: &[&'static str]) -> Result<(), BusError> {
        self.find_log().await?;
        for bucket in buckets {
            let restored = self.port.restore_bucket(bucket).await;
            restored.map_err(BusError::unavailable("making a bucket again"))?;
        }
        Ok(())
    }
}

/// Reads the identity of the log from the metadata of its stream.
///
/// # Errors
/// [`BusError::Refused`] if the log is not of this version, or only partly restored.
pub(super) fn parse_log_identity<'m>(said: impl Fn(&str) -> Option<&'m String>) -> Result<LogIdentity, BusError> {
    if let Some(log) = said(RESTORING) {
        return Err(BusError::Refused(format!(
            "the log is being restored, or a restore was interrupted, and only a part of {log} may be there: run \
             `kairo restore` with the same folder to its end"
        )));
    }
    let id = said(LOG_ID).and_then(|id| Uuid::parse_str(id).ok());
    let partitions = said(PARTITIONS).and_then(|count| Partitions::new(count.parse().ok()?));
    let epoch = said(EPOCH).and_then(|epoch| epoch.parse().ok()).unwrap_or(FIRST);
    match (id, partitions) {
        (Some(id), Some(partitions)) => Ok(LogIdentity { id, partitions, epoch }),
        _ => Err(BusError::Refused(format!(
            "the stream {EVENTS_STREAM} was made by a version whose subjects had four tokens and no partition, or not by \
             Kairo: its metadata lacks {LOG_ID} or {PARTITIONS}. Keep that log with the version that wrote it and give \
             this one a nats-server (or an account) of its own; `kairo dev --fresh` begins a new log here"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn a_log_says_which_it_is_and_one_of_four_tokens_is_refused() {
        let id = Uuid::from_u128(7);
        let metadata = |partitions: &str| {
            HashMap::from([(LOG_ID.to_owned(), id.to_string()), (PARTITIONS.to_owned(), partitions.to_owned())])
        };
        let good = metadata("16");
        let identified = parse_log_identity(|key| good.get(key)).unwrap();
        assert_eq!((identified.id, identified.partitions.count(), identified.epoch), (id, 16, FIRST));
        for strange in [HashMap::new(), metadata("0"), metadata("many")] {
            let refused = parse_log_identity(|key| strange.get(key)).unwrap_err().to_string();
            assert!(refused.contains("four tokens") && refused.contains("--fresh"), "{refused}");
        }
    }

    #[test]
    fn a_log_that_was_not_restored_to_its_end_is_refused() {
        let metadata = HashMap::from([
            (LOG_ID.to_owned(), Uuid::from_u128(7).to_string()),
            (PARTITIONS.to_owned(), "16".to_owned()),
            (RESTORING.to_owned(), Uuid::from_u128(8).to_string()),
        ]);
        let refused = parse_log_identity(|key| metadata.get(key)).unwrap_err().to_string();
        assert!(refused.contains("kairo restore"), "{refused}");
    }
}
