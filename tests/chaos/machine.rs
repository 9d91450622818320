//! A private Kairo: nats-server, Postgres, the simulator, and every replica in a stack of its own, so that each can be
//! killed and started while others are, too.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use futures::future::try_join_all;
use kairo_local::{Database, LocalError, Postgres, Service, Stack, StackOptions, Tools, free_port};
use reqwest::{
    Client,
    header::{AUTHORIZATION, HeaderMap, HeaderValue},
};
use serde_json::json;

use super::{
    Outcome,
    builds::{Build, Builds},
    oracle::{self, Oracle},
    peers::Peers,
    plan::{Course, SERVICES, Settings},
    scenario,
    servers::Servers,
};

/// The folder in which agents' processes start, within the run's folder.
const WORK: &str = "work";
/// Time for which a gateway that is to end still serves, in milliseconds: longer than clients take to look again who is
/// ready.
const LAME_DUCK_MS: &str = "2000";
/// The folder of agents' own folders, within the run's folder.
const DESKS: &str = "desks";

/// The administrator's key: its holder may do everything.
pub const ADMIN_KEY: &str = "kairo_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A client that may do everything, and waits for an answer for so long.
pub fn administrator(patience: Duration) -> Outcome<Client> {
    let mut key = HeaderValue::from_str(&format!("Bearer {ADMIN_KEY}"))?;
    key.set_sensitive(true);
    let headers = HeaderMap::from_iter([(AUTHORIZATION, key)]);
    Ok(Client::builder().no_proxy().default_headers(headers).timeout(patience).build()?)
}

/// One replica of a service.
pub struct Replica {
    pub service: Service,
    pub index: usize,
    pub stack: Stack,
    pub builds: Builds,
}

/// The outcome of starting a replica of the older build after the promotion.
#[derive(Clone, Debug)]
pub enum OlderAgain {
    /// The end of what it said.
    Refused(String),
    Started {
        /// True if the replica should have refused.
        should_refuse: bool,
    },
}

/// Everything that runs.
pub struct Machine {
    pub nats: Servers,
    pub postgres: Postgres,
    pub database: Database,
    pub replicas: Vec<Replica>,
    pub model: Stack,
    pub builds: Builds,
}

/// The values from which the settings of services are made.
struct Surroundings<'a> {
    folder: &'a Path,
    builds: &'a Builds,
    course: Course,
    oracle: &'a Oracle,
    peers: &'a Peers,
    nats: &'a Servers,
    database: &'a Database,
    /// The simulator's.
    model: String,
}

impl Machine {
    /// Starts so many replicas of each service. `gateways` has an address for each.
    pub async fn start(
        folder: &Path,
        settings: &Settings,
        builds: &Builds,
        oracle: &Oracle,
        peers: &Peers,
        gateways: &[String],
    ) -> Outcome<Self> {
        let tools = Tools::of_this_checkout()?;
        std::fs::create_dir_all(desks(folder))?;
        let nats = Servers::start(&tools, folder, settings);
        let postgres = Postgres::start(tools.ephemeral_postgres_in(folder.join("postgres"))?);
        let (nats, postgres) = tokio::join!(nats, postgres);
        let (nats, postgres) = (nats?, postgres?);
        let database = postgres.create_kairo_database("kairo").await?;
        let model = simulator(folder, settings, oracle).await?;
        let surroundings = Surroundings {
            folder,
            builds,
            course: settings.course,
            oracle,
            peers,
            nats: &nats,
            database: &database,
            model: model.url(Service::ModelSim).unwrap_or_default().to_owned(),
        };
        // The log begins as the older build makes it; the newer adds what it needs before any of its services starts.
        let provisioning =
            if settings.course.has_older() { &[Build::Older, Build::Newer][..] } else { &[Build::Newer] };
        for build in provisioning {
            surroundings.stack(0, *build)?.provision().await?;
        }
        let each = SERVICES
            .into_iter()
            .flat_map(|service| gateways.iter().zip(0..).map(move |(at, index)| (service, index, at)));
        let replicas = each.map(|(service, index, gateway)| surroundings.start(service, index, gateway));
        let replicas = try_join_all(replicas).await?;
        Ok(Self { nats, postgres, database, replicas, model, builds: builds.clone() })
    }

    /// Starts the older build once more, as somebody might who wants to go back, after a promotion that raised the epoch or not.
    pub async fn older_again(&mut self, raised: bool) -> Outcome<OlderAgain> {
        let router = self.replicas.iter_mut().find(|replica| replica.service == Service::Router).ok_or("no router")?;
        router.stack.use_build(self.builds.folder(Build::Older));
        match router.stack.start(Service::Router).await {
            Ok(index) => {
                router.stack.stop_one(Service::Router, index).await?;
                Ok(OlderAgain::Started { should_refuse: raised && self.builds.older_refuses().await? })
            }
            Err(LocalError::Exited { tail, .. }) => Ok(OlderAgain::Refused(tail)),
            Err(error) => Err(error.into()),
        }
    }

    /// Stops it in order.
    pub async fn stop(mut self) -> Outcome<()> {
        try_join_all(self.replicas.iter_mut().map(|replica| replica.stack.stop())).await?;
        self.model.stop().await?;
        Ok(())
    }
}

/// Returns the name of a replica: its binary and its index.
pub fn name(service: Service, index: usize) -> String {
    format!("{}-{index}", service.binary())
}

/// Addresses for so many gateways, which they keep when they are started again, as real ones do.
pub fn gateways(replicas: usize) -> Outcome<Vec<String>> {
    (0..replicas).map(|_| Ok(format!("127.0.0.1:{}", free_port(None)?))).collect()
}

