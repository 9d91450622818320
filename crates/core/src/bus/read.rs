//! Looking things up in the log by direct gets, without a consumer.

use uuid::Uuid;

pub use super::port::MessagePage;
use super::{
    Bus, BusError, archive,
    message_sealing::OpeningTail,
    port::{ReadSource, StreamTail, TailStart},
    provision::{LOG_BEFORE, TRIMMED},
};
use crate::{
    ids::Name,
    record::{RawMessage, Record},
    subjects::{self, EVENTS_STREAM},
};

/// Most messages in one [`MessagePage`].
pub const PAGE: usize = 256;

const READING: &str = "reading the log";

/// The start of the log, and the logs an archive may hold it under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogStart {
    /// Its first message; 1 while nothing is in it.
    pub first: u64,
    /// Up to here everything was carried forward that must stand; 0 where the log was never trimmed.
    pub trimmed: u64,
    /// The log itself, and the one that it was before it was restored: an archive of either has what is gone.
    pub logs: Vec<Uuid>,
}

impl LogStart {
    /// Returns true if no message was ever removed from the log.
    pub fn is_whole(&self) -> bool {
        self.first == 1 && self.trimmed == 0
    }

    /// Returns a sequence from which every server has the whole log, now and later: a server that was away or behind
    /// while the log was trimmed may have lost more than the leader, and a trimming limit still in force drops the
    /// oldest message with each new one. All earlier messages are in the archive.
    pub fn first_everywhere(&self) -> u64 {
        self.first.max(self.trimmed.saturating_add(1))
    }
}

impl Bus {
    /// The messages of a subject, or of a filter of stored subjects, with a sequence above `after`, at most [`PAGE`], in
    /// one round trip.
    ///
    /// With several servers a follower may answer that has not seen the newest messages yet. Whoever knows of a
    /// message that should be there must look for it and ask again.
    pub async fn read_page(&self, filter: &str, after: u64) -> Result<MessagePage, BusError> {
        self.read_page_in(EVENTS_STREAM, &self.stored_subject(filter), after).await
    }

    /// Like [`Bus::read_page`], in any stream.
    pub(super) async fn read_page_in(&self, stream: &str, filter: &str, after: u64) -> Result<MessagePage, BusError> {
        let page = self.port.read_page(stream, filter, after, PAGE).await.map_err(BusError::unavailable(READING))?;
        self.open_page(page).await
    }

    /// The messages of the log with a sequence above `after`, whatever their subject, at most [`PAGE`]. The server looks for nothing,
    /// so that costs it no more than the messages themselves. As with [`Bus::read_page`], a follower may answer.
    pub async fn read_log_page(&self, after: u64) -> Result<MessagePage, BusError> {
        self.read_page_in(EVENTS_STREAM, ">", after).await
    }

    /// The last message of each subject that a list of filters names, in the log; at most 1024.
    pub async fn last_of_each(&self, filters: &[String]) -> Result<Vec<RawMessage>, BusError> {
        let filters: Vec<String> = filters.iter().map(|filter| self.stored_subject(filter)).collect();
        let last = self.port.last_of_each(EVENTS_STREAM, &filters).await.map_err(BusError::unavailable(READING))?;
        self.open_messages(last).await
    }

    /// The first message of a subject with a sequence above `after`.
    pub async fn first_after(&self, subject: &str, after: u64) -> Result<Option<RawMessage>, BusError> {
        let page = self.port.read_page(EVENTS_STREAM, &self.stored_subject(subject), after, 1).await;
        self.open_optional(page.map_err(BusError::unavailable(READING))?.messages.into_iter().next()).await
    }

    /// The sequence of the first message of all that concerns an agent; 0 where there is none.
    pub async fn first_sequence_of(&self, agent: &Name) -> Result<u64, BusError> {
        let page = self.port.read_page(EVENTS_STREAM, &subjects::agent_filter(agent), 0, 1).await;
        Ok(page.map_err(BusError::unavailable(READING))?.messages.first().map_or(0, |first| first.sequence))
    }

    /// All messages of `filter` above `after`, handed over in order.
    pub async fn read_all(
        &self,
        filter: &str,
        mut after: u64,
        mut each: impl FnMut(RawMessage),
    ) -> Result<(), BusError> {
        loop {
            let page = self.read_page(filter, after).await?;
            let Some(last) = page.messages.last() else { return Ok(()) };
            after = last.sequence;
            page.messages.into_iter().for_each(&mut each);
            if !page.more {
                return Ok(());
            }
        }
    }

    /// Reads all messages of a filter as the leader has them: one round trip for each.
    pub async fn read_all_at_leader(
        &self,
        filter: &str,
        mut after: u64,
        mut each: impl FnMut(RawMessage),
    ) -> Result<(), BusError> {
        let filter = self.stored_subject(filter);
        while let Some(raw) =
            self.port.next_at_leader(EVENTS_STREAM, &filter, after).await.map_err(BusError::unavailable(READING))?
        {
            after = raw.sequence;
            each(self.open_message(raw).await?);
        }
        Ok(())
    }

