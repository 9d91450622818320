//! Messages trimmed from the log, read from an archive, for projections of the whole history.

use std::{fmt::Debug, ops::ControlFlow, sync::Arc};

use tokio::sync::mpsc;
use uuid::Uuid;

use super::{Bus, BusError, port::Cause, read::Beginning};
use crate::record::Raw;

/// Messages that are no longer in the log.
pub trait Past: Debug + Send + Sync {
    /// Reads the messages of one of these logs on these subjects, or on all if none is named, with a sequence above
    /// `after` and below `before`, in order. Ends after the first error; a gap in that range is an error.
    fn read(
        &self,
        logs: Vec<Uuid>,
        subjects: Vec<String>,
        after: u64,
        before: u64,
    ) -> mpsc::Receiver<Result<Raw, Cause>>;

    /// Returns the number of archived messages before a sequence.
    ///
    /// # Errors
    /// Returns an error if the archive does not reach that sequence.
    fn count(&self, logs: &[Uuid], before: u64) -> Result<u64, Cause>;
}

/// A running read of archived messages.
#[derive(Debug)]
pub struct ReadingPast {
    messages: mpsc::Receiver<Result<Raw, Cause>>,
    first: u64,
}

impl ReadingPast {
    /// The next message; none behind the last one.
    ///
    /// # Errors
    /// [`BusError::Refused`] where it cannot be read.
    pub async fn next(&mut self, bus: &Bus) -> Result<Option<Raw>, BusError> {
        match self.messages.recv().await {
            Some(Ok(message)) => bus.opened(message).await.map(Some),
            Some(Err(error)) => Err(not_read(self.first, &error)),
            None => Ok(None),
        }
    }
}

impl Bus {
    /// Sets the archive from which messages trimmed from the log are read.
    #[must_use]
    pub fn with_past(self, past: Option<Arc<dyn Past>>) -> Self {
        Self { past, ..self }
    }

    /// Returns true if an archive is configured for messages trimmed from the log.
    pub fn knows_past(&self) -> bool {
        self.past.is_some()
    }

    /// Hands over all that there ever was on these subjects, for as long as more is wanted: what stood before the log, then the log.
    ///
    /// # Errors
    /// [`BusError::Refused`] where what stood before is gone; [`BusError::Unavailable`] also where the log was trimmed meanwhile. Some may
    /// have been handed over then.
    pub async fn read_whole(
        &self,
        subjects: &[String],
        mut each: impl FnMut(Raw) -> ControlFlow<()>,
    ) -> Result<(), BusError> {
        let beginning = self.beginning().await?;
        let first = beginning.everywhere();
        if first > 1 {
            let mut reading = self.past_of(subjects.to_vec(), 0, &beginning)?;
            while let Some(message) = reading.next(self).await? {
                if each(message).is_break() {
                    return Ok(());
                }
            }
        }
        self.read_together(subjects, first - 1, each).await?;
        if self.beginning().await?.everywhere() > first {
            let source = "the log was trimmed meanwhile".into();
            return Err(BusError::Unavailable { doing: "reading all there was", source });
        }
        Ok(())
    }

    /// All that stood behind `after` and before the log.
    ///
    /// # Errors
    /// [`BusError::Refused`] where it is gone.
    pub fn past_of_all(&self, after: u64, beginning: &Beginning) -> Result<ReadingPast, BusError> {
        self.past_of(Vec::new(), after, beginning)
    }

    fn past_of(&self, subjects: Vec<String>, after: u64, beginning: &Beginning) -> Result<ReadingPast, BusError> {
        let first = beginning.everywhere();
        let messages = self.past(first)?.read(beginning.logs.clone(), subjects, after, first);
        Ok(ReadingPast { messages, first })
    }

    /// Returns the number of messages before the current start of the log.
    ///
    /// # Errors
    /// [`BusError::Refused`] if they cannot be read from the archive.
    pub fn count_past(&self, Beginning { first, logs, .. }: &Beginning) -> Result<u64, BusError> {
        if *first <= 1 {
            return Ok(0);
        }
        self.past(*first)?.count(logs, *first).map_err(|error| not_read(*first, &error))
    }

    fn past(&self, first: u64) -> Result<&Arc<dyn Past>, BusError> {
        self.past.as_ref().ok_or_else(|| BusError::Refused(is_gone(first)))
    }
}

/// Returns the error text for a log that has lost its beginning.
pub(super) fn is_gone(first: u64) -> String {
    format!(
        "the log begins at message {first}: what stood before is gone, and without it nothing can be made from the log: name its \
         archive in archive.folder, see docs/retention.md"
    )
}

fn not_read(first: u64, error: &Cause) -> BusError {
    BusError::Refused(format!("the log begins at message {first}, and what stood before cannot be read: {error}"))
}
