//! Parts that two states have in common, kept once until one of them changes.
//!
//! A state is copied for every decision: effects of observing an input must not show until they stand in the log. Most
//! of a state does not change then, so a copy takes a few reference counts.

use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

/// Copied when it is changed, if anybody else has it. It reads and is stored like what it holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Shared<T>(Arc<T>);

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T> From<T> for Shared<T> {
    fn from(value: T) -> Self {
        Self(Arc::new(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_not_seen_by_those_who_share() {
        let before = Shared::from(vec![1]);
        let mut after = before.clone();
        assert!(Arc::ptr_eq(&before.0, &after.0));
        after.push(2);
        assert_eq!((before.as_slice(), after.as_slice()), ([1].as_slice(), [1, 2].as_slice()));
        assert_eq!(serde_json::to_string(&after).unwrap(), "[1,2]");
    }
}
