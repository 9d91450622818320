//! The durable consumers that this replica cannot take part in until `kairo provision` was run.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use crate::subjects::Consumer;

/// The missing consumers, each with its problem in words. Cloning it is cheap.
#[derive(Clone, Debug, Default)]
pub struct MissingConsumers(Arc<Mutex<BTreeMap<Consumer, String>>>);

impl MissingConsumers {
    pub fn mark_missing(&self, consumer: Consumer, problem: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(consumer, problem);
    }

    pub fn mark_found(&self, consumer: Consumer) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&consumer);
    }

    /// One of them.
    pub fn first_problem(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().next().cloned()
    }
}
