//! A private Kairo of release builds: one replica of each service, and the two servers.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use kairo_cli::local::{NatsOptions, NatsServer, PgOptions, Postgres, Service, Stack, StackOptions, Tools};
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

/// Everything that runs.
pub struct Machine {
    pub nats: NatsServer,
    pub stack: Stack,
    /// URL of Kairo's database.
    pub database: String,
    postgres: Postgres,
    postgres_data: PathBuf,
    folder: TempDir,
}

impl Machine {
    /// Everything, with a simulator that tells the time.
    pub async fn start(sync: Flushing) -> Outcome<Self> {
        let mut machine = Self::servers(sync).await?;
        machine.start_services(SCENARIO).await?;
        Ok(machine)
    }

    /// The two servers, and no service yet.
    pub async fn servers(sync: Flushing) -> Outcome<Self> {
        let tools = Tools::find(Path::new(env!("CARGO_MANIFEST_DIR")))?;
        let bins = StackOptions::bin_dir_of_this_build()?;
        // Beside the build, since the system's temporary folder may be in memory, where flushing costs nothing.
        let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(&bins)?;
        let mut options = NatsOptions::new(tools.nats_server()?, folder.path().join("nats"));
        options.sync_always = sync == Flushing::Always;
        options.monitor = true;
        let nats = NatsServer::start(options).await?;
        let postgres_data = folder.path().join("postgres");
        let postgres = Postgres::start(PgOptions::new(tools.postgres_bin()?, &postgres_data)).await?;
        let database = postgres.create_database("kairo").await?;
        let mut options = StackOptions::new(&bins, folder.path().join("logs"));
        options.ready_deadline = READY_WITHIN;
        let mut stack = Stack::new(options);
        stack.common().env("KAIRO_NATS__URL", nats.url());
        for service in [Service::Projector, Service::Gateway] {
            stack.service(service).env("KAIRO_POSTGRES__URL", &database);
        }
        stack.service(Service::Gateway).env("KAIRO_GATEWAY__LISTEN", "127.0.0.1:0");
        let work = folder.path().join("work").display().to_string();
        stack.service(Service::ProcessSupervisor).env("KAIRO_PROCESS_SUPERVISOR__WORK_DIR", work);
        Ok(Self { nats, stack, database, postgres, postgres_data, folder })
    }

    /// Starts a replica of each service.
    pub async fn start_services(&mut self, scenario: &str) -> Outcome<()> {
        let file = self.folder.path().join("scenario.yaml");
        std::fs::write(&file, scenario)?;
        let stack = &mut self.stack;
        let simulator = stack.service(Service::ModelSim);
        simulator.arg("--listen").arg("127.0.0.1:0").arg("--scenario").arg(file.display().to_string());
        stack.start(Service::ModelSim).await?;
        let model = format!("{}/v1", stack.url(Service::ModelSim).unwrap_or_default());
        stack.service(Service::AgentRuntime).env("KAIRO_MODELS__HEAVY__BASE_URL", model);
        stack.start_all(&[(Service::Projector, 1), (Service::ProcessSupervisor, 1), (Service::ToolRunner, 1)]).await?;
        stack.start_all(&[(Service::AgentRuntime, 1), (Service::Router, 1), (Service::Gateway, 1)]).await?;
        Ok(())
    }

    /// Every process, by name.
    pub fn processes(&self) -> Vec<(&'static str, u32)> {
        let services = Service::ALL.into_iter().flat_map(|service| {
            self.stack.replicas(service).iter().map(move |replica| (service.binary(), replica.process().pid()))
        });
        let servers = [("nats-server", self.nats.process().pid()), ("postgres", self.postgres.process().pid())];
        services.chain(servers).collect()
    }

    /// Where files of the run may be put.
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
