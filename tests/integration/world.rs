//! A private Kairo for one test: nats-server, Postgres, the model simulator and as many replicas as wanted.
//!
//! Tests wait on events of the log, each with a deadline, and never sleep. Dropping the world kills every process;
//! [`World::end`] stops it in order and checks that nothing is left over.

pub mod cluster;
pub mod log;
mod owners;
pub mod projections;
pub mod raw;
pub mod scenario;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use async_nats::jetstream::consumer::{Info as ConsumerInfo, PullConsumer};
use kairo_core::{
    bus::{Bus, BusConfig},
    config::Secret,
    event_json::EventJson,
    ids::{self, Name},
    signing::{EntrySigner, SigningConfig},
    subjects::{Consumer, Service as Core},
};
use kairo_local::{Database, Login, NatsServer, Postgres, Servers, Service, Stack, Tools};
use kairo_tests::login;
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use log::Log;

/// The longest any wait may take. Far above what anything needs, so that only a hang reaches it.
pub const DEADLINE: Duration = Duration::from_secs(90);

/// The directory in the world's folder in which agents' processes start.
const WORK: &str = "work";

/// The world that a test asks for: services, replicas, settings and servers.
pub struct Wanted {
    replicas: BTreeMap<Service, usize>,
    scenario: String,
    env: Vec<(Option<Service>, String, String)>,
    postgres: Option<PathBuf>,
    monitored: bool,
    unprivileged: bool,
    fallbacks: Vec<String>,
    /// True if the heavy model is unavailable, so that only its fallbacks answer.
    only_fallbacks: bool,
    servers: usize,
}

/// A running Kairo.
pub struct World {
    pub nats: NatsServer,
    /// That keep the log together with it.
    others: Vec<NatsServer>,
    /// All of them, as clients are told.
    pub url_of_nats: String,
    pub postgres: Postgres,
    /// The database of the read model.
    pub database: Database,
    pub stack: Stack,
    pub bus: Bus,
    pub log: Log,
    pub http: reqwest::Client,
    folder: TempDir,
}

/// A message that was sent.
#[derive(Clone, Debug)]
pub struct Sent {
    pub message_id: String,
    /// Also the correlation id of all that follows.
    pub event_id: Uuid,
    pub sequence: u64,
}

impl Wanted {
    /// One replica of each service, and this scenario for the simulator.
    pub fn new(scenario: &str) -> Self {
        let replicas = Service::ALL.into_iter().map(|service| (service, 1)).collect();
        Self {
            replicas,
            scenario: scenario.to_owned(),
            // An endpoint that is away is tried eight times: not over half a minute here.
            env: vec![(Some(Service::AgentRuntime), "KAIRO_AGENT_RUNTIME__RETRY_PAUSE_MS".to_owned(), "20".to_owned())],
            postgres: None,
            monitored: false,
            fallbacks: Vec::new(),
            only_fallbacks: false,
            unprivileged: false,
            servers: 1,
        }
    }

    pub fn replicas(mut self, service: Service, count: usize) -> Self {
        self.replicas.insert(service, count);
        self
    }

    /// Sets the number of replicas of every service but the simulator and the gateway.
    pub fn replicas_of_all(mut self, count: usize) -> Self {
        for service in Service::ALL {
            if !matches!(service, Service::ModelSim | Service::Gateway) {
                self.replicas.insert(service, count);
            }
        }
        self
    }

    /// Has Postgres keep its data in this folder instead of the world's own.
    pub fn postgres_in(mut self, folder: PathBuf) -> Self {
        self.postgres = Some(folder);
        self
    }

    /// With so many nats-servers, each of which has a copy of everything.
    pub fn servers(self, servers: usize) -> Self {
        Self { servers, ..self }.env_of_all("KAIRO_NATS__REPLICAS", servers.to_string())
    }

    /// With nats-server's monitoring pages.
    pub fn monitored(self) -> Self {
        Self { monitored: true, ..self }
    }

    /// With services that may do no more than an ordinary user, also where root runs the tests.
    pub fn unprivileged(self) -> Self {
        Self { unprivileged: true, ..self }
    }

