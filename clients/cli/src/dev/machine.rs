//! Everything that runs on a development machine: started in order, stopped in the reverse order.

use std::{collections::BTreeMap, time::Duration};

use kairo_core::config::Secret;
use kairo_local::{
    ChildProcess, Exit, LocalError, NatsOptions, NatsServer, PgOptions, Postgres, Service, Stack, free_port,
};

use super::{
    data_folder::DataFolder,
    model::Model,
    progress::{say, step},
    servers::ServerPrograms,
    settings::{self, Wiring},
    workers,
};
use crate::{Error, client::Client, endpoint, models::PublishedModels, secret_key};

const DATABASE: &str = "kairo";

/// Ports that are tried first, counted from the gateway's.
const NATS_OFFSET: u16 = 2;
const SIMULATOR_OFFSET: u16 = 10;
const POSTGRES_OFFSET: u16 = 12;

/// The longest time restoring a backup may take.
const RESTORED_WITHIN: Duration = Duration::from_secs(6 * 3_600);

/// The longest time a server may take to close its files.
const STOP_GRACE: Duration = Duration::from_secs(20);

/// The settings of a machine to start.
pub(crate) struct MachinePlan<'a> {
    pub(crate) data_folder: &'a DataFolder,
    pub(crate) servers: ServerPrograms,
    pub(crate) model: Model,
    /// The gateway's port; it and the others are stepped over when taken.
    pub(crate) port: u16,
    pub(crate) environment: BTreeMap<String, String>,
    /// The backup that the log comes from, if it is not to be new or that of before.
    pub(crate) backup: Option<String>,
}

/// One process of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MachinePart {
    Nats,
    Postgres,
    Service(Service, usize),
}

impl MachinePart {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nats => "nats-server",
            Self::Postgres => "postgres",
            Self::Service(service, _) => service.binary(),
        }
    }
}

/// A running machine. Dropping it kills all its processes.
pub(crate) struct Machine {
    nats: Option<NatsServer>,
    postgres: Option<Postgres>,
    stack: Stack,
    /// The settings of its models, as published for commands.
    models: Option<PublishedModels>,
    model_settings: Vec<(String, String)>,
    /// The administrator's key of its gateway, once that is started.
    admin_key: Option<Secret>,
}

impl MachinePlan<'_> {
    fn load_admin_key(&self) -> Result<Secret, Error> {
        let given = self.environment.get(settings::ADMIN_KEY).map(String::as_str);
        endpoint::keep_admin_key(&self.data_folder.data_dir, given.filter(|key| !key.is_empty()))
    }

    fn load_signing_key(&self) -> Result<String, Error> {
        match self.environment.get(settings::SIGNING_KEY).filter(|key| !key.is_empty()) {
            Some(key) => Ok(key.clone()),
            None => secret_key::load_or_create_signing(&self.data_folder.data_dir),
        }
    }
}

impl Machine {
    /// Nothing runs yet.
    pub(crate) fn new(data_folder: &DataFolder) -> Result<Self, Error> {
        Ok(Self {
            nats: None,
            postgres: None,
            stack: Stack::of_this_build(data_folder.logs_dir())?,
            models: None,
            model_settings: Vec::new(),
            admin_key: None,
        })
    }

    /// Starts everything, each part when what it needs is ready.
    pub(crate) async fn start(&mut self, plan: &MachinePlan<'_>) -> Result<(), Error> {
        let nats = NatsOptions {
            port: Some(plan.port.saturating_add(NATS_OFFSET)),
            users: Some(workers::load_users(plan.data_folder.nats_dir().join("users"))?),
            ..NatsOptions::new(&plan.servers.nats, plan.data_folder.nats_dir())
        };
        let nats = self.nats.insert(step("nats-server", NatsServer::start(nats), NatsServer::url).await?);
        let users = nats.users().clone();
        workers::print_logins(&users, &nats.url());
        let postgres = PgOptions {
            port: Some(plan.port.saturating_add(POSTGRES_OFFSET)),
            log: plan.data_folder.logs_dir().join("postgres.log"),
            ..PgOptions::new(&plan.servers.postgres, plan.data_folder.postgres_dir())
        };
        let at = |postgres: &Postgres| format!("127.0.0.1:{}", postgres.port());
        let postgres = self.postgres.insert(step("postgres", Postgres::start(postgres), at).await?);
        let database = postgres.create_kairo_database(DATABASE).await?;
        let wiring = Wiring {
            nats_url: self.nats_url(),
            users,
            database,
            simulator_url: self.start_simulator(plan).await?,
            gateway_port: free_port(Some(plan.port))?,
            work_dir: plan.data_folder.processes_dir(),
            workspaces: plan.data_folder.workspaces_dir(),
            secret_key: secret_key::load_or_create(&plan.data_folder.data_dir)?,
            master_key: secret_key::load_or_create_master(&plan.data_folder.data_dir)?,
            signing_key: plan.load_signing_key()?,
            admin_key: self.admin_key.insert(plan.load_admin_key()?).clone(),
        };
        let folder = &plan.data_folder.data_dir;
        let runtime = Service::AgentRuntime;
        let asking = settings::for_service(runtime, &wiring, &plan.model, &plan.environment);
        self.models = Some(PublishedModels::new(folder, &asking).map_err(Error::file("write to", folder))?);
        self.model_settings = plan.model.settings(wiring.simulator_url.as_deref());
        for (name, value) in settings::for_provisioner(&wiring, &plan.environment) {
            self.stack.provisioner().env(name, value);
        }
        if let Some(place) = &plan.backup {
            step("restore", self.stack.restore(place, RESTORED_WITHIN), |()| String::new()).await?;
        }
        step("streams", self.stack.provision(), |()| String::new()).await?;
        for service in settings::ORDER {
            for (name, value) in settings::for_service(service, &wiring, &plan.model, &plan.environment) {
                self.stack.service(service).env(name, value);
            }
            self.start_service(service).await?;
        }
        Ok(())
    }

