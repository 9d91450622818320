//! The events of a fork, kept in the form clients receive, so that a client that reconnects gets the same ones.
//! Pure, except for waiting.

use serde::Serialize;
use tokio::sync::watch;

/// Something that is told; its place is that in the list, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name of what happened.
    pub name: &'static str,
    /// JSON.
    pub data: String,
}

#[derive(Debug, Default)]
pub struct Told {
    entries: Vec<Entry>,
    bytes: usize,
    /// Nothing is told any more.
    is_over: bool,
}

/// A handle that appends entries and reads them back. Clones share the same list.
#[derive(Clone, Debug)]
pub struct Telling {
    told: watch::Sender<Told>,
    most: usize,
}

/// The entries after a place in the list, or its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Behind {
    Entries(Vec<Entry>),
    /// Nothing more will come.
    Over,
}

/// Entries that are handed out at once.
const AT_ONCE: usize = 64;

impl Telling {
    /// Creates an empty list of entries that keeps at most `most` bytes.
    pub fn new(most: usize) -> Self {
        Self { told: watch::Sender::new(Told::default()), most }
    }

    /// Tells something, if there is room for it.
    pub fn tell(&self, name: &'static str, data: &impl Serialize) {
        let data = serde_json::to_string(data).unwrap_or_default();
        self.told.send_if_modified(|told| {
            let is_taken = !told.is_over && told.bytes + data.len() <= self.most;
            // What is not told counts all the same, so that it is seen to be full.
            told.bytes = told.bytes.saturating_add(data.len());
            if is_taken {
                told.entries.push(Entry { name, data });
            }
            is_taken
        });
    }

    /// Returns the bytes passed to [`Self::tell`] so far, including entries left out for lack of room.
    pub fn bytes(&self) -> usize {
        self.told.borrow().bytes
    }

    /// Returns true if an entry was left out for lack of room.
    pub fn is_full(&self) -> bool {
        self.bytes() > self.most
    }

    /// Tells the last thing, for which there is always room.
    pub fn end(&self, name: &'static str, data: &impl Serialize) {
        let data = serde_json::to_string(data).unwrap_or_default();
        self.told.send_modify(|told| {
            told.entries.push(Entry { name, data });
            told.is_over = true;
        });
    }

    /// Waits until nothing is told any more.
    pub async fn over(&self) {
        drop(self.told.subscribe().wait_for(|told| told.is_over).await);
    }

    /// Returns up to `AT_ONCE` entries after a place, waiting until there is one or the list is over.
    pub async fn behind(&self, place: usize) -> Behind {
        let mut heard = self.told.subscribe();
        let found = heard.wait_for(|told| told.is_over || told.entries.len() > place).await;
        let Ok(told) = found else { return Behind::Over };
        let entries: Vec<Entry> = told.entries.iter().skip(place).take(AT_ONCE).cloned().collect();
        if entries.is_empty() { Behind::Over } else { Behind::Entries(entries) }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn data(behind: Behind) -> Vec<String> {
        match behind {
            Behind::Entries(entries) => entries.into_iter().map(|entry| entry.data).collect(),
            Behind::Over => Vec::new(),
        }
    }

    #[tokio::test]
    async fn who_comes_back_is_told_what_is_behind_and_nothing_twice() {
        let telling = Telling::new(100);
        (1..4).for_each(|number| telling.tell("said", &number));
        assert_eq!(data(telling.behind(0).await), ["1", "2", "3"]);
        assert_eq!(data(telling.behind(2).await), ["3"]);
        let mut waits = Box::pin(telling.behind(3));
        assert!(waits.as_mut().now_or_never().is_none());
        telling.end("ended", &"so");
        assert_eq!(data(waits.await), ["\"so\""]);
        assert_eq!(telling.behind(4).await, Behind::Over);
        assert_eq!(telling.behind(400).await, Behind::Over);
    }

    #[tokio::test]
    async fn what_is_too_much_is_not_kept_and_the_end_is_told_all_the_same() {
        let telling = Telling::new(5);
        telling.tell("said", &"abc");
        assert!(!telling.is_full());
        telling.tell("said", &"d");
        assert!(telling.is_full());
        telling.end("ended", &"full");
        telling.tell("said", &"e");
        assert_eq!(data(telling.behind(0).await), ["\"abc\"", "\"full\""]);
    }
}
