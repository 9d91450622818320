//! The tool catalogue in force.

use std::sync::{Arc, Mutex, PoisonError};

use kairo_core::{
    bus::{Bus, BusError, subject_follower::NewestRecord},
    ids::Name,
    record::Record,
    subjects::{CATALOGUE, Service},
};
use kairo_mind::request::{Catalogue, Tool};
use kairo_proto::{Body, v1::ToolCatalogue};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub struct CatalogueInForce {
    newest: NewestRecord,
    seen: watch::Receiver<Option<Record>>,
    /// The one read last, and where in the log it stands: it changes rarely and is asked for at every decision.
    read: Mutex<(u64, Arc<Catalogue>)>,
}

impl CatalogueInForce {
    /// Follows tool-runner's catalogue until `shutdown`.
    pub fn follow(bus: &Bus, shutdown: CancellationToken) -> Self {
        let subject =
            Name::parse(Service::ToolRunner.name()).map(|owner| CATALOGUE.of_owner(&owner)).unwrap_or_default();
        let newest = NewestRecord::follow(bus, subject, shutdown);
        Self { seen: newest.changes(), newest, read: Mutex::default() }
    }

    /// The catalogue; an empty one while tool-runner has never published any.
    pub async fn current(&self) -> Result<Arc<Catalogue>, BusError> {
        let newest = self.seen.borrow().as_ref().map(|record| record.sequence);
        if let Some(read) = self.cached_catalogue(newest) {
            return Ok(read);
        }
        let Some(record) = self.newest.current().await? else { return Ok(Arc::default()) };
        let Body::ToolCatalogue(catalogue) = record.body else { return Ok(Arc::default()) };
        let catalogue = Arc::new(to_catalogue(catalogue));
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = (record.sequence, catalogue.clone());
        Ok(catalogue)
    }

    fn cached_catalogue(&self, sequence: Option<u64>) -> Option<Arc<Catalogue>> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        (Some(read.0) == sequence).then(|| read.1.clone())
    }
}

fn to_catalogue(catalogue: ToolCatalogue) -> Catalogue {
    Catalogue { version: catalogue.version, tools: catalogue.tools.into_iter().map(Tool::from).collect() }
}
