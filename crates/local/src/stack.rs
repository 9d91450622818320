//! Kairo's services as processes: any number of replicas of each, started, killed, frozen and stopped
//! one by one or together.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::{join_all, select_all};
use kairo_events::{permissions::NatsIdentity, subjects};
use tokio::time::timeout;

use crate::announcement::{self, Announcement};
use crate::database::Database;
use crate::error::LocalError;
use crate::process::{ChildProcess, Exit, ProcessSpec};
use crate::users::NatsUsers;

/// Kept from the services unless given to them: our own settings are not theirs, and a key belongs
/// only where it is used.
const HIDDEN: [&str; 2] = ["KAIRO_", "OPENAI_"];

/// A program of Kairo that runs as a process of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    ModelSim,
    Projector,
    Router,
    AgentRuntime,
    ToolRunner,
    ProcessSupervisor,
    Gateway,
}

impl Service {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::ModelSim,
        Self::Projector,
        Self::Router,
        Self::AgentRuntime,
        Self::ToolRunner,
        Self::ProcessSupervisor,
        Self::Gateway,
    ];

    /// The name of its binary.
    pub fn binary(self) -> &'static str {
        match self {
            Self::ModelSim => "kairo-model-sim",
            Self::Projector => "kairo-projector",
            Self::Router => "kairo-router",
            Self::AgentRuntime => "kairo-agent-runtime",
            Self::ToolRunner => "kairo-tool-runner",
            Self::ProcessSupervisor => "kairo-process-supervisor",
            Self::Gateway => "kairo-gateway",
        }
    }

    /// Returns its identity on NATS, if it uses NATS.
    pub fn identity(self) -> Option<NatsIdentity> {
        let service = match self {
            Self::ModelSim => return None,
            Self::Projector => subjects::Service::Projector,
            Self::Router => subjects::Service::Router,
            Self::AgentRuntime => subjects::Service::AgentRuntime,
            Self::ToolRunner => subjects::Service::ToolRunner,
            Self::ProcessSupervisor => subjects::Service::ProcessSupervisor,
            Self::Gateway => subjects::Service::Gateway,
        };
        Some(NatsIdentity::Service(service))
    }
}

/// The command that makes streams.
const COMMAND: &str = "kairo";

/// Options common to all services of a stack.
#[derive(Debug, Clone)]
pub struct StackOptions {
    /// Holds the services' binaries.
    pub bin_dir: PathBuf,
    /// Gets one log for each replica, such as `kairo-router-0.log`.
    pub log_dir: PathBuf,
    /// Longest time for a service to become ready.
    pub ready_deadline: Duration,
    /// Time for a service to drain before it is killed.
    pub stop_grace: Duration,
    /// True if services that root starts may do no more than an ordinary user of that id. Default no.
    pub unprivileged: bool,
}

impl StackOptions {
    /// 60 s to become ready, 20 s to drain.
    pub fn new(bin_dir: impl Into<PathBuf>, log_dir: impl Into<PathBuf>) -> Self {
        Self {
            bin_dir: bin_dir.into(),
            log_dir: log_dir.into(),
            ready_deadline: Duration::from_secs(60),
            stop_grace: Duration::from_secs(20),
            unprivileged: false,
        }
    }

    /// Returns the folder with the binaries of the build that the running program is part of: its own, or, for a test,
    /// one folder up.
    pub fn bin_dir_of_this_build() -> io::Result<PathBuf> {
        let program = std::env::current_exe()?;
        let dir = program.parent().unwrap_or(Path::new("."));
        Ok(match dir.file_name() {
            Some(name) if name == "deps" => dir.parent().unwrap_or(dir),
            _ => dir,
        }
        .to_owned())
    }
}

/// Settings for the processes of one service, or of all.
#[derive(Debug, Clone, Default)]
pub struct ServiceSettings {
    env: Vec<(String, String)>,
    args: Vec<String>,
}

impl ServiceSettings {
    /// Sets an environment variable, in place of an earlier value.
    pub fn env(&mut self, name: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Adds a command-line argument.
    pub fn arg(&mut self, arg: impl Into<String>) -> &mut Self {
        self.args.push(arg.into());
        self
    }
}

/// One process of a service that became ready once. It may have ended since: see
/// [`ChildProcess::exit`] of [`Replica::process`].
#[derive(Debug)]
pub struct Replica {
    process: ChildProcess,
    announcement: Announcement,
}

impl Replica {
    /// Its process: id, exit, log, freeze and thaw.
    pub fn process(&self) -> &ChildProcess {
        &self.process
    }

    /// The base URL of its `/healthz` and `/readyz`, if it has them.
    pub fn health_url(&self) -> Option<&str> {
        self.announcement.health.as_deref()
    }

