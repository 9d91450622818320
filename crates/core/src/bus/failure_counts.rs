//! Counts of this replica's failures with each message delivered to one of its consumers.
//!
//! JetStream counts deliveries, and a polite return ("somebody else is at it", "no room here") is one, too: a message that
//! was returned a thousand times has not failed once. So failures are counted here, in memory, by each replica for
//! itself. After a restart the count begins again, which errs on the side of trying: a message becomes a dead letter
//! when one replica failed with it `bus.max_attempts` times, wherever else it was in between.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

/// Failures in a row, by sequence in the stream; of one consumer.
pub struct FailureCounts {
    /// Messages remembered in each of the two generations.
    capacity: usize,
    counts: Mutex<FailureGenerations>,
}

/// The messages that failed lately, and those that failed before them: when the younger generation is full, the older
/// is forgotten. This also forgets messages that another replica has handled since.
#[derive(Default)]
struct FailureGenerations {
    young: HashMap<u64, u64>,
    old: HashMap<u64, u64>,
}

impl FailureCounts {
    /// Remembers at least the `capacity` messages that failed last. No more than `max_ack_pending` can be out at once,
    /// so with that capacity none is forgotten that may still come again.
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), counts: Mutex::default() }
    }

    /// Counts another failure with a message; how many it has now.
    pub fn count_failure(&self, sequence: u64) -> u64 {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let before = counts.take_count(sequence);
        if counts.young.len() >= self.capacity {
            counts.old = std::mem::take(&mut counts.young);
        }
        let failures = before.saturating_add(1);
        counts.young.insert(sequence, failures);
        failures
    }

    /// The message is dealt with.
    pub fn forget(&self, sequence: u64) {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).take_count(sequence);
    }
}

impl FailureGenerations {
    fn take_count(&mut self, sequence: u64) -> u64 {
        let young = self.young.remove(&sequence);
        let old = self.old.remove(&sequence);
        young.or(old).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_until_the_message_is_dealt_with() {
        let failures = FailureCounts::new(10);
        assert_eq!((failures.count_failure(1), failures.count_failure(1), failures.count_failure(2)), (1, 2, 1));
        failures.forget(1);
        assert_eq!((failures.count_failure(1), failures.count_failure(2)), (1, 2));
    }

    #[test]
    fn of_many_messages_the_last_to_fail_are_remembered() {
        let failures = FailureCounts::new(4);
        for sequence in 1..=100 {
            failures.count_failure(sequence);
            // This one fails all the time.
            assert_eq!(failures.count_failure(0), sequence);
        }
        assert_eq!([97, 98, 99, 100].map(|sequence| failures.count_failure(sequence)), [2; 4]);
        assert_eq!(failures.count_failure(1), 1, "forgotten");
        let counts = failures.counts.lock().unwrap();
        assert!(counts.young.len() <= 4 && counts.old.len() <= 4);
    }
}
