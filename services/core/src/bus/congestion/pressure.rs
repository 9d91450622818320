//! Which queues to announce as congested, and which no longer. Pure.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

use super::{Congestion, Queue};

/// How often it is said again while it lasts: several times within the lifetime of what is said.
const AGAIN: Duration = Duration::from_secs(5);

/// What was said of the queues of a partition.
#[derive(Debug)]
pub struct Pressure {
    limit: usize,
    /// When each was last announced as congested, and from how much on.
    said: BTreeMap<Queue, (Instant, usize)>,
}

/// A queue that is congested: what waits in it, and how much may.
pub type Over = (Queue, usize, usize);

/// What is to be said of a queue: how congested it is, or that it is no longer.
pub type Announcement = (Queue, Option<Congestion>);

impl Pressure {
    /// A queue is congested from more than `limit` messages on until no more than half of it wait.
    pub fn new(limit: usize) -> Self {
        Self { limit, said: BTreeMap::new() }
    }

    /// How much may wait in a queue that is shared.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// What to say now: `over` are the queues over their limits, `waiting` tells what waits in any other.
    pub fn look(
        &mut self,
        over: impl IntoIterator<Item = Over>,
        waiting: impl Fn(&Queue) -> usize,
        now: Instant,
    ) -> Vec<Announcement> {
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
        let queue = Queue::of(&Name::parse("busy").unwrap());
        let (mut pressure, now) = (Pressure::new(10), Instant::now());
        let mut look = |waiting: usize, at: Duration| {
            let over = (waiting > 10).then(|| (queue.clone(), waiting, 10));
            let told = pressure.look(over, |_| waiting, now + at);
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
