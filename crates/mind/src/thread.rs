//! A thread as a model is shown it: bounded, the oldest dropped first.

mod entry;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use jiff::Timestamp;
use kairo_proto::v1::Part;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use self::entry::{ThreadCall, ThreadEntry};
pub(crate) use self::entry::{cut_to, cut_to_entry};
use super::{provenance::Provenance, shared::Shared, state::is_none};

/// Text one thread keeps for the model, in bytes; the oldest entries make room.
const THREAD_BYTES: usize = 256 * 1024;
/// Images and audio of one result that are kept for the model; the runner sends fewer.
const RESULT_PARTS: usize = 16;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    pub user: String,
    /// True if the log has the event that created the thread.
    pub announced: bool,
    /// Sequence of what last happened in it.
    pub touched: u64,
    /// Text that it keeps.
    pub(super) bytes: usize,
    pub(super) entries: VecDeque<Shared<ThreadEntry>>,
    /// When the newest of them were added, in seconds: of those before nobody knows.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub(super) times: VecDeque<i64>,
    /// Sequence at which its user last said something in it, or moved something into it.
    pub heard: u64,
    /// The turn of what its user said last in it; nil where that was before builds of epoch 10.
    #[serde(default, skip_serializing_if = "Uuid::is_nil")]
    pub head: Uuid,
    pub title: String,
    pub summary: String,
    /// Output of the last analysis within a chain, as `{thread.<id>.analysis}`.
    pub analysis: String,
    pub archived: bool,
    /// Events since it was last written to memory, the oldest forgotten first.
    pub fresh: VecDeque<Arc<str>>,
    /// Entries since then.
    pub news: usize,
    /// Content from outside that was seen in it.
    #[serde(default, skip_serializing_if = "Provenance::is_empty")]
    pub outside: Provenance,
    /// Answers in it since it was summed up, where the profile has them counted.
    #[serde(default, skip_serializing_if = "is_none")]
    pub answers: u32,
    /// True for a work thread, which no user sees or speaks in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub work: bool,
    /// The last part of a conversation had elsewhere that was taken in here; 0 for a thread that is no part of one.
    #[serde(default, skip_serializing_if = "is_none")]
    pub(super) imported: u32,
    /// True for the thread of another agent's request, which ends with the answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
    /// Tools that `tools.find` found in it, in the order in which requests list them.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub(super) found: VecDeque<Arc<str>>,
}

/// Rules for keeping an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryRetention {
    /// Maximum number of entries.
    pub limit: usize,
    /// When it is added, in seconds, where that matters.
    pub now: Option<i64>,
    /// True if the oldest entries are dropped many at a time, so that requests share a prefix for long. Dropping one
    /// entry at a time changes the prefix of each request and defeats the cache.
    pub in_steps: bool,
}

/// The part of a thread that is shown to a model; 0 means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cutoff {
    /// Maximum number of entries, the newest first.
    pub entries: u32,
    /// Maximum age of an entry, in seconds.
    pub seconds: u32,
}

impl Cutoff {
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Heading of the summary of the oldest entries.
const SUMMARIZED: &str = "What came before, summed up:";
/// Threads that keep fewer entries are not summed up for the sake of those that are dropped.
const SUMMED_UP: usize = 50;

/// Events a thread remembers until it is written to memory.
const FRESH: usize = 100;
/// Tools that were found in it and that requests list: of more, the oldest are forgotten.
const FOUND_TOOLS: usize = 32;

/// Fields to send back to the model server with all calls of one answer while the turn lasts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AnswerFields<'a> {
    pub(super) reasoning_details: &'a str,
    /// A JSON object as text.
    pub(super) passed_back: &'a str,
}

