//! Logging in by nkeys that `kairo nkeys` made, to the server of docker-compose.yml with the list of users that it made, too.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use kairo_core::{
    bus::{Bus, BusConfig, NatsConfig},
    config::Secret,
    event_json::EventJson,
    permissions::NatsIdentity,
    subjects::Service as Core,
};
use kairo_local::{ChildProcess, ProcessSpec, Service, Stack, StackOptions, Tools, free_port};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use super::NOW_AND_THEN;
use crate::{
    keys::ADMIN,
    world::{DEADLINE, agent, log::Log, scenario::USUAL},
};

/// Runs `kairo nkeys` for this folder and returns its output.
fn make(folder: &Path) -> String {
    let program = StackOptions::bin_dir_of_this_build().unwrap().join("kairo");
    let made = Command::new(program).arg("nkeys").arg(folder).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    String::from_utf8(made.stdout).unwrap()
}

struct Server {
    folder: TempDir,
    url: String,
    _process: ChildProcess,
}

impl Server {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let made = make(folder.path());
        assert!(made.lines().count() == NatsIdentity::ALL.len() && made == make(folder.path()), "{made}");
        let deployed = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("deploy/nats.conf");
        let deployed = fs::read_to_string(deployed).unwrap();
        let (before, users) = deployed.split_once("include \"nats-permissions.conf\"\n").unwrap();
        let (_, after) = users.split_once("\n}\n").unwrap();
        let [port, monitor] = [0; 2].map(|_| free_port(None).unwrap());
        let config = format!("{before}include \"nats-users.conf\"\n{after}")
            .replace("0.0.0.0:4222", &format!("127.0.0.1:{port}"))
            .replace("0.0.0.0:8222", &format!("127.0.0.1:{monitor}"))
            .replace("/data", at("data").to_str().unwrap())
            .replace("20GB", "2GB");
        fs::write(at("nats.conf"), config).unwrap();
        let program = Tools::of_this_checkout().expect("run ./scripts/test");
        let mut spec = ProcessSpec::new("nats-server", program.nats_server().unwrap(), at("nats.log"))
            .args(["--config".into(), at("nats.conf").into_os_string()]);
        spec.ready = |line| line.contains("Server is ready");
        let mut process = ChildProcess::spawn(spec).await.unwrap();
        process.wait_until_ready(DEADLINE).await.unwrap();
        Self { folder, url: format!("nats://127.0.0.1:{port}"), _process: process }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Services with seeds of this folder.
    fn stack(&self, seeds: &Path, logs: &str) -> Stack {
        let mut stack = Stack::of_this_build(self.at(logs)).unwrap();
        stack.common().env("KAIRO_NATS__URL", &self.url).env("KAIRO_NATS__OBJECTS_MAX_BYTES", (1 << 24).to_string());
        let seed =
            |identity: NatsIdentity| format!("file:{}", seeds.join(format!("{}.seed", identity.name())).display());
        for service in Service::ALL {
            if let Some(identity) = service.identity() {
                stack.service(service).env("KAIRO_NATS__NKEY", seed(identity));
            }
        }
        stack.provisioner().env("KAIRO_NATS__NKEY", seed(NatsIdentity::Provision));
        stack
    }

    /// A client with the seed of who may do everything.
    async fn bus(&self) -> Bus {
        let seed = fs::read_to_string(self.at("provision.seed")).unwrap().trim().to_owned();
        let config = NatsConfig { url: self.url.clone(), nkey: Secret::new(seed), ..Default::default() };
        let bus = Bus::connect(Core::Gateway, agent("by-nkey"), &config, &BusConfig::default()).await.unwrap();
        bus.find_log().await.unwrap();
        bus
    }
}

#[tokio::test]
async fn services_work_with_nothing_but_the_seed_of_an_nkey() {
    let server = Server::start().await;
    let mut stack = server.stack(server.folder.path(), "logs");
    fs::write(server.at("scenario.yaml"), USUAL).unwrap();
    stack.simulator(&server.at("scenario.yaml"));
    stack.start(Service::ModelSim).await.unwrap();
    let model = format!("{}/v1", stack.url(Service::ModelSim).unwrap());
    stack.service(Service::AgentRuntime).env("KAIRO_MODELS__HEAVY__BASE_URL", model);
    stack.service(Service::Gateway).env("KAIRO_GATEWAY__LISTEN", "127.0.0.1:0").env("KAIRO_GATEWAY__ADMIN_KEY", ADMIN);
    stack.provision().await.unwrap();
    stack.start_all(&[(Service::AgentRuntime, 1), (Service::Router, 1), (Service::Gateway, 1)]).await.unwrap();
    let bus = server.bus().await;
    let log = Log::follow(&bus);
    let gateway = stack.url(Service::Gateway).unwrap().to_owned();
    let post = async |path: &str, body: serde_json::Value| {
        let answer = reqwest::Client::new()
            .post(format!("{gateway}{path}"))
            .bearer_auth(ADMIN)
            .json(&body)
            .send()
            .await
            .unwrap();
        assert!(answer.status().is_success(), "{answer:?}");
    };
    post("/v1/agents", json!({ "agent": "default", "prompt": "You are a helpful agent." })).await;
    post("/v1/messages", json!({ "user": "ann", "agent": "default", "text": "hello" })).await;
    log.wait(EventJson::is_final_reply).await;
    stack.stop().await.unwrap();
}

#[tokio::test]
async fn a_seed_that_the_server_does_not_know_lets_nobody_in_and_the_log_says_so() {
    let server = Server::start().await;
    let others = server.at("others");
    make(&others);
    server.stack(server.folder.path(), "logs").provision().await.unwrap();
    let mut stack = server.stack(&others, "logs-of-others");
    let said = async {
        loop {
            let said = fs::read_to_string(server.at("logs-of-others/kairo-router-0.log")).unwrap_or_default();
            if said.contains("nats-server refuses the login with nats.nkey") {
                return said;
            }
            sleep(NOW_AND_THEN).await;
        }
    };
    let said = tokio::select! {
        started = stack.start(Service::Router) => panic!("it was let in, or is silent: {started:?}"),
        said = timeout(DEADLINE, said) => said.expect("the log does not say so"),
    };
    assert!(!said.contains(fs::read_to_string(others.join("router.seed")).unwrap().trim()));
}
