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
pub struct Health {
    readiness: Readiness,
    announced: Arc<Once>,
    ready: watch::Sender<bool>,
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    /// None while the registry cannot be read, or where nothing is live.
    live: Option<i64>,
    /// The generations that the work on was interrupted of.
    interrupted: BTreeSet<i64>,
}

impl Health {
    pub fn new(readiness: &Readiness) -> Self {
        Self {
            readiness: readiness.clone(),
            announced: Arc::new(Once::new()),
            ready: watch::Sender::new(false),
            known: Arc::default(),
        }
    }

    /// Returns when it is ready, if it is not yet.
    pub async fn is_ready(&self) {
        // Whoever sets it is this.
        let _ = self.ready.subscribe().wait_for(|ready| *ready).await;
    }

    /// The live generation, as far as that is known.
    pub fn live(&self, generation: Option<i64>) {
        self.learn(|known| known.live = generation);
    }

    pub fn working(&self, generation: i64) {
        self.learn(|known| _ = known.interrupted.remove(&generation));
    }

    pub fn interrupted(&self, generation: i64) {
        self.learn(|known| _ = known.interrupted.insert(generation));
    }

    fn learn(&self, change: impl FnOnce(&mut Known)) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut known);
        let ready = known.live.is_some_and(|live| !known.interrupted.contains(&live));
        if ready {
            self.announced.call_once(|| self.readiness.announce(""));
        }
        self.readiness.set(ready);
        self.ready.send_replace(ready);
    }
}
