//! Tracks the present workers and their tools: receives announcements, sends workers the verdicts, and keeps the tools
//! of each in the registry.
//!
//! The tools of a worker that goes away stay in the catalogue, as those of an MCP server do: calls wait for a while for it
//! to come back. They change when somebody announces other ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use kairo_core::bus::{Bus, BusError, port::LiveMessage, port::LiveSubscription};
use kairo_core::{ids::Name, workers};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use super::config::{WorkerConfig, WorkerLifecycleConfig};
use super::message::{AnnouncedTool, Announcement, AnnouncementVerdict, PROTOCOL, RefusedTool};
use super::presence::Presence;
use super::roster::Roster;
use super::tool::WorkerTool;
use super::worker_call::Caller;
use crate::config::ToolsConfig;
use crate::published_catalogue::PublishedCatalogue;
use crate::tool::Tool;
use crate::toolbox::Toolbox;

/// Announcements that a worker may leave out before it is taken for gone.
const MISSED: u32 = 3;

/// The workers of this replica's configuration.
pub struct Attendance {
    bus: Bus,
    toolbox: Arc<Toolbox>,
    catalogue: Arc<PublishedCatalogue>,
    lifecycle: WorkerLifecycleConfig,
    call_timeout: Duration,
    workers: BTreeMap<Name, AttendedWorker>,
    announcements: Option<LiveSubscription>,
    began: Instant,
    presence: Presence,
}

/// One worker, with all its replicas.
struct AttendedWorker {
    config: WorkerConfig,
    caller: Arc<Caller>,
    roster: Roster,
    present: watch::Sender<BTreeSet<String>>,
    /// The tools put into the registry last.
    offered: Vec<AnnouncedTool>,
    /// Those of the tools that are not in the catalogue, with the reasons.
    rejected: BTreeMap<String, String>,
}

impl Attendance {
    /// Listens from now on, and waits a while for each worker to announce itself. Which of them are there is noted in `presence`.
    pub async fn begin(
        bus: &Bus,
        config: &ToolsConfig,
        toolbox: Arc<Toolbox>,
        catalogue: Arc<PublishedCatalogue>,
        presence: Presence,
    ) -> Result<Self, BusError> {
        let lifecycle = config.worker_lifecycle.clone();
        let worker = |worker: &WorkerConfig| {
            let name = Name::parse(&worker.name).ok()?;
            let caller = Caller {
                bus: bus.clone(),
                worker: name.clone(),
                lifecycle: lifecycle.clone(),
                max_result_bytes: config.max_result_bytes,
            };
            Some((name, AttendedWorker::new(worker.clone(), caller)))
        };
        let workers: BTreeMap<Name, AttendedWorker> = config.tools.workers.iter().filter_map(worker).collect();
        let announcements = match workers.is_empty() {
            true => None,
            false => Some(bus.subscribe(workers::ANNOUNCEMENTS).await?),
        };
        let bus = bus.clone();
        let call_timeout = config.call_timeout();
        let began = Instant::now();
        let mut attendance =
            Self { bus, toolbox, catalogue, lifecycle, call_timeout, workers, announcements, began, presence };
        attendance.note_presence();
        attendance.await_first_announcements().await;
        Ok(attendance)
    }

    /// Asks who is there, and waits until everybody answered or the time for it is up.
    async fn await_first_announcements(&mut self) {
        for worker in self.workers.keys() {
            // Whoever does not hear it announces itself before long.
            let _ = self.bus.send_live(&workers::hello_subject(worker), "").await;
        }
        let patience = Duration::from_millis(self.lifecycle.start_wait_ms);
        let answers = async {
            while self.workers.values().any(|worker| worker.roster.is_empty()) {
                self.receive_next().await;
            }
        };
        if timeout(patience, answers).await.is_err() {
            let missing = self.workers.iter().filter(|(_, worker)| worker.roster.is_empty());
            missing.for_each(|(name, _)| tracing::warn!(worker = %name, "worker is not there yet"));
        }
    }