    /// With a heavy model that is away, and these of the simulator in its place.
    pub fn fallbacks(self, models: &[&str]) -> Self {
        let fallbacks = models.iter().map(|model| (*model).to_owned()).collect();
        Self { fallbacks, only_fallbacks: true, ..self }
    }

    /// With a further model of the simulator, which is asked where the heavy one cannot answer.
    pub fn spare(self, model: &str) -> Self {
        Self { fallbacks: vec![model.to_owned()], ..self }
    }

    pub fn env(mut self, service: Service, name: &str, value: impl Into<String>) -> Self {
        self.env.push((Some(service), name.to_owned(), value.into()));
        self
    }

    pub fn env_of_all(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.push((None, name.to_owned(), value.into()));
        self
    }

    /// Starts it all.
    pub async fn start(self) -> World {
        let tools = Tools::of_this_checkout().expect("run ./scripts/test");
        let folder = tempfile::tempdir().unwrap();
        let mut nats = tools.nats_in(folder.path().join("nats")).unwrap();
        nats.monitor = self.monitored;
        let data = self.postgres.clone().unwrap_or_else(|| folder.path().join("postgres"));
        let postgres = tools.ephemeral_postgres_in(data).unwrap();
        let others = cluster::start(&tools, folder.path(), &mut nats, self.servers - 1).await;
        let Servers { nats, postgres, database } = Servers::start(nats, postgres).await.unwrap();
        let url = [&nats].into_iter().chain(&others).map(NatsServer::url).collect::<Vec<_>>().join(",");
        let operator = Login { url: url.clone(), ..nats.operator() };
        if !others.is_empty() {
            cluster::found_each_other(&operator).await;
        }

        let mut stack = Stack::of_this_build(folder.path().join("logs")).unwrap();
        if self.unprivileged {
            stack.drop_privileges();
        }
        let scenario = folder.path().join("scenario.yaml");
        std::fs::write(&scenario, &self.scenario).unwrap();
        stack.simulator(&scenario);
        stack.start(Service::ModelSim).await.unwrap();
        stack.use_nats(&url, nats.users());
        self.configure(&mut stack, &database, folder.path());
        stack.provision().await.unwrap();
        let wanted = [Service::Projector, Service::ProcessSupervisor, Service::ToolRunner];
        self.start_replicas(&mut stack, &wanted).await;
        self.start_replicas(&mut stack, &[Service::AgentRuntime, Service::Router, Service::Gateway]).await;

        let bus = connect(&operator).await;
        let log = Log::follow(&bus);
        World {
            nats,
            others,
            url_of_nats: url,
            postgres,
            database,
            stack,
            bus,
            log,
            http: reqwest::Client::new(),
            folder,
        }
    }