    /// Returns the last message of a subject. A message that was carried forward is returned in its original form.
    pub async fn last_message(&self, subject: &str) -> Result<Option<RawMessage>, BusError> {
        let last = self.port.last_message(EVENTS_STREAM, &self.stored_subject(subject), ReadSource::Any).await;
        let last = self.open_optional(last.map_err(BusError::unavailable(READING))?).await?;
        Ok(last.map(RawMessage::without_carried_mark))
    }

    /// The record at `sequence`, which somebody has seen there. A server that is behind the others does not have it yet: then the one
    /// that leads is asked.
    pub async fn record_at(&self, sequence: u64) -> Result<Record, BusError> {
        let found = self.port.message_at(EVENTS_STREAM, sequence, ReadSource::Any).await;
        let found = match found.map_err(BusError::unavailable(READING))? {
            Some(raw) => Some(self.open_message(raw).await?),
            None => self.message_at(sequence).await?,
        };
        let raw = found.ok_or("nothing stands there yet").map_err(BusError::unavailable(READING))?;
        raw.read(self.limits.max_body_bytes).map_err(BusError::unavailable(READING))
    }

    /// The sequence of the last message on a subject as the stream's leader has it, 0 for none. A direct get may be
    /// answered by a server that lags behind; this one is not, and costs the leader's attention.
    pub async fn last_at_leader(&self, subject: &str) -> Result<u64, BusError> {
        let last = self.port.last_message(EVENTS_STREAM, &self.stored_subject(subject), ReadSource::Leader).await;
        Ok(last.map_err(BusError::unavailable(READING))?.map_or(0, |last| last.sequence))
    }

    /// Returns true if the leader has a message of a filter with a sequence above `after`. The closer `after` is to the
    /// end of the log, the cheaper the call.
    pub async fn has_message_after(&self, filter: &str, after: u64) -> Result<bool, BusError> {
        let next = self.port.next_at_leader(EVENTS_STREAM, &self.stored_subject(filter), after).await;
        Ok(next.map_err(BusError::unavailable(READING))?.is_some())
    }

    /// Returns the last sequence of the log.
    pub async fn end_sequence(&self) -> Result<u64, BusError> {
        let state = self.port.stream_state(EVENTS_STREAM).await;
        Ok(state.map_err(BusError::unavailable(READING))?.last_sequence)
    }

    /// Checks that the log is complete: it has its beginning, or it was trimmed after the last message of every subject
    /// that is still read was carried forward. A subject without messages then never had any.
    ///
    /// # Errors
    /// [`BusError::Refused`] if messages are gone that were not carried forward.
    pub async fn check_log_complete(&self) -> Result<(), BusError> {
        let beginning = self.log_start().await?;
        let stands = beginning.first <= beginning.trimmed.saturating_add(1);
        if stands { Ok(()) } else { Err(BusError::Refused(archive::missing_history_message(beginning.first))) }
    }

    /// Returns the start of the log.
    pub async fn log_start(&self) -> Result<LogStart, BusError> {
        let state = self.port.stream_state(EVENTS_STREAM).await.map_err(BusError::unavailable(READING))?;
        let trimmed = state.metadata.get(TRIMMED).and_then(|trimmed| trimmed.parse().ok()).unwrap_or(0);
        let before = state.metadata.get(LOG_BEFORE).and_then(|before| Uuid::parse_str(before.split('@').next()?).ok());
        let logs = [self.log_identity()?.id].into_iter().chain(before).collect();
        Ok(LogStart { first: state.first_sequence.max(1), trimmed, logs })
    }

    /// The message at a sequence, from the leader; none where there is none.
    pub async fn message_at(&self, sequence: u64) -> Result<Option<RawMessage>, BusError> {
        let found = self.port.message_at(EVENTS_STREAM, sequence, ReadSource::Leader).await;
        self.open_optional(found.map_err(BusError::unavailable(READING))?).await
    }

    /// Reads a subject in order, from a place on and for as long as the tail is not dropped.
    pub async fn tail_subject(&self, subject: &str, start: TailStart) -> Result<Box<dyn StreamTail>, BusError> {
        self.tail_filters(&[self.stored_subject(subject)], start).await
    }

    /// Like [`Bus::tail_subject`], whatever one of these filters of stored subjects names.
    pub async fn tail_filters(&self, filters: &[String], start: TailStart) -> Result<Box<dyn StreamTail>, BusError> {
        let tail =
            self.port.tail_stream(EVENTS_STREAM, filters, start).await.map_err(BusError::unavailable(READING))?;
        Ok(Box::new(OpeningTail::new(tail, self.clone())))
    }
}
