//! Counts of the answers of rules with `times`, for each claim.

use std::collections::{HashMap, VecDeque};

use crate::matching::Claim;

/// The number of uses, and the time of the first, in milliseconds.
#[derive(Clone, Copy)]
struct RuleUse {
    count: u32,
    first_ms: u64,
}

/// Counts by rule and conversation. Bounded: beyond the capacity the oldest count is forgotten,
/// so a rule of a long-gone conversation could answer again.
pub struct Counters {
    counts: HashMap<(usize, u64), RuleUse>,
    /// The keys of `counts`, oldest first.
    order: VecDeque<(usize, u64)>,
    capacity: usize,
}

impl Counters {
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { counts: HashMap::new(), order: VecDeque::new(), capacity: capacity.max(1) }
    }

    /// Counts one use at this time, in milliseconds, unless the limit is reached; whether it was counted.
    pub fn claim(&mut self, claim: Claim, now_ms: u64) -> bool {
        let key = (claim.rule, claim.counted_for);
        if let Some(used) = self.counts.get_mut(&key) {
            let in_time = claim.within_ms.is_none_or(|longest| now_ms.saturating_sub(used.first_ms) < longest);
            let free = used.count < claim.limit && in_time;
            used.count += u32::from(free);
            return free;
        }
        if self.order.len() == self.capacity
            && let Some(oldest) = self.order.pop_front()
        {
            self.counts.remove(&oldest);
        }
        self.order.push_back(key);
        self.counts.insert(key, RuleUse { count: 1, first_ms: now_ms });
        claim.limit > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(rule: usize, counted_for: u64) -> Claim {
        Claim { rule, counted_for, limit: 2, within_ms: None }
    }

    #[test]
    fn each_rule_and_conversation_has_its_own_count() {
        let mut counters = Counters::new(8);
        assert!(counters.claim(claim(0, 7), 0));
        assert!(counters.claim(claim(0, 7), 0));
        assert!(!counters.claim(claim(0, 7), 0));
        assert!(counters.claim(claim(0, 8), 0));
        assert!(counters.claim(claim(1, 7), 0));
    }

    #[test]
    fn the_oldest_count_makes_room() {
        let mut counters = Counters::new(1);
        assert!(counters.claim(claim(0, 1), 0) && counters.claim(claim(0, 1), 0));
        assert!(counters.claim(claim(0, 2), 0));
        assert!(counters.claim(claim(0, 1), 0), "it was forgotten");
        assert_eq!(counters.counts.len(), 1);
    }

    #[test]
    fn a_use_ends_with_its_time() {
        let mut counters = Counters::new(8);
        let claim = Claim { within_ms: Some(100), limit: u32::MAX, ..claim(0, 7) };
        assert!(counters.claim(claim, 1_000) && counters.claim(claim, 1_099));
        assert!(!counters.claim(claim, 1_100));
    }
}
