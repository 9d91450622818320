//! The messages of a partition that are still to be handed on: one line for all that a user says to an agent, in order.
//! Pure.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use kairo_core::{
    bus::congestion::{InputQueue, QueueScope, backpressure::QueueOverLimit},
    ids::Name,
    record::{RawMessage, Record, UnreadableRecord},
};

/// Bytes of messages that are kept in memory; of more it is kept where they stand in the log.
const HELD_BYTES: usize = 4 * 1024 * 1024;
/// Messages at which no more are read: far more than the boundary lets in, unless there are very many users.
const MOST: usize = 1_000_000;

/// A line of messages, handed on one after the other: from a user to an agent, or to none if that is unreadable.
pub type QueueKey = (Name, Option<Name>);

/// A message that is to be handed on, and what it says.
#[derive(Debug)]
pub struct PendingMessage {
    pub raw: RawMessage,
    pub read: Result<Record, UnreadableRecord>,
}

/// A message in a line.
#[derive(Clone, Debug)]
pub enum QueuedMessage {
    Here(Arc<PendingMessage>),
    /// To be read from the log at this sequence.
    There(u64),
}

impl QueuedMessage {
    pub fn sequence(&self) -> u64 {
        match self {
            Self::Here(said) => said.raw.sequence,
            Self::There(sequence) => *sequence,
        }
    }

    fn held_bytes(&self) -> usize {
        match self {
            Self::Here(said) => said.raw.payload.len(),
            Self::There(_) => 0,
        }
    }
}

/// All lines; the first of each is on its way.
#[derive(Debug, Default)]
pub struct KeyedQueues {
    lines: BTreeMap<QueueKey, VecDeque<QueuedMessage>>,
    /// Sequences of all that waits.
    sequences: BTreeSet<u64>,
    held_bytes: usize,
}

impl KeyedQueues {
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns the number of messages that wait.
    pub fn len(&self) -> usize {
        self.sequences.len()
    }

    pub fn has_room(&self) -> bool {
        self.len() < MOST
    }

    /// Returns the sequence of the first message that is not done yet.
    pub fn first_sequence(&self) -> Option<u64> {
        self.sequences.first().copied()
    }

    /// Puts a message at the end of its line. Returns the message to hand on now, if any: this one if it is alone in
    /// its line.
    pub fn enqueue(&mut self, line: QueueKey, said: impl Into<Arc<PendingMessage>>) -> Option<QueuedMessage> {
        let said = said.into();
        let waits = self.lines.entry(line).or_default();
        self.sequences.insert(said.raw.sequence);
        let has_room = waits.is_empty() || self.held_bytes + said.raw.payload.len() <= HELD_BYTES;
        let waiting = if has_room { QueuedMessage::Here(said) } else { QueuedMessage::There(said.raw.sequence) };
        self.held_bytes += waiting.held_bytes();
        waits.push_back(waiting.clone());
        (waits.len() == 1).then_some(waiting)
    }

    /// The first of a line was dealt with. The next one.
    pub fn complete_first(&mut self, line: &QueueKey) -> Option<QueuedMessage> {
        let waits = self.lines.get_mut(line)?;
        if let Some(done) = waits.pop_front() {
            self.held_bytes -= done.held_bytes();
            self.sequences.remove(&done.sequence());
        }
        let next = waits.front().cloned();
        if next.is_none() {
            self.lines.remove(line);
        }
        next
    }

    /// Forgets all but what is on its way: it is somebody else's.
    pub fn truncate_to_in_flight(&mut self) {
        self.lines.values_mut().for_each(|waits| waits.truncate(1));
    }

    /// Lines to agents in which more waits than this.
    pub fn queues_longer_than(&self, limit: usize) -> impl Iterator<Item = QueueOverLimit> {
        let long = self.lines.iter().filter(move |(_, waits)| waits.len() > limit);
        long.filter_map(move |((user, agent), waits)| {
            Some((InputQueue::for_user_line(agent.as_ref()?, user), waits.len(), limit))
        })
    }

    /// Returns the number of messages that wait in the line of a queue; 0 for queues that are no line.
    pub fn pending_in(&self, InputQueue { agent, of }: &InputQueue) -> usize {
        match of {
            QueueScope::Line(user) => self.queue_len(&(user.clone(), Some(agent.clone()))),
            QueueScope::Everybody | QueueScope::Share(_) => 0,
        }
    }

    pub fn queue_len(&self, line: &QueueKey) -> usize {
        self.lines.get(line).map_or(0, VecDeque::len)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kairo_core::bus::port::Headers;

    use super::*;

    fn name(text: &str) -> Name {
        Name::parse(text).unwrap()
    }

    fn pending_message(sequence: u64, bytes: usize) -> PendingMessage {
        let raw = RawMessage {
            sequence,
            subject: String::new(),
            partition: None,
            stored: Timestamp::UNIX_EPOCH,
            headers: Headers::new(),
            payload: vec![0; bytes].into(),
            sealed: None,
        };
        let read = raw.read(1);
        PendingMessage { raw, read }
    }

    #[test]
    fn a_line_goes_on_one_by_one_and_what_does_not_fit_is_read_again() {
        let mut lines = KeyedQueues::default();
        let line = (name("ann"), Some(name("cook")));
        assert!(matches!(lines.enqueue(line.clone(), pending_message(1, HELD_BYTES)), Some(QueuedMessage::Here(_))));
        assert!(lines.enqueue(line.clone(), pending_message(2, 1)).is_none());
        // The first of a line is always at hand.
        let other = (name("bob"), Some(name("cook")));
        assert!(matches!(lines.enqueue(other.clone(), pending_message(3, 1)), Some(QueuedMessage::Here(_))));
        assert_eq!((lines.len(), lines.first_sequence()), (3, Some(1)));
        assert!(matches!(lines.complete_first(&line), Some(QueuedMessage::There(2))));
        assert!(lines.complete_first(&other).is_none());
        assert!(lines.complete_first(&line).is_none());
        assert!(lines.is_empty() && lines.first_sequence().is_none() && lines.held_bytes == 0);
    }

    #[test]
    fn long_lines_are_told_by_user_and_agent() {
        let mut lines = KeyedQueues::default();
        let line = (name("ann"), Some(name("cook")));
        for sequence in 1..=3 {
            lines.enqueue(line.clone(), pending_message(sequence, 1));
            lines.enqueue((name("ann"), None), pending_message(10 + sequence, 1));
        }
        let long = InputQueue::for_user_line(&name("cook"), &name("ann"));
        assert_eq!(lines.queues_longer_than(2).collect::<Vec<_>>(), [(long.clone(), 3, 2)]);
        assert_eq!(lines.queues_longer_than(3).count(), 0);
        assert_eq!((lines.pending_in(&long), lines.pending_in(&InputQueue::for_agent(&name("cook")))), (3, 0));
        lines.truncate_to_in_flight();
        assert_eq!(lines.pending_in(&long), 1);
    }
}
