//! The catalogue that agents see: this runner's tools and what the process supervisors can run, published when it
//! changes. Tools that look after processes are offered only while something can be run.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kairo_core::{
    bus::{Bus, BusError, append::Outgoing, follow::Newest},
    envelope::{Envelope, Origin},
    ids::Name,
    record::Record,
    subjects::{CAPABILITIES, CATALOGUE, Service},
};
use kairo_proto::v1::{self, ProcessCapabilities, ToolCatalogue};
use tokio_util::sync::CancellationToken;

use crate::{
    catalogue::{Catalogue, CatalogueLimits, Rejection},
    consent::Consent,
    tool::{Executor, ToolSpec},
    toolbox::Toolbox,
};

pub struct Offer {
    bus: Bus,
    toolbox: Arc<Toolbox>,
    limits: CatalogueLimits,
    consent: Consent,
    supervisors: Newest,
    current: Mutex<Arc<Catalogue>>,
}

/// How the names of tools begin that are about processes.
const OF_PROCESSES: &str = "process.";
/// Replicas may publish at the same time; whoever comes later looks again.
const RACES: u32 = 16;

impl Offer {
    pub fn new(
        bus: &Bus,
        toolbox: Arc<Toolbox>,
        limits: CatalogueLimits,
        consent: Consent,
        shutdown: CancellationToken,
    ) -> Self {
        let supervisors = Newest::follow(bus, subject(&CAPABILITIES, Service::ProcessSupervisor), shutdown);
        let (empty, _) = Catalogue::build([], limits);
        Self { bus: bus.clone(), toolbox, limits, consent, supervisors, current: Mutex::new(Arc::new(empty)) }
    }

    /// What is known of a tool. One that is not known here may have come up just now, and another replica told agents
    /// of it: then the log knows.
    pub async fn find(&self, tool: &str) -> Result<Option<ToolSpec>, BusError> {
        if let Some(known) = self.known(tool) {
            return Ok(Some(known));
        }
        let catalogue = self.assemble().await?;
        self.put_in_force(catalogue);
        Ok(self.known(tool))
    }

    fn known(&self, tool: &str) -> Option<ToolSpec> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).get(tool).cloned()
    }

    fn put_in_force(&self, catalogue: Catalogue) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(catalogue);
    }

    /// Publishes the catalogue whenever the tools change, until `shutdown`.
    pub async fn keep_published(&self, shutdown: CancellationToken) {
        let mut own = self.toolbox.watch();
        let mut supervisors = self.supervisors.changes();
        // What changed between the last publication and now would go unnoticed.
        supervisors.mark_changed();
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                changed = own.changed() => if changed.is_err() { return },
                changed = supervisors.changed() => if changed.is_err() { return },
            }
            while let Err(error) = self.publish().await {
                tracing::warn!(%error, "tool catalogue not published yet");
                tokio::time::sleep(Duration::from_millis(self.bus.limits.retry_longest_ms)).await;
            }
        }
    }

    /// Puts the tools together, and publishes them if they are not what was published last.
    pub async fn publish(&self) -> Result<(), BusError> {
        let catalogue = self.assemble().await?;
        let message = message(&catalogue);
        self.put_in_force(catalogue);
        let Ok(owner) = Name::parse(Service::ToolRunner.name()) else { return Ok(()) };
        for _ in 0..RACES {
            let last = self.bus.last(&CATALOGUE.of(&owner)).await?;
            let sequence = last.as_ref().map_or(0, |last| last.sequence);
            let published = last.and_then(|raw| raw.read(self.bus.limits.max_body_bytes).ok());
            if version(published.as_ref()) == Some(message.version.as_str()) {
                return Ok(());
            }
            let envelope = Envelope::entering(self.bus.new_id(), Service::ToolRunner, Origin::System, self.bus.now());
            let event = Outgoing::new(&CATALOGUE, &owner, envelope, message.clone());
            match self.bus.append(&event, sequence).await {
                Ok(_) => {
                    tracing::info!(version = message.version, tools = message.tools.len(), "tool catalogue published");
                    return Ok(());
                }
                Err(BusError::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn assemble(&self) -> Result<Catalogue, BusError> {
        let own = self.toolbox.catalogue();
        let supervised = self.supervisors.read().await?;
        let supervised = supervised.and_then(|record| ProcessCapabilities::try_from(record.body).ok());
        let supervised = supervised.map(|capabilities| capabilities.tools).unwrap_or_default();
        let supervised: Vec<ToolSpec> = supervised.into_iter().filter_map(spec).collect();
        let specs = on_offer(own.specs().cloned(), supervised).map(|spec| self.consent.applied_to(spec));
        let (catalogue, rejections) = Catalogue::build(specs, self.limits);
        for Rejection { name, reason } in rejections {
            tracing::warn!(name, reason, "tool left out");
        }
        Ok(catalogue)
    }
}

fn subject(row: &kairo_core::subjects::Route, service: Service) -> String {
    Name::parse(service.name()).map(|owner| row.of(&owner)).unwrap_or_default()
}

fn version(published: Option<&Record>) -> Option<&str> {
    Some(&ToolCatalogue::of(&published?.body)?.version)
}

fn message(catalogue: &Catalogue) -> ToolCatalogue {
    let tool = |spec: &ToolSpec| v1::ToolSpec {
        name: spec.name.clone(),
        description: spec.description.clone(),
        schema: spec.schema.to_string(),
        idempotent: spec.idempotent,
        timeout_ms: u64::try_from(spec.timeout.as_millis()).unwrap_or(u64::MAX),
        executor: spec.executor.as_str().to_owned(),
        needs_approval: spec.needs_approval,
        needs_approval_with: spec.needs_approval_with.clone(),
    };
    ToolCatalogue { version: catalogue.version().to_string(), tools: catalogue.specs().map(tool).collect() }
}

/// Our tools and those of the supervisors, without those that would have no processes to look after.
fn on_offer(own: impl Iterator<Item = ToolSpec>, supervised: Vec<ToolSpec>) -> impl Iterator<Item = ToolSpec> {
    let processes = !supervised.is_empty();
    own.filter(move |spec| processes || !spec.name.starts_with(OF_PROCESSES)).chain(supervised)
}

/// A tool of the process supervisors. One whose schema cannot be read is left out.
fn spec(tool: v1::ToolSpec) -> Option<ToolSpec> {
    Some(ToolSpec {
        schema: serde_json::from_str(&tool.schema).ok()?,
        name: tool.name,
        description: tool.description,
        idempotent: tool.idempotent,
        timeout: Duration::from_millis(tool.timeout_ms),
        executor: Executor::ProcessSupervisor,
        needs_approval: tool.needs_approval,
        needs_approval_with: tool.needs_approval_with,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(own: &[&str], supervised: &[&str]) -> Vec<String> {
        let spec = |name: &&str| ToolSpec {
            name: (*name).to_owned(),
            description: String::new(),
            schema: json!({"type": "object"}),
            idempotent: true,
            timeout: Duration::from_secs(1),
            executor: Executor::ToolRunner,
            needs_approval: false,
            needs_approval_with: Vec::new(),
        };
        on_offer(own.iter().map(spec), supervised.iter().map(spec).collect()).map(|spec| spec.name).collect()
    }

    #[test]
    fn without_processes_there_is_nothing_to_look_after() {
        let own = ["action.cancel", "process.list", "tools.now"];
        assert_eq!(names(&own, &[]), ["action.cancel", "tools.now"]);
        assert_eq!(names(&own, &["process.run"]), ["action.cancel", "process.list", "tools.now", "process.run"]);
    }
}
