//! Reads one partition of the log in order, as it grows.
//!
//! It keeps the position of the last message read, and resumes from there after every error.

use tokio::sync::mpsc;

use super::retry_pause;
use crate::{
    bus::{
        Bus,
        port::{Cause, TailStart},
    },
    record::RawMessage,
};

/// An item of a tail.
#[derive(Debug)]
pub enum TailItem {
    /// Reading began, or began again, or the log lost messages that were pending: so many are still to come.
    Began { pending: u64 },
    /// Messages in the order of the log.
    Messages(Vec<RawMessage>),
}

/// Batches that wait to be taken, at most. A replica has a tail for each of its partitions, and each holds what it has pulled, too.
const BATCHES: usize = 2;

/// Follows what one of the filters names behind the message at `after`. It ends when the receiver is dropped.
pub fn follow(bus: &Bus, filters: Vec<String>, after: u64) -> mpsc::Receiver<TailItem> {
    let (sender, receiver) = mpsc::channel(BATCHES);
    let mut tail = PartitionTail { bus: bus.clone(), filters, after, sender };
    bus.spawn(async move {
        let closed = tail.sender.clone();
        tokio::select! {
            biased;
            () = closed.closed() => {}
            () = tail.send_with_retry() => {}
        }
    });
    receiver
}

struct PartitionTail {
    bus: Bus,
    filters: Vec<String>,
    /// The last message handed over.
    after: u64,
    sender: mpsc::Sender<TailItem>,
}

impl PartitionTail {
    async fn send_with_retry(&mut self) {
        let mut failures = 0;
        loop {
            let from = self.after;
            if let Err(error) = self.send_batches().await {
                tracing::debug!(filters = ?self.filters, after = self.after, %error, "reading a partition broke off");
            }
            failures = if self.after > from { 1 } else { failures + 1 };
            tokio::time::sleep(retry_pause(&self.bus, failures)).await;
        }
    }

    async fn send_batches(&mut self) -> Result<(), Cause> {
        let mut tail = self.bus.tail_filters(&self.filters, TailStart::After(self.after)).await?;
        self.sender.send(TailItem::Began { pending: tail.pending() }).await?;
        loop {
            let messages = tail.next_batch().await?;
            if messages.is_empty() {
                self.sender.send(TailItem::Began { pending: tail.pending() }).await?;
                continue;
            }
            let last = messages.last().map_or(self.after, |raw| raw.sequence);
            self.sender.send(TailItem::Messages(messages)).await?;
            self.after = last;
        }
    }
}
