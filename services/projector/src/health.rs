//! Readiness of a replica.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, Once, PoisonError},
};

use kairo_core::service::Readiness;
use tokio::sync::watch;

/// Ready while there is a live generation of this version, the registry can be read, and the work on the live one goes
/// on: standing by is as good as writing, so that a deployment may go on to the next replica.
#[derive(Clone)]
pub struct ProjectionHealth {
    readiness: Readiness,
    announced: Arc<Once>,
    ready: watch::Sender<bool>,
    known: Arc<Mutex<ReadinessFacts>>,
}

#[derive(Default)]
struct ReadinessFacts {
    /// None while the registry cannot be read, or where nothing is live.
    live: Option<i64>,
    /// The generations that the work on was interrupted of.
    interrupted: BTreeSet<i64>,
}

impl ProjectionHealth {
    pub fn new(readiness: &Readiness) -> Self {
        Self {
            readiness: readiness.clone(),
            announced: Arc::new(Once::new()),
            ready: watch::Sender::new(false),
            known: Arc::default(),
        }
    }

    /// Returns when it is ready, if it is not yet.
    pub async fn wait_until_ready(&self) {
        // Whoever sets it is this.
        let _ = self.ready.subscribe().wait_for(|ready| *ready).await;
    }

    /// The live generation, as far as that is known.
    pub fn set_live_generation(&self, generation: Option<i64>) {
        self.update_state(|known| known.live = generation);
    }

    pub fn mark_working(&self, generation: i64) {
        self.update_state(|known| _ = known.interrupted.remove(&generation));
    }

    pub fn mark_interrupted(&self, generation: i64) {
        self.update_state(|known| _ = known.interrupted.insert(generation));
    }

    fn update_state(&self, change: impl FnOnce(&mut ReadinessFacts)) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut known);
        let ready = known.live.is_some_and(|live| !known.interrupted.contains(&live));
        if ready {
            self.announced.call_once(|| self.readiness.announce_ready(""));
        }
        self.readiness.set_ready(ready);
        self.ready.send_replace(ready);
    }
}
