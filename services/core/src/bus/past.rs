//! What the log had before it was trimmed, as an archive has it: for whoever makes something of all there was.

use std::{fmt::Debug, ops::ControlFlow, sync::Arc};

use tokio::sync::mpsc;
use uuid::Uuid;

use super::{Bus, BusError, port::Cause, read::Beginning};
use crate::record::Raw;

/// Messages that are no longer in the log.
pub trait Past: Debug + Send + Sync {
    /// Those of one of these logs on these subjects, or on all where none is named, behind one sequence and before another, in order. Ends behind the
    /// first error; what is not whole up to there is one.
    fn read(
        &self,
        logs: Vec<Uuid>,
        subjects: Vec<String>,
        after: u64,
        before: u64,
    ) -> mpsc::Receiver<Result<Raw, Cause>>;

    /// How many messages it has before a sequence.
    ///
    /// # Errors
    /// Where it does not go so far.
    fn count(&self, logs: &[Uuid], before: u64) -> Result<u64, Cause>;
}

/// What is being read of it.
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
    /// The same, which knows where what is gone from the log is read.
    #[must_use]
    pub fn with_past(self, past: Option<Arc<dyn Past>>) -> Self {
        Self { past, ..self }
    }

    /// Whether it is known where what is gone from the log is read.
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

    /// How many messages stood before the log.
    ///
    /// # Errors
    /// [`BusError::Refused`] where they are gone.
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

/// What is told of a log that has lost its beginning.
pub(super) fn is_gone(first: u64) -> String {
    format!(
        "the log begins at message {first}: what stood before is gone, and without it nothing can be made from the log: name its \
         archive in archive.folder, see docs/retention.md"
    )
}

fn not_read(first: u64, error: &Cause) -> BusError {
    BusError::Refused(format!("the log begins at message {first}, and what stood before cannot be read: {error}"))
}
