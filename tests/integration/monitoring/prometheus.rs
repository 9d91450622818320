//! A real Prometheus, which reads the metrics of a world.

use std::{
    collections::BTreeMap,
    fmt::Write,
    fs,
    path::Path,
    process::{Child, Command, Stdio},
};

use kairo_local::Service;
use serde_json::Value;
use tempfile::TempDir;

use crate::world::{DEADLINE, World};

/// Ends with it.
pub struct Prometheus {
    child: Child,
    url: String,
    http: reqwest::Client,
    folder: TempDir,
    /// The addresses of each job.
    targets: BTreeMap<&'static str, Vec<String>>,
}

const CONFIG: &str = "prometheus.yml";

/// The services that have metrics.
pub fn services() -> impl Iterator<Item = Service> {
    Service::ALL.into_iter().filter(|service| *service != Service::ModelSim)
}

/// The name that alerts and dashboards know a service's replicas by.
fn job(service: Service) -> &'static str {
    service.binary()
}

/// Returns a configuration that reads these targets twice a second.
fn config(targets: &BTreeMap<&str, Vec<String>>) -> String {
    let mut config = "global: { scrape_interval: 500ms, scrape_timeout: 500ms }\nscrape_configs:\n".to_owned();
    for (job, targets) in targets {
        let targets = serde_json::to_string(targets).unwrap();
        writeln!(config, "  - {{ job_name: {job}, static_configs: [{{ targets: {targets} }}] }}").unwrap();
    }
    config
}

impl Prometheus {
    /// Reads the metrics of every replica twice a second.
    pub async fn start(program: &Path, world: &World) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let targets = |service| {
            let replicas = world.stack.replicas(service).iter();
            replicas.map(|replica| replica.health_url().unwrap().trim_start_matches("http://").to_owned()).collect()
        };
        let targets: BTreeMap<&str, Vec<String>> = services().map(|service| (job(service), targets(service))).collect();
        let file = folder.path().join(CONFIG);
        fs::write(&file, config(&targets)).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let mut command = Command::new(program);
        command.arg("--config.file").arg(&file).arg("--storage.tsdb.path").arg(folder.path().join("data"));
        command
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .arg("--web.enable-lifecycle")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let child = command.stderr(log).spawn().unwrap();
        let url = format!("http://127.0.0.1:{port}");
        let prometheus = Self { child, url, http: reqwest::Client::new(), folder, targets };
        let up = format!("count(up == 1) == {}", services().count());
        prometheus.wait_for(&up).await;
        prometheus
    }

    /// Reads a service no longer, as if all of its replicas were taken away.
    pub async fn forget(&mut self, service: Service) {
        // Without its job Prometheus would leave out the marker that ends the series of a target.
        self.targets.insert(job(service), Vec::new());
        fs::write(self.folder.path().join(CONFIG), config(&self.targets)).unwrap();
        let reloaded = self.http.post(format!("{}/-/reload", self.url)).send().await.unwrap();
        assert!(reloaded.status().is_success(), "{}", reloaded.status());
    }

    /// Returns the current results of a query; empty while Prometheus does not answer yet.
    ///
    /// # Panics
    /// If it does not understand the query.
    pub async fn ask(&self, query: &str) -> Vec<Value> {
        let asked = self.http.get(format!("{}/api/v1/query", self.url)).query(&[("query", query)]);
        let Ok(answer) = asked.send().await else { return Vec::new() };
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert!(status != 400, "{query}: {text}");
        let answer: Value = serde_json::from_str(&text).unwrap_or_default();
        answer["data"]["result"].as_array().cloned().unwrap_or_default()
    }

    /// Waits until a query finds something.
    pub async fn wait_for(&self, query: &str) -> Vec<Value> {
        let waiting = async {
            loop {
                let found = self.ask(query).await;
                if !found.is_empty() {
                    return found;
                }
            }
        };
        match tokio::time::timeout(DEADLINE, waiting).await {
            Ok(found) => found,
            Err(_) => panic!("nothing was ever found by {query}: {:#?}", self.ask("{job=~\"kairo-.*\"}").await),
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
