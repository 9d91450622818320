//! The tool catalogue in force.

use kairo_core::{
    bus::{Bus, BusError, follow::Newest},
    ids::Name,
    subjects::{CATALOGUE, Service},
};
use kairo_proto::{Body, v1::ToolCatalogue};
use tokio_util::sync::CancellationToken;

use crate::mind::request::{Catalogue, Tool};

pub struct CatalogueInForce {
    newest: Newest,
}

impl CatalogueInForce {
    /// Follows tool-runner's catalogue until `shutdown`.
    pub fn follow(bus: &Bus, shutdown: CancellationToken) -> Self {
        let subject = Name::parse(Service::ToolRunner.name()).map(|owner| CATALOGUE.of(&owner)).unwrap_or_default();
        Self { newest: Newest::follow(bus, subject, shutdown) }
    }

    /// The catalogue; an empty one while tool-runner has never published any.
    pub async fn current(&self) -> Result<Catalogue, BusError> {
        let record = self.newest.current().await?;
        match record.map(|record| record.body) {
            Some(Body::ToolCatalogue(catalogue)) => Ok(read(catalogue)),
            _ => Ok(Catalogue::default()),
        }
    }
}

fn read(catalogue: ToolCatalogue) -> Catalogue {
    let tools = catalogue.tools.into_iter();
    let tools = tools.map(|tool| Tool { name: tool.name, description: tool.description, schema: tool.schema });
    Catalogue { version: catalogue.version, tools: tools.collect() }
}