    async fn start_simulator(&mut self, plan: &MachinePlan<'_>) -> Result<Option<String>, Error> {
        if plan.model != Model::Simulator {
            return Ok(None);
        }
        let port = free_port(Some(plan.port.saturating_add(SIMULATOR_OFFSET)))?;
        settings::configure_simulator(self.stack.service(Service::ModelSim), port, &plan.environment);
        self.start_service(Service::ModelSim).await?;
        Ok(self.stack.url(Service::ModelSim).map(str::to_owned))
    }

    async fn start_service(&mut self, service: Service) -> Result<(), Error> {
        let name = service.binary().trim_start_matches("kairo-");
        step(name, self.stack.start(service), |_| String::new()).await?;
        Ok(())
    }

    /// The gateway's address; empty before it runs.
    pub(crate) fn gateway_url(&self) -> String {
        self.stack.url(Service::Gateway).unwrap_or_default().to_owned()
    }

    /// The gateway with the key of its administrator.
    pub(crate) fn client(&self) -> Result<Client, Error> {
        let client = Client::new(&self.gateway_url())?;
        Ok(match &self.admin_key {
            Some(key) => client.with_key(key.clone()),
            None => client,
        })
    }

    /// The server's address; empty before it runs.
    pub(crate) fn nats_url(&self) -> String {
        self.nats.as_ref().map(NatsServer::url).unwrap_or_default()
    }

    /// The variables that configure its models.
    pub(crate) fn model_settings(&self) -> &[(String, String)] {
        &self.model_settings
    }

    /// The services, not the servers.
    pub(crate) fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Returns the parts that do not run any more, and how each ended.
    pub(crate) fn ended_parts(&self) -> Vec<(MachinePart, Exit)> {
        let nats = self.nats.as_ref().and_then(|nats| Some((MachinePart::Nats, nats.process().exit()?)));
        let postgres =
            self.postgres.as_ref().and_then(|postgres| Some((MachinePart::Postgres, postgres.process().exit()?)));
        let services = Service::ALL.into_iter().flat_map(|service| {
            let replicas = self.stack.replicas(service).iter().enumerate();
            replicas.filter_map(move |(index, replica)| {
                Some((MachinePart::Service(service, index), replica.process().exit()?))
            })
        });
        nats.into_iter().chain(postgres).chain(services).collect()
    }

    /// Waits until something that runs ends.
    pub(crate) async fn wait_for_exit(&self) {
        let nats = wait_while_running(self.nats.as_ref().map(NatsServer::process));
        let postgres = wait_while_running(self.postgres.as_ref().map(Postgres::process));
        tokio::select! {
            () = nats => {}
            () = postgres => {}
            _ = self.stack.any_exit() => {}
        }
    }

    /// Starts a part anew, where it was.
    pub(crate) async fn restart(&mut self, part: MachinePart) -> Result<(), LocalError> {
        match part {
            MachinePart::Nats => match self.nats.as_mut() {
                Some(nats) => nats.restart().await,
                None => Ok(()),
            },
            MachinePart::Postgres => match self.postgres.as_mut() {
                Some(postgres) => postgres.restart().await,
                None => Ok(()),
            },
            MachinePart::Service(service, index) => self.stack.restart(service, index).await,
        }
    }

    /// Stops everything in order: the services finish what they began, then the servers close their files.
    pub(crate) async fn stop(&mut self) -> Result<(), Error> {
        let services = self.stack.stop().await;
        if let Some(postgres) = self.postgres.take() {
            postgres.stop(STOP_GRACE).await?;
        }
        if let Some(nats) = self.nats.take() {
            nats.stop(STOP_GRACE).await?;
        }
        Ok(services?)
    }

    /// Shows the end of every service's log, for finding out what went wrong.
    pub(crate) fn show_logs(&self, lines: usize) {
        for service in Service::ALL {
            for replica in self.stack.replicas(service) {
                let process = replica.process();
                let tail = replica.process().log_tail();
                let state = process.exit().map_or(String::new(), |exit| format!(" (ended: {exit})"));
                say(format!("\n{}{state}", process.log().display()));
                let skipped = tail.lines().count().saturating_sub(lines);
                tail.lines().skip(skipped).for_each(|line| say(format!("  {line}")));
            }
        }
    }
}

/// Waits for the end of a process that runs; for ever if there is none.
async fn wait_while_running(process: Option<&ChildProcess>) {
    match process.filter(|process| process.exit().is_none()) {
        Some(process) => {
            process.wait_for_exit().await;
        }
        None => std::future::pending().await,
    }
}
