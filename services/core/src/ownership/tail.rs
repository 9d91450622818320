//! Reads one partition of the log in order, as it grows.
//!
//! It keeps the position of the last message read, and resumes from there after every error.

use tokio::sync::mpsc;

use super::pause;
use crate::{
    bus::{
        Bus,
        port::{Cause, Start},
    },
    record::Raw,
};

/// An item of a tail.
#[derive(Debug)]
pub enum Tailed {
    /// Reading began, or began again, or the log lost messages that were pending: so many are still to come.
    Began { pending: u64 },
    /// Messages in the order of the log.
    Messages(Vec<Raw>),
}

/// Batches that wait to be taken, at most. A replica has a tail for each of its partitions, and each holds what it has pulled, too.
const BATCHES: usize = 2;

/// Follows what one of the filters names behind the message at `after`. It ends when the receiver is dropped.
pub fn follow(bus: &Bus, filters: Vec<String>, after: u64) -> mpsc::Receiver<Tailed> {
    let (sender, receiver) = mpsc::channel(BATCHES);
    let mut tail = Tail { bus: bus.clone(), filters, after, sender };
    bus.spawn(async move {
        let closed = tail.sender.clone();
        tokio::select! {
            biased;
            () = closed.closed() => {}
            () = tail.read_on() => {}
        }
    });
    receiver
}

struct Tail {
    bus: Bus,
    filters: Vec<String>,
    /// The last message handed over.
    after: u64,
    sender: mpsc::Sender<Tailed>,
}

impl Tail {
    async fn read_on(&mut self) {
        let mut failures = 0;
        loop {
            let from = self.after;
            if let Err(error) = self.read().await {
                tracing::debug!(filters = ?self.filters, after = self.after, %error, "reading a partition broke off");
            }
            failures = if self.after > from { 1 } else { failures + 1 };
            tokio::time::sleep(pause(&self.bus, failures)).await;
        }
    }

    async fn read(&mut self) -> Result<(), Cause> {
        let mut tail = self.bus.tail_of(&self.filters, Start::After(self.after)).await?;
        self.sender.send(Tailed::Began { pending: tail.pending() }).await?;
        loop {
            let messages = tail.next().await?;
            if messages.is_empty() {
                self.sender.send(Tailed::Began { pending: tail.pending() }).await?;
                continue;
            }
            let last = messages.last().map_or(self.after, |raw| raw.sequence);
            self.sender.send(Tailed::Messages(messages)).await?;
            self.after = last;
        }
    }
}
