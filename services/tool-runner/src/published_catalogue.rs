//! The catalogue that agents see: this runner's tools and what the process supervisors can run, published when it
//! changes. Tools that look after processes are offered only while something can be run.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kairo_core::{
    bus::{Bus, BusError, append::OutgoingEvent, subject_follower::NewestRecord},
    envelope::{Envelope, Origin},
    ids::Name,
    service::Readiness,
    subjects::{CAPABILITIES, CATALOGUE, Service},
};
use kairo_proto::v1::{self, ProcessCapabilities, ToolCatalogue, WithheldTool};
use tokio_util::sync::CancellationToken;

use crate::{
    approval_rules::ApprovalRules,
    catalogue::{Catalogue, CatalogueLimits, Rejection},
    pins::Pins,
    sources::{Sources, ToolSourceRef},
    tool::{Executor, ToolSpec},
    toolbox::Toolbox,
};

pub struct PublishedCatalogue {
    bus: Bus,
    toolbox: Arc<Toolbox>,
    /// True if the toolbox has process tools that need no supervisor.
    is_whole: bool,
    limits: CatalogueLimits,
    consent: ApprovalRules,
    sources: Sources,
    supervisors: NewestRecord,
    readiness: Readiness,
    current: Mutex<Current>,
}

/// The published catalogue, its pins, and the tools kept out of it.
struct Current {
    catalogue: Arc<Catalogue>,
    pins: Pins,
    /// Server tools withheld because their definition changed, with the reasons.
    withheld: BTreeMap<String, String>,
    /// Tools left out for other reasons.
    rejected: BTreeMap<String, String>,
}

/// Name prefix of process tools.
const OF_PROCESSES: &str = "process.";
/// Most left-out tools reported, and the longest reason, in characters.
const LEFT_OUT: usize = 256;
const REASON_CHARS: usize = 300;
/// Replicas may publish at the same time; whoever comes later looks again.
const RACES: u32 = 16;

impl PublishedCatalogue {
    pub fn new(
        bus: &Bus,
        toolbox: Arc<Toolbox>,
        is_whole: bool,
        limits: CatalogueLimits,
        (consent, sources): (ApprovalRules, Sources),
        readiness: Readiness,
        shutdown: CancellationToken,
    ) -> Self {
        let supervisors = NewestRecord::follow(bus, subject(&CAPABILITIES, Service::ProcessSupervisor), shutdown);
        let (empty, _) = Catalogue::build([], limits);
        let withheld = BTreeMap::new();
        let rejected = BTreeMap::new();
        let current = Current { catalogue: Arc::new(empty), pins: Pins::default(), withheld, rejected };
        let bus = bus.clone();
        let current = Mutex::new(current);
        Self { bus, toolbox, is_whole, limits, consent, sources, supervisors, readiness, current }
    }

    /// Returns the specification of a tool. An unknown tool may be new and already offered to agents by another
    /// replica, so the catalogue is assembled again from the log.
    pub async fn find(&self, tool: &str) -> Result<Option<ToolSpec>, BusError> {
        if let Some(known) = self.find_assembled(tool) {
            return Ok(Some(known));
        }
        let pins = self.lock_current().pins.clone();
        let assembled = self.assemble(pins).await?;
        self.put_in_force(assembled);
        Ok(self.find_assembled(tool))
    }

    fn find_assembled(&self, tool: &str) -> Option<ToolSpec> {
        self.lock_current().catalogue.get(tool).cloned()
    }

    /// Returns the reason an existing tool is not offered.
    pub fn withheld_reason(&self, tool: &str) -> Option<String> {
        self.lock_current().withheld.get(tool).cloned()
    }

    /// Returns the tools that are not offered, with the reasons.
    pub fn all_withheld(&self) -> BTreeMap<String, String> {
        self.lock_current().all_withheld()
    }

