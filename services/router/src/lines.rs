//! The messages of a partition that are still to be handed on: one line for all that a user says to an agent, in order.
//! Pure.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use kairo_core::{
    bus::congestion::{Of, Queue, pressure::Over},
    ids::Name,
    record::{Raw, Record, Unreadable},
};

/// Bytes of messages that are kept in memory; of more it is kept where they stand in the log.
const HELD_BYTES: usize = 4 * 1024 * 1024;
/// Messages at which no more are read: far more than the boundary lets in, unless there are very many users.
const MOST: usize = 1_000_000;

/// A line of messages, handed on one after the other: from a user to an agent, or to none if that is unreadable.
pub type Line = (Name, Option<Name>);

/// A message that is to be handed on, and what it says.
#[derive(Debug)]
pub struct Said {
    pub raw: Raw,
    pub read: Result<Record, Unreadable>,
}

/// A message in a line.
#[derive(Clone, Debug)]
pub enum Waiting {
    Here(Arc<Said>),
    /// To be read from the log at this sequence.
    There(u64),
}

impl Waiting {
    pub fn sequence(&self) -> u64 {
        match self {
            Self::Here(said) => said.raw.sequence,
            Self::There(sequence) => *sequence,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Here(said) => said.raw.payload.len(),
            Self::There(_) => 0,
        }
    }
}

/// All lines; the first of each is on its way.
#[derive(Debug, Default)]
pub struct Lines {
    lines: BTreeMap<Line, VecDeque<Waiting>>,
    /// Sequences of all that waits.
    sequences: BTreeSet<u64>,
    held_bytes: usize,
}

impl Lines {
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
    pub fn first(&self) -> Option<u64> {
        self.sequences.first().copied()
    }

    /// Puts a message at the end of its line. Returns the message to hand on now, if any: this one if it is alone in
    /// its line.
    pub fn push(&mut self, line: Line, said: impl Into<Arc<Said>>) -> Option<Waiting> {
        let said = said.into();
        let waits = self.lines.entry(line).or_default();
        self.sequences.insert(said.raw.sequence);
        let has_room = waits.is_empty() || self.held_bytes + said.raw.payload.len() <= HELD_BYTES;
        let waiting = if has_room { Waiting::Here(said) } else { Waiting::There(said.raw.sequence) };
        self.held_bytes += waiting.bytes();
        waits.push_back(waiting.clone());
        (waits.len() == 1).then_some(waiting)
    }

    /// The first of a line was dealt with. The next one.
    pub fn pop(&mut self, line: &Line) -> Option<Waiting> {
        let waits = self.lines.get_mut(line)?;
        if let Some(done) = waits.pop_front() {
            self.held_bytes -= done.bytes();
            self.sequences.remove(&done.sequence());
        }
        let next = waits.front().cloned();
        if next.is_none() {
            self.lines.remove(line);
        }
        next
    }

    /// Forgets all but what is on its way: it is somebody else's.
    pub fn cut(&mut self) {
        self.lines.values_mut().for_each(|waits| waits.truncate(1));
    }

    /// Lines to agents in which more waits than this.
    pub fn longer_than(&self, limit: usize) -> impl Iterator<Item = Over> {
        let long = self.lines.iter().filter(move |(_, waits)| waits.len() > limit);
        long.filter_map(move |((user, agent), waits)| Some((Queue::line(agent.as_ref()?, user), waits.len(), limit)))
    }

    /// Returns the number of messages that wait in the line of a queue; 0 for queues that are no line.
    pub fn waiting(&self, Queue { agent, of }: &Queue) -> usize {
        match of {
            Of::Line(user) => self.length(&(user.clone(), Some(agent.clone()))),
            Of::Everybody | Of::Share(_) => 0,
        }
    }

    pub fn length(&self, line: &Line) -> usize {
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

    fn said(sequence: u64, bytes: usize) -> Said {
        let raw = Raw {
            sequence,
            subject: String::new(),
            partition: None,
            stored: Timestamp::UNIX_EPOCH,
            headers: Headers::new(),
            payload: vec![0; bytes].into(),
            sealed: None,
        };
        let read = raw.read(1);
        Said { raw, read }
    }

    #[test]
    fn a_line_goes_on_one_by_one_and_what_does_not_fit_is_read_again() {
        let (mut lines, line) = (Lines::default(), (name("ann"), Some(name("cook"))));
        assert!(matches!(lines.push(line.clone(), said(1, HELD_BYTES)), Some(Waiting::Here(_))));
        assert!(lines.push(line.clone(), said(2, 1)).is_none());
        // The first of a line is always at hand.
        let other = (name("bob"), Some(name("cook")));
        assert!(matches!(lines.push(other.clone(), said(3, 1)), Some(Waiting::Here(_))));
        assert_eq!((lines.len(), lines.first()), (3, Some(1)));
        assert!(matches!(lines.pop(&line), Some(Waiting::There(2))));
        assert!(lines.pop(&other).is_none());
        assert!(lines.pop(&line).is_none());
        assert!(lines.is_empty() && lines.first().is_none() && lines.held_bytes == 0);
    }

    #[test]
    fn long_lines_are_told_by_user_and_agent() {
        let (mut lines, line) = (Lines::default(), (name("ann"), Some(name("cook"))));
        for sequence in 1..=3 {
            lines.push(line.clone(), said(sequence, 1));
            lines.push((name("ann"), None), said(10 + sequence, 1));
        }
        let long = Queue::line(&name("cook"), &name("ann"));
        assert_eq!(lines.longer_than(2).collect::<Vec<_>>(), [(long.clone(), 3, 2)]);
        assert_eq!(lines.longer_than(3).count(), 0);
        assert_eq!((lines.waiting(&long), lines.waiting(&Queue::of(&name("cook")))), (3, 0));
        lines.cut();
        assert_eq!(lines.waiting(&long), 1);
    }
}
