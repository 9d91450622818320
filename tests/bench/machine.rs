//! A private Kairo of release builds: replicas of each service, and the two servers.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use kairo_local::{NatsServer, PgOptions, Postgres, Servers, Service, Stack, StackOptions, Tools};
use tempfile::TempDir;

use crate::{Outcome, arguments::Flushing};

const SCENARIO: &str = r#"
rules:
  - name: time
    when: { user_contains: "time" }
    turn:
      - tool_calls: [{ tool: tools.now, arguments: {} }]
      - text: "It is {{ last_result.now }}."
"#;

/// projector is ready when its first generation is made, of however long a log.
const READY_WITHIN: Duration = Duration::from_secs(3_600);

/// The settings that services are started with.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// The scenario of the simulator.
    pub scenario: String,
    /// Its further arguments.
    pub simulator: Vec<String>,
    /// Of agent-runtime and of router; there is one of everything else.
    pub replicas: usize,
}

impl Fleet {
    /// One replica of each service.
    pub fn single(scenario: &str) -> Self {
        Self { scenario: scenario.to_owned(), simulator: Vec::new(), replicas: 1 }
    }

    /// A simulator that tells the time.
    pub fn telling_the_time() -> Self {
        Self::single(SCENARIO)
    }
}

/// Everything that runs.
pub struct Machine {
    pub nats: NatsServer,
    pub stack: Stack,
    /// For whoever talks to the gateway.
    pub http: reqwest::Client,
    /// URL of Kairo's database, as superuser.
    pub database: String,
    /// True if the simulator was started before.
    simulated: bool,
    postgres: Postgres,
    postgres_data: PathBuf,
    folder: TempDir,
}

impl Machine {
    /// Everything, with a simulator that tells the time; with a master key, if it is to be sealed.
    pub async fn start(sync: Flushing, sealed: bool) -> Outcome<Self> {
        let mut machine = Self::servers(sync).await?;
        if sealed {
            machine.stack.common().env("KAIRO_PRIVACY__MASTER_KEY", "07".repeat(32));
        }
        machine.start_services(&Fleet::telling_the_time()).await?;
        Ok(machine)
    }

    /// The two servers, and no service yet.
    pub async fn servers(sync: Flushing) -> Outcome<Self> {
        let tools = Tools::of_this_checkout()?;
        let bins = StackOptions::bin_dir_of_this_build()?;
        // Beside the build, since the system's temporary folder may be in memory, where flushing costs nothing.
        let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(&bins)?;
        let mut nats = tools.nats_in(folder.path().join("nats"))?;
        nats.sync_always = sync == Flushing::Always;
        nats.monitor = true;
        let postgres_data = folder.path().join("postgres");
        let postgres = PgOptions::new(tools.postgres_bin()?, &postgres_data);
        let Servers { nats, postgres, database } = Servers::start(nats, postgres).await?;
        let mut options = StackOptions::new(&bins, folder.path().join("logs"));
        options.ready_deadline = READY_WITHIN;
        let mut stack = Stack::new(options);
        stack.use_nats(&nats.url(), nats.users());
        stack.use_database(&database);
        let gateway = stack.service(Service::Gateway).env("KAIRO_GATEWAY__LISTEN", "127.0.0.1:0");
        // What is measured defines its own agents.
        gateway.env("KAIRO_GATEWAY__LOOPBACK_SCOPES", r#"["read","write","admin"]"#);
        let work = folder.path().join("work").display().to_string();
        stack.service(Service::ProcessSupervisor).env("KAIRO_PROCESS_SUPERVISOR__WORK_DIR", work);
        let http = reqwest::Client::builder().no_proxy().tcp_nodelay(true).build()?;
        stack.provision().await?;
        Ok(Self { nats, stack, http, simulated: false, database: database.url, postgres, postgres_data, folder })
    }

    /// Starts the simulator and every service.
    pub async fn start_services(&mut self, fleet: &Fleet) -> Outcome<()> {
        self.start_simulator(fleet).await?;
        let stack = &mut self.stack;
        stack.start_all(&[(Service::Projector, 1), (Service::ProcessSupervisor, 1), (Service::ToolRunner, 1)]).await?;
        for _ in 0..fleet.replicas {
            self.start_agent_runtime().await?;
        }
        self.stack.start_all(&[(Service::Router, fleet.replicas), (Service::Gateway, 1)]).await?;
        Ok(())
    }

    async fn start_simulator(&mut self, fleet: &Fleet) -> Outcome<()> {
        let file = self.folder.path().join("scenario.yaml");
        std::fs::write(&file, &fleet.scenario)?;
        // Started again, it is as it was: settings of a stack are only added to.
        let arguments = !std::mem::replace(&mut self.simulated, true);
        if arguments {
            let simulator = self.stack.simulator(&file);
            for argument in &fleet.simulator {
                simulator.arg(argument);
            }
        }
        self.stack.start(Service::ModelSim).await?;
        Ok(())
    }

    /// Starts one more replica, and returns its index.
    pub async fn start_agent_runtime(&mut self) -> Outcome<usize> {
        self.name_next(self.stack.replicas(Service::AgentRuntime).len());
        Ok(self.stack.start(Service::AgentRuntime).await?)
    }

    /// Starts a replica anew, after asking it to end if it runs.
    pub async fn restart_agent_runtime(&mut self, index: usize) -> Outcome<()> {
        self.name_next(index);
        Ok(self.stack.restart(Service::AgentRuntime, index).await?)
    }

    /// The next replica that is started asks the simulator under this name.
    fn name_next(&mut self, index: usize) {
        let model = self.stack.url(Service::ModelSim).unwrap_or_default();
        let url = format!("{model}/as/{}/v1", caller(index));
        self.stack.service(Service::AgentRuntime).env("KAIRO_MODELS__HEAVY__BASE_URL", url);
    }

    /// Every process, by name.
    pub fn processes(&self) -> Vec<(&'static str, u32)> {
        let services = Service::ALL.into_iter().flat_map(|service| {
            self.stack.replicas(service).iter().map(move |replica| (service.binary(), replica.process().pid()))
        });
        let servers = [("nats-server", self.nats.process().pid()), ("postgres", self.postgres.process().pid())];
        services.chain(servers).collect()
    }

    /// Returns the folder for files of the run.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub async fn stop(mut self) -> Outcome<()> {
        self.stack.stop().await?;
        self.postgres.stop(Duration::from_secs(10)).await?;
        drop(self.postgres);
        Ok(Postgres::remove_data(&self.postgres_data)?)
    }
}

/// The name under which a replica of agent-runtime asks the simulator.
pub fn caller(index: usize) -> String {
    format!("{}-{index}", Service::AgentRuntime.binary())
}
