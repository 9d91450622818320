//! One stream: its messages, as the leader has them and as servers have them that lag behind.

use std::collections::BTreeMap;

use bytes::Bytes;
use jiff::Timestamp;
use kairo_core::{
    bus::port::{Headers, Message, Page, StoreError, StreamState, Written},
    partition,
    record::Raw,
};
use tokio::time::Instant;

use crate::chance::Chance;

/// A message as it is stored.
#[derive(Clone, Debug)]
pub struct Stored {
    pub subject: String,
    pub headers: Headers,
    pub payload: Bytes,
    pub time: Timestamp,
    /// When it was stored, by the clock of the simulation.
    pub at: Instant,
    /// When it was removed, if it was: a server that lags behind still has it.
    pub gone: Option<Instant>,
    /// When the server removes it by itself.
    pub expires: Option<Instant>,
}

/// Which messages somebody sees: those of a server that has not heard of anything since then.
pub type View = Instant;

#[derive(Debug)]
pub struct Stream {
    pub name: String,
    filters: Vec<String>,
    pub messages: Vec<Stored>,
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

    /// Stores a message, as the leader does. Now and then it still has another guarded write of the subject in process.
    pub fn store(
        &mut self,
        message: Message,
        time: Timestamp,
        in_process: u64,
        chance: &mut Chance,
    ) -> Result<Written, StoreError> {
        if !self.has_leader() {
            return Err(StoreError::NoStream);
        }
        if let Some(first) = message.id.as_ref().and_then(|id| self.ids.get(id)) {
            return Ok(Written { sequence: *first, duplicate: true });
        }
        if message.guard.is_some() && chance.permille(in_process) {
            return Err(StoreError::InProcess);
        }
        if message.guard.is_some_and(|guard| guard != self.last_sequence_of(&message.subject)) {
            return Err(StoreError::WrongLastSequence);
        }
        if self.full {
            return Err(StoreError::Full("maximum messages exceeded".to_owned()));
        }
        let id = message.id.clone();
        let sequence = self.write(message, time);
        if let Some(id) = id {
            self.ids.insert(id, sequence);
        }
        Ok(Written { sequence, duplicate: false })
    }

    /// Stores a message whatever there is.
    pub fn write(&mut self, message: Message, time: Timestamp) -> u64 {
        let Message { subject, headers, payload, lifetime, .. } = message;
        let now = Instant::now();
        let before = self.by_subject.entry(subject.clone()).or_default();
        if self.is_bucket
            && let Some(last) = before.last()
        {
            self.messages[*last as usize - 1].gone.get_or_insert(now);
        }
        let sequence = self.messages.len() as u64 + 1;
        before.push(sequence);
        let expires = lifetime.map(|lifetime| now + lifetime);
        self.messages.push(Stored { subject, headers, payload, time, at: now, gone: None, expires });
        sequence
    }

    pub fn last_sequence(&self) -> u64 {
        self.messages.len() as u64
    }

    fn last_sequence_of(&self, subject: &str) -> u64 {
        let sequences = self.by_subject.get(subject).into_iter().flatten().rev();
        sequences.copied().find(|it| self.messages[*it as usize - 1].gone.is_none()).unwrap_or(0)
    }

    /// The last message of all that a subject names, wildcards allowed.
    pub fn last(&self, subject: &str, view: View) -> Option<Raw> {
        match subject.contains(['*', '>']) {
            true => self.last_of_each(&[subject.to_owned()], view).pop(),
            false => self.last_of(subject, view),
        }
    }

    fn last_of(&self, subject: &str, view: View) -> Option<Raw> {
        let sequences = self.by_subject.get(subject)?.iter().rev();
        sequences.copied().find_map(|sequence| self.at(sequence, view))
    }

    pub fn at(&self, sequence: u64, view: View) -> Option<Raw> {
        let index = usize::try_from(sequence).ok()?.checked_sub(1)?;
        let stored = self.messages.get(index)?;
        (stored.at <= view && stored.gone.is_none_or(|gone| gone > view)).then(|| raw(sequence, stored))
    }

    /// Messages above `after` that a filter names.
    pub fn named<'a>(&'a self, filters: &'a [String], after: u64, view: View) -> impl Iterator<Item = Raw> + 'a {
        let named = move |sequence: &u64| {
            let subject = &self.messages[*sequence as usize - 1].subject;
            filters.is_empty() || filters.iter().any(|filter| matches(filter, subject))
        };
        (after + 1..=self.last_sequence()).filter(named).filter_map(move |sequence| self.at(sequence, view))
    }

    pub fn page(&self, filter: &str, after: u64, most: usize, view: View) -> Page {
        let mut messages: Vec<Raw> = self.named(&[filter.to_owned()], after, view).take(most + 1).collect();
        let more = messages.len() > most;
        messages.truncate(most);
        Page { messages, more }
    }

    pub fn last_of_each(&self, filters: &[String], view: View) -> Vec<Raw> {
        let named = |(subject, _): &(&String, &Vec<u64>)| filters.iter().any(|filter| matches(filter, subject));
        let last_of = |sequences: &Vec<u64>| sequences.iter().rev().find_map(|sequence| self.at(*sequence, view));
        let mut last: Vec<Raw> =
            self.by_subject.iter().filter(named).filter_map(|(_, sequences)| last_of(sequences)).collect();
        last.sort_by_key(|raw| raw.sequence);
        last
    }

    /// Removes a message; false when it is not there.
    pub fn remove(&mut self, sequence: u64) -> bool {
        let stored = usize::try_from(sequence).ok().and_then(|it| self.messages.get_mut(it.checked_sub(1)?));
        match stored {
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
        let first = self.messages.iter().position(|stored| stored.gone.is_none());
        StreamState {
            created: self.created,
            metadata: self.metadata.clone(),
            first_sequence: first.map_or(self.last_sequence() + 1, |at| at as u64 + 1),
            last_sequence: self.last_sequence(),
        }
    }

    /// A message as everybody but the log's own server knows it.
    pub fn raw(&self, sequence: u64) -> Raw {
        raw(sequence, &self.messages[sequence as usize - 1])
    }
}

fn raw(sequence: u64, stored: &Stored) -> Raw {
    let (subject, partition) = partition::split(&stored.subject);
    Raw {
        sequence,
        subject: subject.to_owned(),
        partition,
        headers: stored.headers.clone(),
        payload: stored.payload.clone(),
        stored: stored.time,
    }
}

/// Whether a filter names a subject.
pub fn matches(filter: &str, subject: &str) -> bool {
    let (mut wanted, mut found) = (filter.split('.'), subject.split('.'));
    loop {
        match (wanted.next(), found.next()) {
            (Some(">"), Some(_)) | (None, None) => return true,
            (Some("*"), Some(_)) => {}
            (Some(wanted), Some(found)) if wanted == found => {}
            _ => return false,
        }
    }
}
