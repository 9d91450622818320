//! The message ids an agent has seen, so that the same message again is not another one.

use std::collections::VecDeque;

use kairo_events::ids;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Number of messages remembered, the oldest forgotten first. A message that comes again after so many others is new.
const REMEMBERED: usize = 4_096;

/// Kept as hashes and in a row: a state is copied for decisions, and a copy of this is one stretch of memory, while a look
/// through all of it is rare and takes microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SeenIds {
    order: VecDeque<Uuid>,
}

impl SeenIds {
    pub fn contains(&self, id: &str) -> bool {
        self.order.contains(&hash_id(id))
    }

    /// Remembers an id; false when it was known.
    pub fn insert(&mut self, id: &str) -> bool {
        let id = hash_id(id);
        if self.order.contains(&id) {
            return false;
        }
        self.order.push_back(id);
        if self.order.len() > REMEMBERED {
            self.order.pop_front();
        }
        true
    }
}

fn hash_id(id: &str) -> Uuid {
    ids::from_parts("seen", &[id])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_first_also_after_a_snapshot() {
        let mut seen = SeenIds::default();
        for id in 0..=REMEMBERED {
            assert!(seen.insert(&id.to_string()));
        }
        let saved = serde_json::to_string(&seen).unwrap();
        let mut again: SeenIds = serde_json::from_str(&saved).unwrap();
        assert_eq!(again, seen);
        assert!(!again.insert("1"));
        assert!(again.insert("0"));
    }
}
