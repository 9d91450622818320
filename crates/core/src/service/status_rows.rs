//! Details a replica adds to the common status, read at the time of the request, so they are never stale.

use std::sync::{Arc, OnceLock};

type RowSource<T> = Box<dyn Fn() -> Vec<T> + Send + Sync>;

/// A slot for the function that supplies rows of the status. Empty until it is set.
pub struct StatusRows<T>(Arc<OnceLock<RowSource<T>>>);

impl<T> StatusRows<T> {
    /// Sets the function that supplies the rows. Only the first call counts.
    pub fn set_source(&self, tell: impl Fn() -> Vec<T> + Send + Sync + 'static) {
        let _ = self.0.set(Box::new(tell));
    }

    /// Returns the current rows.
    pub fn current_rows(&self) -> Vec<T> {
        self.0.get().map(|tell| tell()).unwrap_or_default()
    }
}

impl<T> Clone for StatusRows<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for StatusRows<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}