    /// Goes on listening until `shutdown`.
    pub async fn keep_listening(mut self, shutdown: CancellationToken) {
        let mut beats = interval(Duration::from_millis(self.lifecycle.announce_ms));
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                _ = beats.tick() => self.forget_silent_replicas(),
                () = self.receive_next() => {}
            }
        }
    }

    async fn receive_next(&mut self) {
        let heard = match &mut self.announcements {
            Some(announcements) => announcements.next().await,
            None => None,
        };
        match heard {
            Some(heard) => self.handle_announcement(heard).await,
            None => std::future::pending().await,
        }
    }

    async fn handle_announcement(&mut self, heard: LiveMessage) {
        let Some(name) = workers::announcing_worker(&heard.subject) else { return };
        let most = self.lifecycle.max_message_bytes;
        if heard.payload.len() > most {
            tracing::warn!(worker = %name, "announcement of more than {most} bytes passed over");
            return;
        }
        let announcement: Announcement = match serde_json::from_slice(&heard.payload) {
            Ok(announcement) => announcement,
            Err(error) => return tracing::warn!(worker = %name, %error, "announcement that cannot be read"),
        };
        let (accepted, refused, error) = match self.apply_announcement(&name, &announcement) {
            Ok((accepted, refused)) => (accepted, refused, None),
            Err(error) => (Vec::new(), Vec::new(), Some(error)),
        };
        self.note_presence();
        let runner = self.bus.instance.to_string();
        let announce_ms = self.lifecycle.announce_ms;
        let verdict = AnnouncementVerdict { runner, accepted, refused, error, announce_ms };
        let subject = workers::verdict_subject(&name, &announcement.instance);
        if let Err(error) = self.bus.send_live(&subject, json!(verdict).to_string()).await {
            tracing::debug!(worker = %name, %error, "a worker could not be told what became of its announcement");
        }
    }

    /// The tools that are offered of it, by the names agents see, and those that are not.
    fn apply_announcement(
        &mut self,
        name: &Name,
        said: &Announcement,
    ) -> Result<(Vec<String>, Vec<RefusedTool>), String> {
        let worker = self.workers.get_mut(name);
        let worker = worker.ok_or_else(|| format!("no worker {name} is listed in tool_runner.tools.workers"))?;
        if said.protocol != PROTOCOL {
            return Err(format!("this tool-runner speaks version {PROTOCOL} of the protocol"));
        }
        worker.roster.apply_announcement(said, self.began.elapsed(), self.lifecycle.max_replicas)?;
        worker.offer(&self.toolbox, self.call_timeout);
        let mut accepted = Vec::new();
        let mut refused = Vec::new();
        for tool in &said.tools {
            let full = format!("{}.{}", worker.config.prefix(), tool.name);
            let elsewise = || worker.offered.iter().any(|offered| offered.name == tool.name && offered != tool);
            let reason = worker.rejected.get(&tool.name).cloned().or_else(|| self.catalogue.withheld_reason(&full));
            let reason = reason
                .or_else(|| elsewise().then(|| "a replica that was started later describes it otherwise".to_owned()));
            match reason {
                Some(reason) => refused.push(RefusedTool { tool: tool.name.clone(), reason }),
                None => accepted.push(full),
            }
        }
        Ok((accepted, refused))
    }

    fn forget_silent_replicas(&mut self) {
        let expiry = Duration::from_millis(self.lifecycle.announce_ms) * MISSED;
        let Some(then) = self.began.elapsed().checked_sub(expiry) else { return };
        for worker in self.workers.values_mut() {
            worker.roster.forget_before(then);
            worker.offer(&self.toolbox, self.call_timeout);
        }
        self.note_presence();
    }

    fn note_presence(&self) {
        for (name, worker) in &self.workers {
            let prefix = worker.config.prefix();
            let replicas = worker.roster.len();
            self.presence.note(name.as_str(), prefix, replicas, &worker.rejected, self.bus.now());
        }
    }
}

impl AttendedWorker {
    fn new(config: WorkerConfig, caller: Caller) -> Self {
        let caller = Arc::new(caller);
        let present = watch::Sender::new(BTreeSet::new());
        Self { config, caller, roster: Roster::default(), present, offered: Vec::new(), rejected: BTreeMap::new() }
    }

    /// Offers what its replicas have. When none is there, what they had before.
    fn offer(&mut self, toolbox: &Toolbox, call_timeout: Duration) {
        let names = self.roster.names();
        self.present.send_if_modified(|present| {
            let is_other = *present != names;
            *present = names;
            is_other
        });
        let mut tools = self.roster.tools();
        if self.roster.is_empty() || tools == self.offered {
            return;
        }
        self.offered = tools.clone();
        self.rejected.clear();
        for beyond in tools.split_off(self.config.max_tools.min(tools.len())) {
            self.rejected
                .insert(beyond.name, format!("it has more tools than {}, which are max_tools", self.config.max_tools));
        }
        let (usable, bad): (Vec<_>, Vec<_>) = tools.into_iter().partition(|tool| is_local_name(&tool.name));
        for tool in bad {
            self.rejected.insert(tool.name, "its name must be [A-Za-z0-9_-]+".to_owned());
        }
        let made = usable.iter().map(|tool| {
            let tool =
                WorkerTool::new(&self.config, tool, call_timeout, Arc::clone(&self.caller), self.present.subscribe());
            Arc::new(tool) as Arc<dyn Tool>
        });
        let rejections = toolbox.offer_tools(self.config.prefix(), made.collect());
        let prefix = format!("{}.", self.config.prefix());
        for rejection in rejections {
            if let Some(name) = rejection.name.strip_prefix(&prefix) {
                self.rejected.insert(name.to_owned(), rejection.reason);
            }
        }
        tracing::info!(worker = %self.caller.worker, tools = usable.len(), "worker announced its tools");
    }
}

fn is_local_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}
