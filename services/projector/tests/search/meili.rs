//! A Meilisearch for one test.

use std::{
    env,
    net::TcpListener as Probe,
    path::PathBuf,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use kairo_core::config::Secret;
use kairo_read_model::search::{SearchConfig, meili::SearchEngine};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    process::{Child, Command},
    time::{interval, sleep, timeout},
};

const DEADLINE: Duration = Duration::from_secs(60);
const KEY: &str = "a-key-for-the-tests-of-kairo";

/// A server that this test starts, or a running one shared by all tests.
pub struct Meili {
    pub config: SearchConfig,
    own: Option<Own>,
}

struct Own {
    program: PathBuf,
    port: u16,
    options: Vec<String>,
    child: Child,
    folder: TempDir,
}

impl Meili {
    /// Returns a server; `None`, with a note, where there is none.
    pub async fn find() -> Option<Self> {
        if env::var_os("MEILI_BIN").is_some() {
            return Self::own(&[]).await;
        }
        let Ok(url) = env::var("MEILI_URL") else {
            println!("SKIPPED: this test needs Meilisearch; set MEILI_URL (and MEILI_MASTER_KEY), or MEILI_BIN");
            return None;
        };
        let key = Secret::new(env::var("MEILI_MASTER_KEY").unwrap_or_default());
        Some(Self { config: config(url, key), own: None })
    }

    /// Starts a server that can be killed; `None`, with a note, without its program.
    pub async fn own(options: &[&str]) -> Option<Self> {
        let Some(program) = env::var_os("MEILI_BIN").map(PathBuf::from) else {
            println!("SKIPPED: this test kills Meilisearch; set MEILI_BIN to its program");
            return None;
        };
        let port = Probe::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let child = started(&program, port, &options, &folder);
        let config = config(format!("http://127.0.0.1:{port}"), Secret::new(KEY.to_owned()));
        let meili = Self { config, own: Some(Own { program, port, options, child, folder }) };
        meili.answers().await;
        Some(meili)
    }

    /// For services: the server under this address, or its own.
    pub fn settings(&self, url: Option<&str>) -> Vec<(&'static str, String)> {
        vec![
            ("KAIRO_SEARCH__MEILI_URL", url.unwrap_or(&self.config.meili_url).to_owned()),
            ("KAIRO_SEARCH__MEILI_KEY", self.config.meili_key.expose().to_owned()),
            ("KAIRO_SEARCH__INDEX_PREFIX", self.config.index_prefix.clone()),
            ("KAIRO_SEARCH__RETRY_LONGEST_MS", "200".to_owned()),
        ]
    }

    pub fn engine(&self) -> SearchEngine {
        SearchEngine::open(&self.config).unwrap().unwrap()
    }

    pub async fn kill9(&mut self) {
        self.own.as_mut().unwrap().child.kill().await.unwrap();
    }

    pub async fn restart(&mut self) {
        let own = self.own.as_mut().unwrap();
        own.child = started(&own.program, own.port, &own.options, &own.folder);
        self.answers().await;
    }

    async fn answers(&self) {
        let engine = self.engine();
        let asked = async {
            let mut ticks = interval(Duration::from_millis(20));
            while engine.has_index("nothing").await.is_err() {
                ticks.tick().await;
            }
        };
        timeout(DEADLINE, asked).await.expect("Meilisearch did not start");
    }
}

fn config(meili_url: String, meili_key: Secret) -> SearchConfig {
    let index_prefix = format!("test-{}", uuid::Uuid::now_v7().simple());
    SearchConfig { meili_url, meili_key, index_prefix, timeout_ms: 5_000, ..Default::default() }
}

fn started(program: &PathBuf, port: u16, options: &[String], folder: &TempDir) -> Child {
    let mut command = Command::new(program);
    command.args(["--no-analytics", "--master-key", KEY, "--http-addr", &format!("127.0.0.1:{port}")]);
    command.args(options).arg("--db-path").arg(folder.path().join("data")).current_dir(folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap()
}

/// A way to a server on which every piece takes this long, in milliseconds.
pub struct SlowWay {
    pub url: String,
    delay: Arc<AtomicU64>,
}

impl SlowWay {
    pub async fn to(url: &str) -> Self {
        let target = url.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let delay = Arc::new(AtomicU64::new(0));
        let way = Self { url, delay: delay.clone() };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let delay = delay.clone();
                let target = target.clone();
                tokio::spawn(async move {
                    let Ok(server) = TcpStream::connect(target).await else { return };
                    let ((from_client, to_client), (from_server, to_server)) =
                        (client.into_split(), server.into_split());
                    tokio::join!(pass(from_client, to_server, &delay), pass(from_server, to_client, &delay));
                });
            }
        });
        way
    }

    pub fn takes(&self, milliseconds: u64) {
        self.delay.store(milliseconds, Ordering::Relaxed);
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: &AtomicU64) {
    let mut piece = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut piece).await {
        sleep(Duration::from_millis(delay.load(Ordering::Relaxed))).await;
        if to.write_all(&piece[..length]).await.is_err() {
            return;
        }
    }
}
