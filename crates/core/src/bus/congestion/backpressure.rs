//! Decides which queues to announce as congested or relieved. Pure.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

use super::{Congestion, InputQueue};

/// The interval between announcements while the congestion lasts: several within the lifetime of one.
const AGAIN: Duration = Duration::from_secs(5);

/// The announcements made for the queues of a partition.
#[derive(Debug)]
pub struct BackpressureTracker {
    limit: usize,
    /// Time of the last announcement of each congested queue, and the limit it exceeded.
    said: BTreeMap<InputQueue, (Instant, usize)>,
}

/// A congested queue, the number of messages that wait in it, and its limit.
pub type QueueOverLimit = (InputQueue, usize, usize);

/// The announcement of a queue: its congestion, or `None` once it is relieved.
pub type CongestionChange = (InputQueue, Option<Congestion>);

impl BackpressureTracker {
    /// A queue is congested from more than `limit` messages on until no more than half of it wait.
    pub fn new(limit: usize) -> Self {
        Self { limit, said: BTreeMap::new() }
    }

    /// Returns the limit of a shared queue.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the announcements due now: `over` are the queues over their limits, `waiting` returns the length of any
    /// other.
    pub fn due_announcements(
        &mut self,
        over: impl IntoIterator<Item = QueueOverLimit>,
        waiting: impl Fn(&InputQueue) -> usize,
        now: Instant,
    ) -> Vec<CongestionChange> {
        let mut announcements = Vec::new();
        for (queue, pending, limit) in over {
            let is_due = self.said.get(&queue).is_none_or(|(said, _)| now.duration_since(*said) >= AGAIN);
            if is_due {
                self.said.insert(queue.clone(), (now, limit));
                let congestion = Congestion { pending: pending as u64, limit: limit as u64 };
                announcements.push((queue, Some(congestion)));
            }
        }
        let relieved = self.said.extract_if(.., |queue, (_, limit)| waiting(queue) <= *limit / 2);
        announcements.extend(relieved.map(|(queue, _)| (queue, None)));
        announcements
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Name;

    #[test]
    fn a_queue_is_announced_again_while_it_is_congested_and_withdrawn_at_half() {
        let queue = InputQueue::for_agent(&Name::parse("busy").unwrap());
        let mut pressure = BackpressureTracker::new(10);
        let now = Instant::now();
        let mut look = |waiting: usize, at: Duration| {
            let over = (waiting > 10).then(|| (queue.clone(), waiting, 10));
            let told = pressure.due_announcements(over, |_| waiting, now + at);
            told.into_iter().map(|(_, congestion)| congestion.map(|it| it.pending)).collect::<Vec<_>>()
        };
        assert!(look(10, Duration::ZERO).is_empty());
        assert_eq!(look(11, Duration::ZERO), [Some(11)]);
        assert!(look(12, AGAIN / 2).is_empty());
        assert_eq!(look(12, AGAIN), [Some(12)]);
        assert!(look(6, AGAIN).is_empty());
        assert_eq!(look(5, AGAIN), [None]);
        assert!(look(5, AGAIN).is_empty());
    }
}
