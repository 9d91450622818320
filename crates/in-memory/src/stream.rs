//! One stream: its messages, as the leader has them and as servers have them that lag behind.

use std::collections::BTreeMap;

use bytes::Bytes;
use jiff::Timestamp;
use kairo_core::{
    bus::port::{Headers, MessagePage, OutgoingMessage, StoreAck, StoreError, StreamState},
    partition,
    record::RawMessage,
};
use tokio::time::Instant;

use crate::chance::Chance;

/// A message as it is stored.
#[derive(Clone, Debug)]
pub struct StreamEntry {
    pub sequence: u64,
    pub subject: String,
    pub headers: Headers,
    pub payload: Bytes,
    pub time: Timestamp,
    /// When it was stored, by the clock that tokio goes by.
    pub at: Instant,
    /// When it was removed, if it was: a server that lags behind still has it.
    pub gone: Option<Instant>,
    /// When the server removes it by itself.
    pub expires: Option<Instant>,
}

/// The messages that a reader sees: those of a server that has not heard of anything since then.
pub type View = Instant;

#[derive(Debug)]
pub struct Stream {
    pub name: String,
    filters: Vec<String>,
    /// In their order. Sequences may be missing.
    messages: Vec<StreamEntry>,
    /// The last sequence there was, or that is not to be used.
    last: u64,
    /// Sequences of the messages of each subject, removed ones too.
    by_subject: BTreeMap<String, Vec<u64>>,
    ids: BTreeMap<String, u64>,
    pub metadata: BTreeMap<String, String>,
    created: Timestamp,
    /// Only the last message of a subject is kept.
    is_bucket: bool,
    /// It takes nothing more.
    pub full: bool,
    /// Until then it has no leader.
    pub leaderless: Option<Instant>,
}

impl Stream {
    pub fn new(name: &str, filters: &[&str], created: Timestamp) -> Self {
        Self {
            name: name.to_owned(),
            filters: filters.iter().map(|filter| (*filter).to_owned()).collect(),
            messages: Vec::new(),
            last: 0,
            by_subject: BTreeMap::new(),
            ids: BTreeMap::new(),
            metadata: BTreeMap::new(),
            created,
            is_bucket: false,
            full: false,
            leaderless: None,
        }
    }

    /// A stream behind a bucket.
    pub fn bucket(name: &str, created: Timestamp) -> Self {
        let bucket = name.trim_start_matches("KV_");
        Self { is_bucket: true, ..Self::new(name, &[&format!("$KV.{bucket}.>")], created) }
    }

    pub fn takes(&self, subject: &str) -> bool {
        self.filters.iter().any(|filter| matches(filter, subject))
    }

    pub fn has_leader(&self) -> bool {
        self.leaderless.is_none_or(|until| until <= Instant::now())
    }

    /// Stores a message, as the leader does. Now and then it still has another guarded write of the subject, or of its id, in process.
    pub fn store(
        &mut self,
        message: OutgoingMessage,
        time: Timestamp,
        in_process: u64,
        chance: &mut dyn Chance,
    ) -> Result<StoreAck, StoreError> {
        if !self.has_leader() {
            return Err(StoreError::NoStream);
        }
        if let Some(first) = message.id.as_ref().and_then(|id| self.ids.get(id)) {
            return Ok(StoreAck { sequence: *first, duplicate: true });
        }
        if (message.guard.is_some() || message.id.is_some()) && chance.permille(in_process) {
            return Err(StoreError::InProcess);
        }
        if message.guard.is_some_and(|guard| guard != self.last_sequence_of(&message.subject)) {
            return Err(StoreError::WrongLastSequence);
        }
        if self.full {
            return Err(StoreError::Full("maximum messages exceeded".to_owned()));
        }
        Ok(StoreAck { sequence: self.write(message, time), duplicate: false })
    }

    /// Stores a message whatever there is.
    pub fn write(&mut self, message: OutgoingMessage, time: Timestamp) -> u64 {
        let sequence = self.last_sequence() + 1;
        self.insert(sequence, message, time);
        sequence
    }