    fn configure(&self, stack: &mut Stack, database: &Database, folder: &Path) {
        let model = format!("{}/v1", stack.url(Service::ModelSim).unwrap());
        let common = stack.common();
        common
            .env("KAIRO_NATS__PARTITIONS", "16")
            .env("KAIRO_BUS__ACK_WAIT_MS", "1500")
            .env("KAIRO_BUS__BEAT_MS", "200")
            .env("KAIRO_BUS__MEMBER_EXPIRY_MS", "2000")
            .env("KAIRO_BUS__CHECKPOINT_MS", "500")
            .env("KAIRO_BUS__RETRY_LONGEST_MS", "1000")
            .env("KAIRO_TELEMETRY__LOG", "info,kairo=debug,kairo_core=debug,kairo_agent_runtime=debug");
        stack.use_database(database);
        let gateway = stack.service(Service::Gateway);
        gateway.env("KAIRO_GATEWAY__LISTEN", "127.0.0.1:0").env("KAIRO_SIGNING__KEY", signing_key());
        // Tests that are about it want the default.
        gateway.env("KAIRO_GATEWAY__LOOPBACK_SCOPES", r#"["read","write","admin"]"#);
        let fallback = |name: &String| json!({ "base_url": model, "model": name });
        let fallbacks: Vec<_> = self.fallbacks.iter().map(fallback).collect();
        let heavy = if !self.only_fallbacks { model.clone() } else { "http://127.0.0.1:1/v1".to_owned() };
        // The gateway's are asked by forks alone.
        for service in [Service::AgentRuntime, Service::Gateway] {
            let settings = stack.service(service);
            settings.env("KAIRO_MODELS__HEAVY__BASE_URL", heavy.clone());
            settings.env("KAIRO_MODELS__HEAVY__FALLBACKS", json!(fallbacks).to_string());
        }
        let programs = json!({ "echo": "/bin/echo", "sh": "/bin/sh", "cat": "/bin/cat" });
        stack
            .service(Service::ProcessSupervisor)
            .env("KAIRO_PROCESS_SUPERVISOR__PROGRAMS", programs.to_string())
            .env("KAIRO_PROCESS_SUPERVISOR__WORK_DIR", folder.join(WORK).display().to_string())
            // Programs and tests speak to each other through files in folders that tests make.
            .env("KAIRO_PROCESS_SUPERVISOR__LANDLOCK__WRITE", std::env::temp_dir().display().to_string());
        for (service, name, value) in &self.env {
            let settings = match service {
                Some(service) => stack.service(*service),
                None => stack.common(),
            };
            settings.env(name, value);
        }
    }

    async fn start_replicas(&self, stack: &mut Stack, services: &[Service]) {
        let wanted: Vec<_> = services.iter().map(|service| (*service, self.replicas[service])).collect();
        stack.start_all(&wanted).await.unwrap();
    }
}

/// The `signing.key` of the gateways of every world.
pub fn signing_key() -> String {
    "09".repeat(32)
}

/// Signatures as the gateways of every world make them.
pub fn signatures() -> EntrySigner {
    EntrySigner::new(&SigningConfig { key: Secret::new(signing_key()), ..Default::default() })
}

impl World {
    /// Defines an agent.
    pub async fn define(&self, agent: &str) {
        let profile = json!({ "agent": agent, "prompt": "You are a helpful agent." });
        let answer = self.post("/v1/agents", &profile).await;
        assert!(answer.0 == 200 || answer.0 == 201, "{answer:?}");
    }

    /// Sends a message and returns where it went.
    pub async fn send(&self, agent: &str, text: &str) -> Sent {
        self.send_as(&json!({ "user": "ann", "agent": agent, "text": text })).await
    }

    pub async fn send_as(&self, message: &Value) -> Sent {
        let (status, answer) = self.post("/v1/messages", message).await;
        assert_eq!(status, 202, "{answer}");
        Sent {
            message_id: answer["message_id"].as_str().unwrap().to_owned(),
            event_id: answer["event_id"].as_str().unwrap().parse().unwrap(),
            sequence: answer["sequence"].as_u64().unwrap(),
        }
    }

    /// Sends a user's message and waits for its reply.
    pub async fn ask_as(&self, user: &str, agent: &str, text: &str) -> String {
        let sent = self.send_as(&json!({ "user": user, "agent": agent, "text": text })).await;
        self.reply(&sent).await
    }

    /// Sends a message and waits for its reply.
    pub async fn ask(&self, agent: &str, text: &str) -> String {
        let sent = self.send(agent, text).await;
        self.reply(&sent).await
    }

    /// The reply that ends the turn of a message.
    pub async fn reply(&self, sent: &Sent) -> String {
        let reply = self.log.wait(|event| event.correlation_id == sent.event_id && event.is_final_reply()).await;
        reply.text().to_owned()
    }

    /// The events that follow from a message so far, in log order.
    pub async fn events_of(&self, sent: &Sent) -> Vec<EventJson> {
        self.log.now(&self.bus).await.into_iter().filter(|event| event.correlation_id == sent.event_id).collect()
    }

