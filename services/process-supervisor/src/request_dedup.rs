//! Doing what is asked once, however often it is asked.

use std::collections::{HashSet, VecDeque};

use uuid::Uuid;

/// Requests remembered of one process.
const REMEMBERED: usize = 1_024;

/// The requests that were carried out, the newest of them.
#[derive(Debug, Default)]
pub struct RequestDedup {
    done: HashSet<Uuid>,
    order: VecDeque<Uuid>,
}

impl RequestDedup {
    /// Takes a request on; false when that was done before.
    pub fn try_begin(&mut self, request: Uuid) -> bool {
        let new = self.done.insert(request);
        if new {
            self.order.push_back(request);
        }
        while self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.done.remove(&oldest);
        }
        new
    }

    /// A request that could not be carried out: it may be tried again.
    pub fn forget(&mut self, request: Uuid) {
        if self.done.remove(&request) {
            self.order.retain(|done| *done != request);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_begun_once_unless_it_failed() {
        let mut once = RequestDedup::default();
        let request = Uuid::from_u128(1);
        assert!(once.try_begin(request));
        assert!(!once.try_begin(request));
        once.forget(request);
        assert!(once.try_begin(request));
    }

    #[test]
    fn the_newest_are_remembered() {
        let mut once = RequestDedup::default();
        for number in 0..=REMEMBERED as u128 {
            assert!(once.try_begin(Uuid::from_u128(number)));
        }
        assert!(!once.try_begin(Uuid::from_u128(1)));
        assert!(once.try_begin(Uuid::from_u128(0)), "forgotten");
        assert_eq!((once.done.len(), once.order.len()), (REMEMBERED, REMEMBERED));
    }
}