    /// Returns the number of offered tools whose names begin with `prefix`.
    pub fn count_with_prefix(&self, prefix: &str) -> u32 {
        let catalogue = Arc::clone(&self.lock_current().catalogue);
        let number = catalogue.specs().filter(|spec| spec.name.starts_with(prefix)).count();
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    fn lock_current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put_in_force(&self, assembled: Current) {
        self.readiness.set_notes("tools", assembled.withheld.values().cloned().collect());
        *self.lock_current() = assembled;
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

    /// Puts the tools together for whoever calls them here, and publishes nothing: agents know them already.
    pub async fn assemble_unpublished(&self) -> Result<(), BusError> {
        let assembled = self.assemble(Pins::default()).await?;
        self.put_in_force(assembled);
        Ok(())
    }

    /// Puts the tools together, and publishes them if they are not what was published last.
    pub async fn publish(&self) -> Result<(), BusError> {
        let Ok(owner) = Name::parse(Service::ToolRunner.name()) else { return Ok(()) };
        for _ in 0..RACES {
            let last = self.bus.last_message(&CATALOGUE.of_owner(&owner)).await?;
            let sequence = last.as_ref().map_or(0, |last| last.sequence);
            let published = last.and_then(|raw| raw.read(self.bus.limits.max_body_bytes).ok());
            let published = published.as_ref().and_then(|record| ToolCatalogue::of(&record.body));
            let assembled = self.assemble(published.map(Pins::of).unwrap_or_default()).await?;
            let message = self.message(&assembled);
            self.put_in_force(assembled);
            if published.is_some_and(|published| *published == message) {
                return Ok(());
            }
            let envelope =
                Envelope::from_outside(self.bus.new_id(), Service::ToolRunner, Origin::System, self.bus.now());
            let event = OutgoingEvent::new(&CATALOGUE, &owner, envelope, message.clone());
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

    async fn assemble(&self, mut pins: Pins) -> Result<Current, BusError> {
        let own = self.toolbox.catalogue();
        let supervised = self.supervisors.read_newest().await?;
        let supervised = supervised.and_then(|record| ProcessCapabilities::try_from(record.body).ok());
        let supervised = supervised.map(|capabilities| capabilities.tools).unwrap_or_default();
        let told = |tool| ToolSpec::from_message(tool, Executor::ProcessSupervisor);
        let supervised: Vec<ToolSpec> = supervised.into_iter().filter_map(told).collect();
        let has_processes = self.is_whole || !supervised.is_empty();
        let mut withheld = BTreeMap::new();
        let admitted = |spec: &ToolSpec| match pins.admit(spec) {
            Ok(()) => true,
            Err(why) => {
                withheld.insert(spec.name.clone(), why);
                false
            }
        };
        let specs = merge_specs(own.specs().cloned(), supervised, has_processes).filter(admitted);
        let specs: Vec<ToolSpec> = specs.map(|spec| self.consent.applied_to(spec)).collect();
        let (catalogue, rejections) = Catalogue::build(specs, self.limits);
        for Rejection { name, reason } in &rejections {
            tracing::warn!(name, reason, "tool left out");
        }
        withheld.values().for_each(|why| tracing::warn!("{why}"));
        let rejected = self.toolbox.rejections().into_iter().chain(rejections);
        // One of two tools with this name is there.
        let rejected = rejected.filter(|rejection| catalogue.get(&rejection.name).is_none());
        let rejected = rejected.map(|rejection| (rejection.name, rejection.reason)).collect();
        Ok(Current { catalogue: Arc::new(catalogue), pins, withheld, rejected })
    }

    fn message(&self, current: &Current) -> ToolCatalogue {
        let shortened = |reason: &str| reason.chars().take(REASON_CHARS).collect();
        let withheld = current.all_withheld().into_iter().take(LEFT_OUT);
        ToolCatalogue {
            version: current.catalogue.version().to_string(),
            tools: current.catalogue.specs().map(|spec| to_proto_spec(spec, self.sources.source(spec))).collect(),
            pins: current.pins.to_messages(),
            withheld: withheld.map(|(name, reason)| WithheldTool { name, reason: shortened(&reason) }).collect(),
        }
    }
}

impl Current {
    fn all_withheld(&self) -> BTreeMap<String, String> {
        self.rejected.iter().chain(&self.withheld).map(|(name, reason)| (name.clone(), reason.clone())).collect()
    }
}

fn subject(row: &kairo_core::subjects::Route, service: Service) -> String {
    Name::parse(service.name()).map(|owner| row.of_owner(&owner)).unwrap_or_default()
}

fn to_proto_spec(spec: &ToolSpec, source: ToolSourceRef) -> v1::ToolSpec {
    v1::ToolSpec {
        name: spec.name.clone(),
        description: spec.description.clone(),
        schema: spec.schema.to_string(),
        idempotent: spec.idempotent,
        timeout_ms: u64::try_from(spec.timeout.as_millis()).unwrap_or(u64::MAX),
        executor: spec.executor.as_str().to_owned(),
        needs_approval: spec.needs_approval,
        needs_approval_with: spec.needs_approval_with.clone(),
        acts_outside: spec.acts_outside,
        source: source.kind.text(),
        server: source.server,
    }
}

/// Our tools and those of the supervisors, without those that would have no processes to look after.
fn merge_specs(
    own: impl Iterator<Item = ToolSpec>,
    supervised: Vec<ToolSpec>,
    has_processes: bool,
) -> impl Iterator<Item = ToolSpec> {
    own.filter(move |spec| has_processes || !spec.name.starts_with(OF_PROCESSES)).chain(supervised)
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
            acts_outside: false,
            definition: None,
        };
        merge_specs(own.iter().map(spec), supervised.iter().map(spec).collect(), !supervised.is_empty())
            .map(|spec| spec.name)
            .collect()
    }

    #[test]
    fn without_processes_there_is_nothing_to_look_after() {
        let own = ["action.cancel", "process.list", "tools.now"];
        assert_eq!(names(&own, &[]), ["action.cancel", "tools.now"]);
        assert_eq!(names(&own, &["process.run"]), ["action.cancel", "process.list", "tools.now", "process.run"]);
    }
}
