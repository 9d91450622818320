//! The message ids an agent has seen, so that the same message again is not another one.

use std::collections::{BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

/// How many are remembered, the oldest forgotten first. A message that comes again after so many others is new.
const REMEMBERED: usize = 4_096;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "VecDeque<String>", into = "VecDeque<String>")]
pub struct Seen {
    order: VecDeque<String>,
    ids: BTreeSet<String>,
}

impl Seen {
    pub fn knows(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// Remembers an id; false when it was known.
    pub fn see(&mut self, id: &str) -> bool {
        if !self.ids.insert(id.to_owned()) {
            return false;
        }
        self.order.push_back(id.to_owned());
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        true
    }
}

impl From<VecDeque<String>> for Seen {
    fn from(order: VecDeque<String>) -> Self {
        Self { ids: order.iter().cloned().collect(), order }
    }
}

impl From<Seen> for VecDeque<String> {
    fn from(seen: Seen) -> Self {
        seen.order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_first_also_after_a_snapshot() {
        let mut seen = Seen::default();
        for id in 0..=REMEMBERED {
            assert!(seen.see(&id.to_string()));
        }
        let saved = serde_json::to_string(&seen).unwrap();
        let mut again: Seen = serde_json::from_str(&saved).unwrap();
        assert_eq!(again, seen);
        assert!(!again.see("1"));
        assert!(again.see("0"));
    }
}