    /// Puts a message where it stands elsewhere: behind all that is here.
    pub fn insert(&mut self, sequence: u64, message: OutgoingMessage, time: Timestamp) {
        let OutgoingMessage { subject, headers, payload, lifetime, id, .. } = message;
        self.ids.extend(id.map(|id| (id, sequence)));
        let now = Instant::now();
        let before = self.by_subject.entry(subject.clone()).or_default();
        let last = before.last().copied();
        before.push(sequence);
        if self.is_bucket
            && let Some(last) = last.and_then(|last| self.entry_mut(last))
        {
            last.gone.get_or_insert(now);
        }
        let expires = lifetime.map(|lifetime| now + lifetime);
        self.last = sequence;
        self.messages.push(StreamEntry { sequence, subject, headers, payload, time, at: now, gone: None, expires });
    }

    pub fn last_sequence(&self) -> u64 {
        self.last
    }

    /// Has messages stored from here on stand behind this sequence.
    pub fn skip_to(&mut self, sequence: u64) {
        self.last = self.last.max(sequence);
    }

    fn last_sequence_of(&self, subject: &str) -> u64 {
        let sequences = self.by_subject.get(subject).into_iter().flatten().rev();
        let is_there = |sequence: &u64| self.entry_at(*sequence).is_some_and(|stored| stored.gone.is_none());
        sequences.copied().find(is_there).unwrap_or(0)
    }

    /// Every message there ever was, removed ones too.
    pub fn all_entries(&self) -> &[StreamEntry] {
        &self.messages
    }

    /// A message, also one that was removed.
    pub fn entry_at(&self, sequence: u64) -> Option<&StreamEntry> {
        self.messages.get(self.index_of(sequence)?)
    }

    fn entry_mut(&mut self, sequence: u64) -> Option<&mut StreamEntry> {
        let place = self.index_of(sequence)?;
        self.messages.get_mut(place)
    }

    /// Returns the index of a sequence: at once as long as none is missing before it.
    fn index_of(&self, sequence: u64) -> Option<usize> {
        let dense = usize::try_from(sequence).ok()?.checked_sub(1)?;
        match self.messages.get(dense) {
            Some(stored) if stored.sequence == sequence => Some(dense),
            _ => self.messages.binary_search_by_key(&sequence, |stored| stored.sequence).ok(),
        }
    }

    /// The last message of all that a subject names, wildcards allowed.
    pub fn last(&self, subject: &str, view: View) -> Option<RawMessage> {
        match subject.contains(['*', '>']) {
            true => self.last_of_each(&[subject.to_owned()], view).pop(),
            false => self.last_of(subject, view),
        }
    }

    fn last_of(&self, subject: &str, view: View) -> Option<RawMessage> {
        let sequences = self.by_subject.get(subject)?.iter().rev();
        sequences.copied().find_map(|sequence| self.message_at(sequence, view))
    }

    pub fn message_at(&self, sequence: u64, view: View) -> Option<RawMessage> {
        self.entry_at(sequence).filter(|stored| stored.is_visible(view)).map(StreamEntry::raw)
    }