    /// The base URL of what it serves: the gateway's API, the simulator's models.
    pub fn url(&self) -> Option<&str> {
        self.announcement.url.as_deref()
    }
}

/// The services of one private Kairo. Dropping it kills them.
#[derive(Debug)]
pub struct Stack {
    options: StackOptions,
    common: ServiceSettings,
    settings: BTreeMap<Service, ServiceSettings>,
    /// Of `kairo provision`.
    provisioner: ServiceSettings,
    replicas: BTreeMap<Service, Vec<Replica>>,
}

impl Stack {
    /// The services of the build that the running program is part of, with their logs in this folder. Nothing runs yet.
    pub fn of_this_build(log_dir: impl Into<PathBuf>) -> Result<Self, LocalError> {
        let bin_dir = StackOptions::bin_dir_of_this_build();
        let bin_dir = bin_dir.map_err(LocalError::io("cannot find", "the folder of this program"))?;
        Ok(Self::new(StackOptions::new(bin_dir, log_dir)))
    }

    /// Nothing runs yet.
    pub fn new(options: StackOptions) -> Self {
        Self {
            options,
            common: ServiceSettings::default(),
            settings: BTreeMap::new(),
            provisioner: ServiceSettings::default(),
            replicas: BTreeMap::new(),
        }
    }

    /// Services started from now on are of the build whose binaries lie in this folder.
    pub fn use_build(&mut self, bin_dir: impl Into<PathBuf>) {
        self.options.bin_dir = bin_dir.into();
    }

    /// Services started from now on may do no more than an ordinary user, also when root starts them.
    pub fn drop_privileges(&mut self) {
        self.options.unprivileged = true;
    }

    /// Returns the settings of every process started from now on.
    pub fn common(&mut self) -> &mut ServiceSettings {
        &mut self.common
    }

    /// Returns the settings of every process of this service started from now on; they override the common settings.
    pub fn service(&mut self, service: Service) -> &mut ServiceSettings {
        self.settings.entry(service).or_default()
    }

    /// The settings of a simulator that plays this scenario, on a port of its own.
    pub fn simulator(&mut self, scenario: &Path) -> &mut ServiceSettings {
        let settings = self.service(Service::ModelSim);
        settings.arg("--listen").arg("127.0.0.1:0").arg("--scenario").arg(scenario.display().to_string())
    }

    /// Has every service started from now on connect to these servers as who it is.
    pub fn use_nats(&mut self, url: &str, users: &NatsUsers) {
        self.common.env("KAIRO_NATS__URL", url);
        let log_in = |settings: &mut ServiceSettings, identity| {
            users.settings(identity).into_iter().for_each(|(name, value)| _ = settings.env(name, value));
        };
        for service in Service::ALL {
            if let Some(identity) = service.identity() {
                log_in(self.service(service), identity);
            }
        }
        log_in(&mut self.provisioner, NatsIdentity::Provision);
    }

    /// Has every service started from now on take servers that encrypt for who they are if this authority vouches for them.
    pub fn trust(&mut self, authority: &Path) {
        self.common.env("KAIRO_NATS__TLS_CA", authority.display().to_string());
    }

    /// Has every service started from now on connect to this database as who it is.
    pub fn use_database(&mut self, database: &Database) {
        for service in Service::ALL {
            if let Some((name, url)) = database.settings(service) {
                self.service(service).env(name, url);
            }
        }
    }

    /// Returns the settings of `kairo provision`; they override the common settings.
    pub fn provisioner(&mut self) -> &mut ServiceSettings {
        &mut self.provisioner
    }

    /// Makes the streams that services need, by `kairo provision`.
    pub async fn provision(&self) -> Result<(), LocalError> {
        self.run_command(&["provision"], self.options.ready_deadline).await
    }

    /// Fills servers without a log from a backup, by `kairo restore`, which may take so long.
    pub async fn restore(&self, place: &str, deadline: Duration) -> Result<(), LocalError> {
        self.run_command(&["restore", place], deadline).await
    }

    /// Runs a command as the user who may make streams, to its end.
    async fn run_command(&self, arguments: &[&str], deadline: Duration) -> Result<(), LocalError> {
        let name = arguments.first().copied().unwrap_or_default();
        let program = self.options.bin_dir.join(COMMAND);
        let log = self.options.log_dir.join(format!("kairo-{name}.log"));
        let spec = ProcessSpec::new(format!("kairo {name}"), program, log).args(arguments.iter().copied());
        let process = ChildProcess::spawn(self.apply_settings(spec, &self.provisioner)).await?;
        let exit = match timeout(deadline, process.wait_for_exit()).await {
            Ok(Exit::Code(0)) => return Ok(()),
            Ok(exit) => exit,
            Err(_) => process.kill9().await?,
        };
        let name = process.name().to_owned();
        let tail = process.log_tail();
        Err(LocalError::Exited { name, exit, log: process.log().to_owned(), tail })
    }

    /// Starts one more replica, waits until it is ready, and returns its index.
    pub async fn start(&mut self, service: Service) -> Result<usize, LocalError> {
        self.start_all(&[(service, 1)]).await?;
        Ok(self.replicas(service).len() - 1)
    }

