//! Permission violations reported by NATS, counted: a replica asks only for what it may, so each is a mistake, or a
//! break-in.

use std::sync::{Arc, Mutex, PoisonError};

/// Counted since the replica started. Cloning it is cheap.
#[derive(Clone, Debug, Default)]
pub struct ViolationCounter(Arc<Mutex<ViolationCount>>);

/// The number of violations, and the server's message for the last one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViolationCount {
    pub count: u64,
    pub last: String,
}

impl ViolationCounter {
    pub fn count_violation(&self, said: String) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counted = ViolationCount { count: counted.count.saturating_add(1), last: said };
    }

    pub fn current_count(&self) -> ViolationCount {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