    /// Messages above `after` that a filter names.
    pub fn messages_on<'a>(
        &'a self,
        filters: &'a [String],
        after: u64,
        view: View,
    ) -> impl Iterator<Item = RawMessage> + 'a {
        self.entries_after(filters, after, view).map(StreamEntry::raw)
    }

    /// Counts the messages on these filters behind a sequence.
    pub fn count(&self, filters: &[String], after: u64, view: View) -> u64 {
        self.entries_after(filters, after, view).count() as u64
    }

    fn entries_after<'a>(
        &'a self,
        filters: &'a [String],
        after: u64,
        view: View,
    ) -> impl Iterator<Item = &'a StreamEntry> {
        let first = match usize::try_from(after) {
            Ok(after) if self.messages.get(after).is_some_and(|stored| stored.sequence == after as u64 + 1) => after,
            _ => self.messages.partition_point(|stored| stored.sequence <= after),
        };
        let named = move |stored: &&StreamEntry| {
            filters.is_empty() || filters.iter().any(|filter| matches(filter, &stored.subject))
        };
        let behind = self.messages.get(first..).unwrap_or_default().iter();
        behind.filter(named).filter(move |stored| stored.is_visible(view))
    }

    /// Messages above `after` of one subject.
    fn of_subject(&self, subject: &str, after: u64, view: View) -> impl Iterator<Item = RawMessage> {
        let sequences = self.by_subject.get(subject).map(Vec::as_slice).unwrap_or_default();
        let behind = sequences.partition_point(|sequence| *sequence <= after);
        sequences.get(behind..).unwrap_or_default().iter().filter_map(move |sequence| self.message_at(*sequence, view))
    }

    pub fn page(&self, filter: &str, after: u64, most: usize, view: View) -> MessagePage {
        let mut messages: Vec<RawMessage> = match filter.contains(['*', '>']) {
            true => self.messages_on(&[filter.to_owned()], after, view).take(most + 1).collect(),
            false => self.of_subject(filter, after, view).take(most + 1).collect(),
        };
        let more = messages.len() > most;
        messages.truncate(most);
        MessagePage { messages, more }
    }

    pub fn last_of_each(&self, filters: &[String], view: View) -> Vec<RawMessage> {
        let named = |(subject, _): &(&String, &Vec<u64>)| filters.iter().any(|filter| matches(filter, subject));
        let last_of =
            |sequences: &Vec<u64>| sequences.iter().rev().find_map(|sequence| self.message_at(*sequence, view));
        let mut last: Vec<RawMessage> =
            self.by_subject.iter().filter(named).filter_map(|(_, sequences)| last_of(sequences)).collect();
        last.sort_by_key(|raw| raw.sequence);
        last
    }

    /// Removes a message; false when it is not there.
    pub fn remove(&mut self, sequence: u64) -> bool {
        match self.entry_mut(sequence) {
            Some(stored) if stored.gone.is_none() => {
                stored.gone = Some(Instant::now());
                true
            }
            _ => false,
        }
    }

    /// Removes what has lived long enough.
    pub fn expire(&mut self) {
        let now = Instant::now();
        for stored in self.messages.iter_mut().filter(|it| it.expires.is_some_and(|expires| expires <= now)) {
            stored.gone.get_or_insert(now);
        }
    }

    /// Removes everything; the sequences go on.
    pub fn purge(&mut self) {
        let now = Instant::now();
        self.messages.iter_mut().for_each(|stored| _ = stored.gone.get_or_insert(now));
    }

    pub fn state(&self) -> StreamState {
        let first_sequence = match self.messages.iter().position(|stored| stored.gone.is_none()) {
            // Nothing was removed before it. Of a log that is here in part, as a fork has it, the rest is not gone.
            Some(0) => 1,
            Some(first) => self.messages.get(first).map_or(1, |first| first.sequence),
            None => self.last_sequence() + 1,
        };
        StreamState {
            created: self.created,
            metadata: self.metadata.clone(),
            first_sequence,
            last_sequence: self.last_sequence(),
        }
    }
}

impl StreamEntry {
    fn is_visible(&self, view: View) -> bool {
        self.at <= view && self.gone.is_none_or(|gone| gone > view)
    }

    /// The message as everybody but the server knows it.
    pub fn raw(&self) -> RawMessage {
        let (subject, partition) = partition::split_subject(&self.subject);
        RawMessage {
            sequence: self.sequence,
            subject: subject.to_owned(),
            partition,
            headers: self.headers.clone(),
            payload: self.payload.clone(),
            sealed: None,
            stored: self.time,
        }
    }
}

/// Returns true if a filter matches a subject.
pub fn matches(filter: &str, subject: &str) -> bool {
    let mut wanted = filter.split('.');
    let mut found = subject.split('.');
    loop {
        match (wanted.next(), found.next()) {
            (Some(">"), Some(_)) | (None, None) => return true,
            (Some("*"), Some(_)) => {}
            (Some(wanted), Some(found)) if wanted == found => {}
            _ => return false,
        }
    }
}