/// Returns the file in which the simulator records its requests.
pub fn requests(folder: &Path) -> PathBuf {
    folder.join("requests.jsonl")
}

/// Returns the folder of agents' own folders.
pub fn desks(folder: &Path) -> PathBuf {
    folder.join(DESKS)
}

/// Returns the folder in which agents' processes run.
pub fn work(folder: &Path) -> PathBuf {
    folder.join(WORK)
}

fn stack(folder: &Path, index: usize, bin_dir: &Path) -> Stack {
    Stack::new(StackOptions::new(bin_dir, folder.join(format!("logs/replica-{index}"))))
}

async fn simulator(folder: &Path, settings: &Settings, oracle: &Oracle) -> Outcome<Stack> {
    let file = folder.join("scenario.yaml");
    std::fs::write(&file, scenario::scenario(&oracle.host()))?;
    let mut stack = stack(folder, 0, &StackOptions::bin_dir_of_this_build()?);
    let simulator = stack.simulator(&file);
    simulator.arg("--delay").arg(settings.model_delay.to_string()).arg("--seed").arg(settings.seed.to_string());
    simulator.arg("--misbehave").arg(settings.misbehaviour.to_string());
    simulator.arg("--number-answers").arg("--journal").arg(requests(folder).display().to_string());
    stack.start(Service::ModelSim).await?;
    Ok(stack)
}

impl Surroundings<'_> {
    async fn start(&self, service: Service, index: usize, gateway: &str) -> Outcome<Replica> {
        let build = match self.course {
            Course::Walk => Build::Older,
            Course::SideBySide if index == 0 => Build::Older,
            _ => Build::Newer,
        };
        let mut stack = self.stack(index, build)?;
        for (name, value) in self.settings(service, index, gateway) {
            stack.common().env(name, value);
        }
        stack.start(service).await?;
        Ok(Replica { service, index, stack, builds: self.builds.clone() })
    }

    /// With what all services have in common.
    fn stack(&self, index: usize, build: Build) -> Outcome<Stack> {
        let mut stack = stack(self.folder, index, self.builds.folder(build));
        self.nats.are_for(&mut stack);
        stack.use_database(self.database);
        stack
            .common()
            .env("KAIRO_NATS__REPLICAS", self.nats.len().to_string())
            // All of the load comes with one key.
            .env("KAIRO_GATEWAY__ADMIN_KEY", ADMIN_KEY)
            .env("KAIRO_GATEWAY__RATE_PER_S", "100000")
            .env("KAIRO_GATEWAY__RATE_BURST", "100000")
            // A takeover takes this long, and must be shorter than a replica is frozen.
            .env("KAIRO_BUS__ACK_WAIT_MS", "1500")
            .env("KAIRO_BUS__RETRY_LONGEST_MS", "1000")
            // Room is set apart for objects, on small disks, too.
            .env("KAIRO_NATS__OBJECTS_MAX_BYTES", (1 << 24).to_string())
            .env("KAIRO_TELEMETRY__LOG", "info,kairo=debug,kairo_core=debug,kairo_agent_runtime=debug");
        Ok(stack)
    }

    fn settings(&self, service: Service, index: usize, gateway: &str) -> Vec<(&'static str, String)> {
        match service {
            // Those that are asked to end in other courses have nobody who sends clients elsewhere.
            Service::Gateway if self.course == Course::Restarts => vec![
                ("KAIRO_GATEWAY__LISTEN", gateway.to_owned()),
                ("KAIRO_GATEWAY__LAME_DUCK_MS", LAME_DUCK_MS.to_owned()),
            ],
            Service::Gateway => vec![("KAIRO_GATEWAY__LISTEN", gateway.to_owned())],
            Service::Projector => vec![("KAIRO_PROJECTOR__SESSION_TIMEOUT_MS", "2000".to_owned())],
            // Each asks under the name by which it is struck.
            Service::AgentRuntime => {
                let url = format!("{}/as/{}/v1", self.model, name(service, index));
                vec![("KAIRO_MODELS__HEAVY__BASE_URL", url)]
            }
            Service::ToolRunner => [
                ("KAIRO_TOOL_RUNNER__HTTP__ALLOW_HOSTS", json!([self.oracle.host()]).to_string()),
                ("KAIRO_TOOL_RUNNER__HTTP__ALLOW_PRIVATE", "127.0.0.1".to_owned()),
                ("KAIRO_TOOL_RUNNER__APPROVAL", json!([scenario::GUARDED]).to_string()),
                ("KAIRO_TOOL_RUNNER__WORKSPACE__ROOT", desks(self.folder).display().to_string()),
            ]
            .into_iter()
            .chain(self.peers.settings(&name(service, index)))
            .collect(),
            Service::ProcessSupervisor => vec![
                ("KAIRO_PROCESS_SUPERVISOR__PROGRAMS", self.programs()),
                ("KAIRO_PROCESS_SUPERVISOR__WORK_DIR", work(self.folder).display().to_string()),
                ("KAIRO_PROCESS_SUPERVISOR__LANDLOCK__WRITE", self.folder.display().to_string()),
            ],
            Service::Router | Service::ModelSim => Vec::new(),
        }
    }

    fn programs(&self) -> String {
        let first = ["-c", oracle::PROGRAM, scenario::PROGRAM].map(str::to_owned);
        let args: Vec<String> = first.into_iter().chain([self.oracle.file().display().to_string()]).collect();
        json!({ scenario::PROGRAM: { "path": "/bin/sh", "args": args } }).to_string()
    }
}