    pub async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let answer = self.http.post(self.url(path)).json(body).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    pub async fn delete(&self, path: &str) -> (u16, Value) {
        let answer = self.http.delete(self.url(path)).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    pub async fn get(&self, path: &str) -> (u16, Value) {
        let answer = self.http.get(self.url(path)).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    /// Returns the folder to which services write their logs.
    pub fn logs(&self) -> PathBuf {
        self.folder.path().join("logs")
    }

    /// Returns the folder of nats-server, with its configuration.
    pub fn nats_folder(&self) -> PathBuf {
        self.folder.path().join("nats")
    }

    /// Returns the working directory of the agent's processes.
    pub fn workplace(&self, agent: &str) -> PathBuf {
        self.folder.path().join("work").join(agent)
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.stack.url(Service::Gateway).unwrap())
    }

    /// The bodies of the requests that the simulator was sent.
    pub async fn model_requests(&self) -> Vec<Value> {
        let url = format!("{}/v1/requests?limit=256", self.stack.url(Service::ModelSim).unwrap());
        let answer: Value = self.http.get(url).send().await.unwrap().json().await.unwrap();
        answer["requests"].as_array().unwrap().clone()
    }

    /// Waits until everybody has dealt with all there is, which is when no consumer has anything pending or
    /// unacknowledged, no owner of a partition has anything to read or waiting, and nothing was written while they were
    /// asked one after another.
    pub async fn settled(&self) {
        loop {
            let end = self.end_of_log().await;
            for consumer in Consumer::DURABLE {
                let idle = |info: &ConsumerInfo| info.num_pending == 0 && info.num_ack_pending == 0;
                self.wait_until(consumer, idle, "never came to rest").await;
            }
            self.owners_at_rest().await;
            if self.end_of_log().await == end {
                return;
            }
        }
    }

    /// Waits until a consumer has something out that was not acknowledged.
    pub async fn delivered(&self, consumer: Consumer) {
        self.wait_until(consumer, |info| info.num_ack_pending > 0, "was never given anything").await;
    }

    /// Waits until a consumer is given again what it gave back.
    pub async fn given_back(&self, consumer: Consumer) {
        self.wait_until(consumer, |info| info.num_redelivered > 0, "never gave anything back").await;
    }

    async fn wait_until(&self, consumer: Consumer, fits: impl Fn(&ConsumerInfo) -> bool, complaint: &str) {
        let stream = self.bus.nats().unwrap().jetstream.get_stream_no_info(consumer.stream()).await.unwrap();
        let name = consumer.name();
        let waiting = async {
            // The server does not say when: asking is all there is. There is no answer while another one comes to lead.
            loop {
                let there: Result<PullConsumer, _> = stream.get_consumer(name).await;
                if there.is_ok_and(|consumer| fits(consumer.cached_info())) {
                    return;
                }
            }
        };
        let waited = tokio::time::timeout(DEADLINE, waiting).await;
        assert!(waited.is_ok(), "{name} {complaint}");
    }

    /// Stops everything in order, after checking that nothing is left to do, that nobody asked NATS for what it may not,
    /// and that no process is left.
    pub async fn end(mut self) {
        self.settled().await;
        self.nobody_was_refused().await;
        self.stack.stop().await.unwrap();
        no_process_is_left_in(&self.folder.path().join(WORK)).await;
    }
}

/// With [`NatsServer::operator`], as who may do everything.
pub async fn connect(login: &Login) -> Bus {
    let nats = login::config(login);
    let instance = Name::parse(&format!("test-{}", ids::generate().simple())).unwrap();
    let bus = Bus::connect(Core::Gateway, instance, &nats, &BusConfig::default()).await.unwrap();
    // Where there is a log yet.
    let _ = bus.find_log().await;
    bus
}

/// Waits until no process has its working directory in `folder`: those that were just killed may need a moment.
pub async fn no_process_is_left_in(folder: &Path) {
    let left = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|process| process.path());
        processes.filter(|process| process.join("cwd").read_link().is_ok_and(|cwd| cwd.starts_with(folder)))
    };
    let none_left = async {
        while left().next().is_some() {
            // The kernel does not say when strangers end: looking is all there is.
            tokio::task::yield_now().await;
        }
    };
    let none_left = tokio::time::timeout(DEADLINE, none_left).await;
    assert!(none_left.is_ok(), "left over: {:?}", left().collect::<Vec<_>>());
}

/// An agent's name of its own, so that the simulator's counters do not mix.
pub fn agent(name: &str) -> Name {
    Name::parse(name).unwrap()
}
