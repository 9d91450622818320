//! The durable consumers that this replica cannot take part in until `kairo provision` was run.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use crate::subjects::Consumer;

/// The missing consumers, each with its problem in words. Cloning it is cheap.
#[derive(Clone, Debug, Default)]
pub struct Lacking(Arc<Mutex<BTreeMap<Consumer, String>>>);

impl Lacking {
    pub fn missed(&self, consumer: Consumer, problem: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(consumer, problem);
    }

    pub fn found(&self, consumer: Consumer) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&consumer);
    }

    /// One of them.
    pub fn first(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().next().cloned()
    }
}