impl Thread {
    /// The oldest first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &ThreadEntry> {
        self.entries.iter().map(|entry| &**entry)
    }

    /// The calls that a turn made, the oldest first.
    pub(super) fn calls_of(&self, turn: Uuid) -> impl Iterator<Item = &ThreadCall> {
        self.entries().filter(move |entry| entry.turn() == turn).flat_map(ThreadEntry::calls)
    }

    /// Returns the entries to show for a turn: the newest within the cutoff, every entry of the turn and every summary.
    pub fn shown_entries(&self, cutoff: Cutoff, now: Timestamp, turn: Uuid) -> impl Iterator<Item = &ThreadEntry> {
        let skipped = if cutoff.entries == 0 { 0 } else { self.entries.len().saturating_sub(cutoff.entries as usize) };
        let since = now.as_second().saturating_sub(i64::from(cutoff.seconds));
        let is_new = move |time: Option<i64>| cutoff.seconds == 0 || time.is_none_or(|time| time >= since);
        let untimed = self.entries.len() - self.times.len();
        let is_known = !self.times.is_empty();
        self.entries().enumerate().filter_map(move |(at, entry)| {
            let time = at.checked_sub(untimed).and_then(|at| self.times.get(at)).copied();
            // What was added before any time was noted is older than all that has one.
            let time = time.or(is_known.then_some(i64::MIN));
            let is_wanted = at >= skipped && is_new(time) || entry.turn() == turn || entry.is_summary();
            is_wanted.then_some(entry)
        })
    }

    /// Entries with the time at which they were added, where that is known.
    pub(super) fn timed_entries(&self) -> impl Iterator<Item = (Option<i64>, &ThreadEntry)> {
        let untimed = self.entries.len() - self.times.len();
        self.entries()
            .enumerate()
            .map(move |(at, entry)| (at.checked_sub(untimed).and_then(|at| self.times.get(at)).copied(), entry))
    }

    /// Adds an entry and keeps at most as many as are to be kept.
    pub(super) fn push(&mut self, sequence: u64, entry: ThreadEntry, keeping: EntryRetention) {
        self.touched = sequence;
        self.news += 1;
        self.entries.push_back(entry.into());
        match keeping.now {
            Some(now) => self.times.push_back(now),
            None => self.times.clear(),
        }
        self.trim(keeping);
    }

    /// Notes what it is about by now.
    pub(super) fn set_summary(&mut self, title: &str, summary: &str) {
        self.bytes = self.bytes.saturating_sub(self.title.len() + self.summary.len()) + title.len() + summary.len();
        (self.title, self.summary) = (title.to_owned(), summary.to_owned());
    }

    /// Returns the first message of the thread's user that is still kept.
    pub fn first_words(&self) -> String {
        let words = self.entries().find_map(|entry| match entry {
            ThreadEntry::User { words, .. } => Some(words.in_words()),
            _ => None,
        });
        words.unwrap_or_default()
    }

    /// Returns true if a notice in the thread contains this text.
    pub(super) fn has_notice(&self, told: &str) -> bool {
        self.entries().any(|entry| matches!(entry, ThreadEntry::Notice { text, .. } if text.contains(told)))
    }

    /// Has requests list tools that were found. One that is listed stays in its place, so that what stands before it is the same.
    pub(super) fn list_found_tools<'n>(&mut self, names: impl Iterator<Item = &'n str>) {
        for name in names {
            if !self.found.iter().any(|found| **found == *name) {
                self.found.push_back(name.into());
            }
        }
        let excess = self.found.len().saturating_sub(FOUND_TOOLS);
        self.found.drain(..excess);
    }

    /// Remembers an event for what is later written to memory.
    pub(super) fn remember_event(&mut self, event_id: &str) {
        self.fresh.push_back(event_id.into());
        self.bytes += event_id.len();
        if self.fresh.len() > FRESH {
            self.bytes = self.bytes.saturating_sub(self.fresh.pop_front().map_or(0, |oldest| oldest.len()));
        }
    }

    /// Calls of one decision are one entry, with the words said before them, as models expect it.
    pub(super) fn push_call(
        &mut self,
        sequence: u64,
        turn: Uuid,
        call: ThreadCall,
        with: AnswerFields<'_>,
        keeping: EntryRetention,
    ) {
        let same_decision = self.touched == sequence;
        let called = |text: String, call: ThreadCall| ThreadEntry::Called {
            turn,
            text,
            calls: vec![call],
            reasoning_details: with.reasoning_details.to_owned(),
            passed_back: with.passed_back.to_owned(),
        };
        match self.entries.back_mut().map(|entry| &mut **entry) {
            Some(ThreadEntry::Called { turn: of, calls, .. }) if same_decision && *of == turn => calls.push(call),
            Some(ThreadEntry::Said { turn: of, text }) if same_decision && *of == turn => {
                let text = std::mem::take(text);
                self.entries.pop_back();
                self.times.pop_back();
                self.news = self.news.saturating_sub(1);
                self.push(sequence, called(text, call), keeping);
            }
            _ => self.push(sequence, called(String::new(), call), keeping),
        }
    }

    /// Notes how a call ended.
    pub(super) fn end_call(
        &mut self,
        sequence: u64,
        action: Uuid,
        result: &str,
        parts: &[Part],
        keeping: EntryRetention,
    ) {
        self.touched = sequence;
        let is_of = |entry: &ThreadEntry| matches!(entry, ThreadEntry::Called { calls, .. } if calls.iter().any(|call| call.action == action));
        // Only the entry that is changed is copied.
        let entry = self.entries.iter_mut().rev().find(|entry| is_of(entry));
        let calls = match entry.map(|entry| &mut **entry) {
            Some(ThreadEntry::Called { calls, .. }) => calls.iter_mut().find(|call| call.action == action),
            _ => None,
        };
        if let Some(call) = calls {
            call.result = Some(cut_to_entry(result));
            call.parts = parts.iter().take(RESULT_PARTS).cloned().collect();
        }
        self.trim(keeping);
    }

    /// The call that is this action.
    pub fn find_call(&self, action: Uuid) -> Option<&ThreadCall> {
        self.entries().rev().find_map(|entry| match entry {
            ThreadEntry::Called { calls, .. } => calls.iter().find(|call| call.action == action),
            ThreadEntry::User { .. }
            | ThreadEntry::Said { .. }
            | ThreadEntry::Client { .. }
            | ThreadEntry::Notice { .. } => None,
        })
    }

    /// Returns the entries of a turn, oldest first, after a summary of earlier ones. User messages and the notice that
    /// began the turn are left out.
    pub(super) fn history_of(&self, turn: Uuid, told: &str) -> impl DoubleEndedIterator<Item = &ThreadEntry> {
        self.entries().filter(move |entry| match entry {
            ThreadEntry::User { .. } => false,
            ThreadEntry::Notice { turn: of, text } => entry.is_summary() || *of == turn && !text.starts_with(told),
            ThreadEntry::Said { turn: of, .. }
            | ThreadEntry::Called { turn: of, .. }
            | ThreadEntry::Client { turn: of, .. } => *of == turn,
        })
    }

    /// Takes out what belongs to a turn that goes on as another one.
    pub(super) fn remove_turn(&mut self, turn: Uuid) {
        let untimed = self.entries.len() - self.times.len();
        let is_kept: Vec<bool> = self.entries().map(|entry| entry.turn() != turn).collect();
        let mut at = untimed;
        self.times.retain(|_| {
            at += 1;
            is_kept.get(at - 1).copied().unwrap_or(true)
        });
        self.entries.retain(|entry| entry.turn() != turn);
    }

    /// Returns true if the oldest entries are about to be dropped.
    pub fn is_nearly_full(&self, limit: usize) -> bool {
        let nearly = |is: usize, most: usize| is * 4 > most * 3;
        nearly(self.bytes, THREAD_BYTES) || limit >= SUMMED_UP && nearly(self.entries.len(), limit)
    }

    /// Returns the number of oldest entries after which the rest takes about a quarter of the room, entries of `open`
    /// turns aside; `None` if that would be hardly any.
    pub(super) fn compactable_entries(&self, open: &BTreeSet<Uuid>) -> Option<usize> {
        let (all, most) = (self.entries().map(ThreadEntry::bytes).sum::<usize>(), self.entries.len().saturating_sub(1));
        let (mut kept, mut number) = (0, 0);
        for entry in self.entries().rev() {
            kept += entry.bytes();
            if kept * 4 > all || (number + 1) * 4 > self.entries.len() {
                break;
            }
            number += 1;
        }
        let oldest = (self.entries.len() - number).min(most);
        let closed = self.entries().take(oldest).filter(|entry| !entry.is_open(open)).count();
        (closed > 1).then_some(oldest)
    }

    /// Puts a summary in the place of so many of the oldest entries, but for what is open.
    pub(super) fn compact(&mut self, entries: u32, summary: &str, open: &BTreeSet<Uuid>) {
        let end = usize::try_from(entries).unwrap_or(usize::MAX).min(self.entries.len());
        let mut oldest: Vec<_> = self.entries.drain(..end).collect();
        let timed = self.times.len().saturating_sub(self.entries.len());
        self.times.drain(..timed);
        oldest.retain(|entry| entry.is_open(open));
        oldest.into_iter().rev().for_each(|entry| self.entries.push_front(entry));
        let text = cut_to_entry(&format!("{SUMMARIZED}\n{summary}"));
        self.entries.push_front(ThreadEntry::Notice { turn: Uuid::nil(), text }.into());
        self.trim(EntryRetention { limit: usize::MAX, now: None, in_steps: false });
    }

    /// Drops the oldest entries above the limits, always keeping the newest.
    fn trim(&mut self, keeping: EntryRetention) {
        let mut bytes: usize = self.entries().map(ThreadEntry::bytes).sum();
        let (mut limit, mut most) = (keeping.limit, THREAD_BYTES);
        if keeping.in_steps && (self.entries.len() > limit || bytes > most) {
            limit -= if limit >= SUMMED_UP { limit / 4 } else { 0 };
            most -= most / 4;
        }
        while self.entries.len() > 1 && (self.entries.len() > limit || bytes > most) {
            bytes -= self.entries.pop_front().map_or(0, |entry| entry.bytes());
        }
        let timed = self.times.len().saturating_sub(self.entries.len());
        self.times.drain(..timed);
        let words = self.title.len() + self.summary.len() + self.analysis.len();
        self.bytes = bytes + words + self.fresh.iter().map(|event| event.len()).sum::<usize>();
    }
}
