//! The log and its durable consumers, as far as Kairo uses JetStream.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kairo_core::{
    bus::append::Outgoing,
    record::{Raw, Record},
    subjects::{Consumer, route},
};
use uuid::Uuid;

/// Largest body, in bytes; small enough that no seed comes near it by accident.
const MAX_BODY: usize = 512 * 1024;

#[derive(Default)]
pub struct MemoryLog {
    pub records: Vec<Record>,
    last: BTreeMap<String, u64>,
    /// Ids that were published, for the window of duplicates: here it never ends.
    ids: BTreeMap<Uuid, u64>,
    items: BTreeMap<(Consumer, u64), Item>,
    /// What was put there a second time by hand, past every guard.
    pub copies: BTreeSet<u64>,
}

/// A message on its way through a consumer.
#[derive(Clone, Copy, Debug)]
struct Item {
    attempt: u64,
    /// The replica it was delivered to last; none while it waits for delivery.
    out: Option<usize>,
}

impl MemoryLog {
    /// The sequence of the last message of a subject, 0 for none.
    pub fn last_sequence(&self, subject: &str) -> u64 {
        self.last.get(subject).copied().unwrap_or(0)
    }

    /// Writes if `expected` is the last sequence of the subject; else says which one is.
    pub fn append(&mut self, event: &Outgoing, expected: u64, now: Timestamp) -> Result<u64, u64> {
        match self.last_sequence(&event.subject) {
            last if last == expected => Ok(self.write(event, now)),
            last => Err(last),
        }
    }

    /// Writes unless something with that id was published before.
    pub fn publish(&mut self, event: &Outgoing, now: Timestamp) -> u64 {
        if let Some(sequence) = self.ids.get(&event.envelope.id) {
            return *sequence;
        }
        let sequence = self.write(event, now);
        self.ids.insert(event.envelope.id, sequence);
        sequence
    }

    /// Writes a copy of a message.
    pub fn copy(&mut self, sequence: u64, now: Timestamp) -> u64 {
        let Record { subject, envelope, body, .. } = self.records[sequence as usize - 1].clone();
        let copy = self.write(&Outgoing { subject, envelope, body }, now);
        self.copies.insert(copy);
        copy
    }

    /// Writes without a guard. What is read later went through its bytes, like everything on a wire.
    pub fn write(&mut self, event: &Outgoing, now: Timestamp) -> u64 {
        let sequence = self.records.len() as u64 + 1;
        let raw = Raw {
            sequence,
            subject: event.subject.clone(),
            headers: event.headers(),
            payload: event.body.encode().into(),
            stored: now,
        };
        self.records.push(raw.read(MAX_BODY).expect("a readable event"));
        self.last.insert(event.subject.clone(), sequence);
        let (row, _) = route(&event.subject).expect("a subject of the table");
        let waiting = Item { attempt: 0, out: None };
        self.items.extend(row.consumers.iter().map(|consumer| ((*consumer, sequence), waiting)));
        sequence
    }

    /// The messages above `after` that fit, without the newest `hidden`: a server that lags behind.
    pub fn read(&self, after: u64, hidden: usize, fits: impl Fn(&Record) -> bool) -> Vec<Record> {
        let end = self.records.len().saturating_sub(hidden);
        let from = usize::try_from(after).unwrap_or(usize::MAX).min(end);
        self.records[from..end].iter().filter(|record| fits(record)).cloned().collect()
    }

    /// The last message of a subject, without the newest `hidden` of the log.
    pub fn last(&self, subject: &str, hidden: usize) -> Option<Record> {
        let end = self.records.len().saturating_sub(hidden);
        self.records[..end].iter().rev().find(|record| record.subject == subject).cloned()
    }

    /// Every message as it lies in the stream: subject, headers and body.
    pub fn bytes(&self) -> Vec<Vec<u8>> {
        let bytes = |record: &Record| {
            let headers = record.envelope.to_headers().into_iter().flat_map(|(name, value)| [name.to_owned(), value]);
            let lines: Vec<String> = [record.subject.clone()].into_iter().chain(headers).collect();
            [lines.join("\n").into_bytes(), record.body.encode()].concat()
        };
        self.records.iter().map(bytes).collect()
    }

    /// What waits for delivery, and how often it was delivered before.
    pub fn waiting(&self) -> impl Iterator<Item = (Consumer, u64, u64)> + '_ {
        let waiting = self.items.iter().filter(|(_, item)| item.out.is_none());
        waiting.map(|((consumer, sequence), item)| (*consumer, *sequence, item.attempt))
    }

    /// What was delivered and not settled, and to whom.
    pub fn out(&self) -> impl Iterator<Item = (Consumer, u64, usize)> + '_ {
        self.items.iter().filter_map(|((consumer, sequence), item)| Some((*consumer, *sequence, item.out?)))
    }

    /// Delivers a message to a replica: the message, and how often it was delivered by now.
    pub fn deliver(&mut self, consumer: Consumer, sequence: u64, replica: usize) -> Option<(Record, u64)> {
        let item = self.items.get_mut(&(consumer, sequence))?;
        item.attempt += 1;
        item.out = Some(replica);
        Some((self.records[sequence as usize - 1].clone(), item.attempt))
    }

    /// It is done with, whoever says so.
    pub fn ack(&mut self, consumer: Consumer, sequence: u64) {
        self.items.remove(&(consumer, sequence));
    }

    /// It is to be delivered again: handed back, or not heard of for as long as the ack wait.
    pub fn again(&mut self, consumer: Consumer, sequence: u64) {
        if let Some(item) = self.items.get_mut(&(consumer, sequence)) {
            item.out = None;
        }
    }

    pub fn is_settled(&self) -> bool {
        self.items.is_empty()
    }
}
