//! The events of a fork, kept in the form clients receive, so that a client that reconnects gets the same ones.
//! Pure, except for waiting.

use serde::Serialize;
use tokio::sync::watch;

/// Something that is told; its place is that in the list, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkHistoryEntry {
    /// The name of what happened.
    pub name: &'static str,
    /// JSON.
    pub data: String,
}

#[derive(Debug, Default)]
pub struct HistoryState {
    entries: Vec<ForkHistoryEntry>,
    bytes: usize,
    /// Nothing is told any more.
    is_over: bool,
}

/// A handle that appends entries and reads them back. Clones share the same list.
#[derive(Clone, Debug)]
pub struct ForkHistory {
    told: watch::Sender<HistoryState>,
    most: usize,
}

/// The entries after a place in the list, or its end.
#[derive(Debug, PartialEq, Eq)]
pub enum HistoryPage {
    Entries(Vec<ForkHistoryEntry>),
    /// Nothing more will come.
    Over,
}

/// Entries that are handed out at once.
const AT_ONCE: usize = 64;

impl ForkHistory {
    /// Creates an empty list of entries that keeps at most `most` bytes.
    pub fn new(most: usize) -> Self {
        Self { told: watch::Sender::new(HistoryState::default()), most }
    }

    /// Tells something, if there is room for it.
    pub fn append(&self, name: &'static str, data: &impl Serialize) {
        let data = serde_json::to_string(data).unwrap_or_default();
        self.told.send_if_modified(|told| {
            let is_taken = !told.is_over && told.bytes + data.len() <= self.most;
            // What is not told counts all the same, so that it is seen to be full.
            told.bytes = told.bytes.saturating_add(data.len());
            if is_taken {
                told.entries.push(ForkHistoryEntry { name, data });
            }
            is_taken
        });
    }

    /// Returns the bytes passed to [`Self::append`] so far, including entries left out for lack of room.
    pub fn bytes(&self) -> usize {
        self.told.borrow().bytes
    }

    /// Returns true if an entry was left out for lack of room.
    pub fn is_full(&self) -> bool {
        self.bytes() > self.most
    }

    /// Tells the last thing, for which there is always room.
    pub fn close(&self, name: &'static str, data: &impl Serialize) {
        let data = serde_json::to_string(data).unwrap_or_default();
        self.told.send_modify(|told| {
            told.entries.push(ForkHistoryEntry { name, data });
            told.is_over = true;
        });
    }

    /// Waits until nothing is told any more.
    pub async fn wait_until_closed(&self) {
        drop(self.told.subscribe().wait_for(|told| told.is_over).await);
    }

    /// Returns up to `AT_ONCE` entries after a place, waiting until there is one or the list is over.
    pub async fn entries_after(&self, place: usize) -> HistoryPage {
        let mut heard = self.told.subscribe();
        let found = heard.wait_for(|told| told.is_over || told.entries.len() > place).await;
        let Ok(told) = found else { return HistoryPage::Over };
        let entries: Vec<ForkHistoryEntry> = told.entries.iter().skip(place).take(AT_ONCE).cloned().collect();
        if entries.is_empty() { HistoryPage::Over } else { HistoryPage::Entries(entries) }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn data(behind: HistoryPage) -> Vec<String> {
        match behind {
            HistoryPage::Entries(entries) => entries.into_iter().map(|entry| entry.data).collect(),
            HistoryPage::Over => Vec::new(),
        }
    }

    #[tokio::test]
    async fn who_comes_back_is_told_what_is_behind_and_nothing_twice() {
        let telling = ForkHistory::new(100);
        (1..4).for_each(|number| telling.append("said", &number));
        assert_eq!(data(telling.entries_after(0).await), ["1", "2", "3"]);
        assert_eq!(data(telling.entries_after(2).await), ["3"]);
        let mut waits = Box::pin(telling.entries_after(3));
        assert!(waits.as_mut().now_or_never().is_none());
        telling.close("ended", &"so");
        assert_eq!(data(waits.await), ["\"so\""]);
        assert_eq!(telling.entries_after(4).await, HistoryPage::Over);
        assert_eq!(telling.entries_after(400).await, HistoryPage::Over);
    }

    #[tokio::test]
    async fn what_is_too_much_is_not_kept_and_the_end_is_told_all_the_same() {
        let telling = ForkHistory::new(5);
        telling.append("said", &"abc");
        assert!(!telling.is_full());
        telling.append("said", &"d");
        assert!(telling.is_full());
        telling.close("ended", &"full");
        telling.append("said", &"e");
        assert_eq!(data(telling.entries_after(0).await), ["\"abc\"", "\"full\""]);
    }
}