    /// Starts so many more replicas of each, all at once, and waits until all are ready. If one
    /// fails, none of them is kept.
    pub async fn start_all(&mut self, wanted: &[(Service, usize)]) -> Result<(), LocalError> {
        let mut next: BTreeMap<Service, usize> = BTreeMap::new();
        let mut starting = Vec::new();
        for service in wanted.iter().flat_map(|(service, count)| std::iter::repeat_n(*service, *count)) {
            let index = next.entry(service).or_insert_with(|| self.replicas.get(&service).map_or(0, Vec::len));
            starting.push((service, self.spawn(service, *index).await?));
            *index += 1;
        }
        let mut ready = Vec::new();
        for (service, process) in starting {
            ready.push((service, self.wait_until_ready(process).await?));
        }
        for (service, replica) in ready {
            self.replicas.entry(service).or_default().push(replica);
        }
        Ok(())
    }

    /// The replicas of a service in the order of their start, ended ones included.
    pub fn replicas(&self, service: Service) -> &[Replica] {
        self.replicas.get(&service).map_or(&[], Vec::as_slice)
    }

    /// One replica.
    pub fn replica(&self, service: Service, index: usize) -> Result<&Replica, LocalError> {
        self.replicas(service).get(index).ok_or(LocalError::NoSuchReplica { service: service.binary(), index })
    }

    /// The base URL of the first gateway or simulator.
    pub fn url(&self, service: Service) -> Option<&str> {
        self.replicas(service).first()?.url()
    }

    /// SIGKILL to one replica; returns when it is gone. Its index stays taken.
    pub async fn kill9(&self, service: Service, index: usize) -> Result<(), LocalError> {
        self.replica(service, index)?.process.kill9().await?;
        Ok(())
    }

    /// SIGSTOP to one replica.
    pub fn freeze(&self, service: Service, index: usize) -> Result<(), LocalError> {
        self.replica(service, index)?.process.freeze();
        Ok(())
    }

    /// SIGCONT to one replica.
    pub fn thaw(&self, service: Service, index: usize) -> Result<(), LocalError> {
        self.replica(service, index)?.process.thaw();
        Ok(())
    }

    /// Asks one replica to drain and end, and returns how it did.
    pub async fn stop_one(&self, service: Service, index: usize) -> Result<Exit, LocalError> {
        let grace = self.options.stop_grace;
        self.replica(service, index)?.process.terminate(grace).await
    }

    /// Starts one replica anew under its index, after stopping it if it runs.
    pub async fn restart(&mut self, service: Service, index: usize) -> Result<(), LocalError> {
        self.stop_one(service, index).await?;
        let process = self.spawn(service, index).await?;
        let started = self.wait_until_ready(process).await?;
        if let Some(replica) = self.replicas.get_mut(&service).and_then(|replicas| replicas.get_mut(index)) {
            *replica = started;
        }
        Ok(())
    }

    /// Waits until some running replica ends, and says which and how. Waits for ever if none runs.
    pub async fn any_exit(&self) -> (Service, usize, Exit) {
        let running: Vec<_> = self
            .all_replicas()
            .filter(|(_, _, replica)| replica.process.exit().is_none())
            .map(|(service, index, replica)| {
                Box::pin(async move { (service, index, replica.process.wait_for_exit().await) })
            })
            .collect();
        match running.is_empty() {
            true => std::future::pending().await,
            false => select_all(running).await.0,
        }
    }

    /// Asks all to drain and end, at once, and waits until they have; kills those that take longer
    /// than the grace. Nothing runs afterwards, even if this returns an error.
    pub async fn stop(&mut self) -> Result<(), LocalError> {
        let grace = self.options.stop_grace;
        let stopping = self.all_replicas().map(|(_, _, replica)| replica.process.terminate(grace));
        let outcomes = join_all(stopping).await;
        self.replicas.clear();
        outcomes.into_iter().try_for_each(|outcome| outcome.map(drop))
    }

    fn all_replicas(&self) -> impl Iterator<Item = (Service, usize, &Replica)> {
        self.replicas.iter().flat_map(|(service, replicas)| {
            replicas.iter().enumerate().map(|(index, replica)| (*service, index, replica))
        })
    }

    async fn spawn(&self, service: Service, index: usize) -> Result<ChildProcess, LocalError> {
        let name = format!("{}-{index}", service.binary());
        let program = self.options.bin_dir.join(service.binary());
        let log = self.options.log_dir.join(format!("{name}.log"));
        let mut spec = ProcessSpec::new(name, program, log);
        spec.ready = announcement::is_announcement;
        spec.unprivileged = self.options.unprivileged;
        let none = ServiceSettings::default();
        ChildProcess::spawn(self.apply_settings(spec, self.settings.get(&service).unwrap_or(&none))).await
    }

    fn apply_settings(&self, mut spec: ProcessSpec, own: &ServiceSettings) -> ProcessSpec {
        spec.env_hidden = HIDDEN.to_vec();
        for settings in [&self.common, own] {
            spec.env.extend(settings.env.iter().cloned());
            spec = spec.args(settings.args.iter().cloned());
        }
        spec
    }

    async fn wait_until_ready(&self, mut process: ChildProcess) -> Result<Replica, LocalError> {
        let line = process.wait_until_ready(self.options.ready_deadline).await?;
        match announcement::parse(&line) {
            Some(announcement) => Ok(Replica { process, announcement }),
            None => Err(LocalError::BadAnnouncement { name: process.name().to_owned(), line }),
        }
    }
}
