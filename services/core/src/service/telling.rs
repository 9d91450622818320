//! What a replica tells of itself in the status besides what all of them tell: asked for when it is told, so it is never old.

use std::sync::{Arc, OnceLock};

type Tell<T> = Box<dyn Fn() -> Vec<T> + Send + Sync>;

/// Where somebody may say how something is told. Nothing is told until then.
pub struct Teller<T>(Arc<OnceLock<Tell<T>>>);

impl<T> Teller<T> {
    /// Says how it is told. Only the first word on it counts.
    pub fn set(&self, tell: impl Fn() -> Vec<T> + Send + Sync + 'static) {
        let _ = self.0.set(Box::new(tell));
    }

    /// What there is to tell now.
    pub fn tell(&self) -> Vec<T> {
        self.0.get().map(|tell| tell()).unwrap_or_default()
    }
}

impl<T> Clone for Teller<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Teller<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}
