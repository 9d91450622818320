//! Messages trimmed from the log, read from an archive, for projections of the whole history.

use std::{fmt::Debug, ops::ControlFlow, sync::Arc};

use tokio::sync::mpsc;
use uuid::Uuid;

use super::{Bus, BusError, port::Cause, read::LogStart};
use crate::record::RawMessage;

/// Messages that are no longer in the log.
pub trait ArchiveReader: Debug + Send + Sync {
    /// Reads the messages of one of these logs on these subjects, or on all if none is named, with a sequence above
    /// `after` and below `before`, in order. Ends after the first error; a gap in that range is an error.
    fn read_range(
        &self,
        logs: Vec<Uuid>,
        subjects: Vec<String>,
        after: u64,
        before: u64,
    ) -> mpsc::Receiver<Result<RawMessage, Cause>>;

    /// Returns the number of archived messages before a sequence.
    ///
    /// # Errors
    /// Returns an error if the archive does not reach that sequence.
    fn count_before(&self, logs: &[Uuid], before: u64) -> Result<u64, Cause>;
}

/// A running read of archived messages.
#[derive(Debug)]
pub struct ArchiveRead {
    messages: mpsc::Receiver<Result<RawMessage, Cause>>,
    first: u64,
}

impl ArchiveRead {
    /// The next message; none behind the last one.
    ///
    /// # Errors
    /// [`BusError::Refused`] where it cannot be read.
    pub async fn next_message(&mut self, bus: &Bus) -> Result<Option<RawMessage>, BusError> {
        match self.messages.recv().await {
            Some(Ok(message)) => bus.open_message(message).await.map(Some),
            Some(Err(error)) => Err(archive_unreadable_error(self.first, &error)),
            None => Ok(None),
        }
    }
}

impl Bus {
    /// Sets the archive from which messages trimmed from the log are read.
    #[must_use]
    pub fn with_archive(self, past: Option<Arc<dyn ArchiveReader>>) -> Self {
        Self { past, ..self }
    }

    /// Returns true if an archive is configured for messages trimmed from the log.
    pub fn has_archive(&self) -> bool {
        self.past.is_some()
    }

    /// Hands over all that there ever was on these subjects, for as long as more is wanted: what stood before the log, then the log.
    ///
    /// # Errors
    /// [`BusError::Refused`] where what stood before is gone; [`BusError::Unavailable`] also where the log was trimmed meanwhile. Some may
    /// have been handed over then.
    pub async fn read_full_history(
        &self,
        subjects: &[String],
        mut each: impl FnMut(RawMessage) -> ControlFlow<()>,
    ) -> Result<(), BusError> {
        let beginning = self.log_start().await?;
        let first = beginning.first_everywhere();
        if first > 1 {
            let mut reading = self.read_archive_of(subjects.to_vec(), 0, &beginning)?;
            while let Some(message) = reading.next_message(self).await? {
                if each(message).is_break() {
                    return Ok(());
                }
            }
        }
        self.read_merged(subjects, first - 1, each).await?;
        if self.log_start().await?.first_everywhere() > first {
            let source = "the log was trimmed meanwhile".into();
            return Err(BusError::Unavailable { doing: "reading all there was", source });
        }
        Ok(())
    }

    /// All that stood behind `after` and before the log.
    ///
    /// # Errors
    /// [`BusError::Refused`] where it is gone.
    pub fn read_archive(&self, after: u64, beginning: &LogStart) -> Result<ArchiveRead, BusError> {
        self.read_archive_of(Vec::new(), after, beginning)
    }

    fn read_archive_of(
        &self,
        subjects: Vec<String>,
        after: u64,
        beginning: &LogStart,
    ) -> Result<ArchiveRead, BusError> {
        let first = beginning.first_everywhere();
        let messages = self.archive_reader(first)?.read_range(beginning.logs.clone(), subjects, after, first);
        Ok(ArchiveRead { messages, first })
    }

    /// Returns the number of messages before the current start of the log.
    ///
    /// # Errors
    /// [`BusError::Refused`] if they cannot be read from the archive.
    pub fn count_archived(&self, LogStart { first, logs, .. }: &LogStart) -> Result<u64, BusError> {
        if *first <= 1 {
            return Ok(0);
        }
        self.archive_reader(*first)?
            .count_before(logs, *first)
            .map_err(|error| archive_unreadable_error(*first, &error))
    }

    fn archive_reader(&self, first: u64) -> Result<&Arc<dyn ArchiveReader>, BusError> {
        self.past.as_ref().ok_or_else(|| BusError::Refused(missing_history_message(first)))
    }
}

/// Returns the error text for a log that has lost its beginning.
pub(super) fn missing_history_message(first: u64) -> String {
    format!(
        "the log begins at message {first}: what stood before is gone, and without it nothing can be made from the log: name its \
         archive in archive.folder, see docs/retention.md"
    )
}

fn archive_unreadable_error(first: u64, error: &Cause) -> BusError {
    BusError::Refused(format!("the log begins at message {first}, and what stood before cannot be read: {error}"))
}
