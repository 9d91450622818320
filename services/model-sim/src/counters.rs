//! How often rules with `times` have answered, and whom.

use std::collections::{HashMap, VecDeque};

use crate::matching::Claim;

/// Counts by rule and conversation. Bounded: beyond the capacity the oldest count is forgotten,
/// so a rule of a long-gone conversation could answer again.
pub struct Counters {
    counts: HashMap<(usize, u64), u32>,
    /// The keys of `counts`, oldest first.
    order: VecDeque<(usize, u64)>,
    capacity: usize,
}

impl Counters {
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { counts: HashMap::new(), order: VecDeque::new(), capacity: capacity.max(1) }
    }

    /// Counts one use unless the limit is reached; whether it was counted.
    pub fn claim(&mut self, claim: Claim) -> bool {
        let key = (claim.rule, claim.counted_for);
        if let Some(count) = self.counts.get_mut(&key) {
            let free = *count < claim.limit;
            *count += u32::from(free);
            return free;
        }
        if self.order.len() == self.capacity
            && let Some(oldest) = self.order.pop_front()
        {
            self.counts.remove(&oldest);
        }
        self.order.push_back(key);
        self.counts.insert(key, 1);
        claim.limit > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(rule: usize, counted_for: u64) -> Claim {
        Claim { rule, counted_for, limit: 2 }
    }

    #[test]
    fn each_rule_and_conversation_has_its_own_count() {
        let mut counters = Counters::new(8);
        assert!(counters.claim(claim(0, 7)));
        assert!(counters.claim(claim(0, 7)));
        assert!(!counters.claim(claim(0, 7)));
        assert!(counters.claim(claim(0, 8)));
        assert!(counters.claim(claim(1, 7)));
    }

    #[test]
    fn the_oldest_count_makes_room() {
        let mut counters = Counters::new(1);
        assert!(counters.claim(claim(0, 1)) && counters.claim(claim(0, 1)));
        assert!(counters.claim(claim(0, 2)));
        assert!(counters.claim(claim(0, 1)), "it was forgotten");
        assert_eq!(counters.counts.len(), 1);
    }
}
