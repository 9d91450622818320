//! A private nats-server with JetStream.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kairo_events::permissions::{ACCOUNT, NatsIdentity};
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::error::LocalError;
use crate::log;
use crate::port::{free_port, is_free};
use crate::process::{ChildProcess, Exit, ProcessSpec};
use crate::users::{Login, NatsUsers};

/// The server logs this after its streams are recovered and its listener is open.
const READY: &str = "Server is ready";
/// And this when it has read its configuration again.
const RELOADED: &str = "Reloaded server configuration";

/// The folder of streams that belong to no account.
const ACCOUNT_BEFORE: &str = "$G";

/// Ports to try for a server if somebody takes its port in the last moment.
const PORT_ATTEMPTS: usize = 5;

/// Options for running a nats-server.
#[derive(Debug, Clone)]
pub struct NatsOptions {
    /// nats-server 2.12 or newer.
    pub binary: PathBuf,
    /// Holds its configuration, its log and, in `jetstream/`, its streams.
    pub data_dir: PathBuf,
    /// The port to try first; any free one if `None`.
    pub port: Option<u16>,
    /// True to serve its monitoring pages over HTTP.
    pub monitor: bool,
    /// True to flush every message to the disk before it is acknowledged. The server's default is to flush every two
    /// minutes, which a crash of the machine, not of the server, can lose.
    pub sync_always: bool,
    /// The largest message in bytes; the server's default, 1 MiB, if `None`.
    pub max_payload: Option<u32>,
    /// The cluster it is part of, if any.
    pub cluster: Option<ClusterMember>,
    /// The users and their permissions; if `None`, as [`NatsUsers::in_dir`] makes them in `users/` of its data. Servers of
    /// a cluster have the same.
    pub users: Option<NatsUsers>,
    /// The certificate with which it proves its identity and encrypts; without, connections are plain. Servers of a
    /// cluster prove it to each other, too, and have one authority.
    pub tls: Option<TlsFiles>,
    /// Longest time to recover its streams and listen.
    pub deadline: Duration,
}

/// A certificate, its key, and who vouches for both, in PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
    pub authority: PathBuf,
}

/// One server of a cluster on this machine.
#[derive(Debug, Clone)]
pub struct ClusterMember {
    /// Its name in the cluster, unlike every other's.
    pub name: String,
    /// The port on which it listens for the others.
    pub port: u16,
    /// The ports on which the members listen for each other, with or without its own.
    pub routes: Vec<u16>,
    /// True if they reach each other only there: the port on which it listens itself is not advertised.
    pub is_relayed: bool,
}

impl NatsOptions {
    /// A server on any free port, without monitoring, with the server's own defaults and 30 s to start.
    pub fn new(binary: impl Into<PathBuf>, data_dir: impl Into<PathBuf>) -> Self {
        Self {
            binary: binary.into(),
            data_dir: data_dir.into(),
            port: None,
            monitor: false,
            sync_always: false,
            max_payload: None,
            cluster: None,
            users: None,
            tls: None,
            deadline: Duration::from_secs(30),
        }
    }
}

/// A running, stopped or killed nats-server; dropping it kills it.
#[derive(Debug)]
pub struct NatsServer {
    options: NatsOptions,
    users: NatsUsers,
    port: u16,
    monitor_port: Option<u16>,
    process: ChildProcess,
}

impl NatsServer {
    /// Starts it and waits until it greets a client.
    pub async fn start(options: NatsOptions) -> Result<Self, LocalError> {
        let users = match &options.users {
            Some(users) => users.clone(),
            None => NatsUsers::in_dir(options.data_dir.join("users"))?,
        };
        let mut preferred = options.port;
        let mut attempt = 1;
        loop {
            let port = free_port(preferred)?;
            let monitor_port = match options.monitor {
                true => Some(free_port(Some(port.saturating_add(1)))?),
                false => None,
            };
            match launch(&options, &users, port, monitor_port).await {
                Ok(process) => {
                    return Ok(Self { options, users, port, monitor_port, process });
                }
                Err(LocalError::Exited { .. })
                    if attempt < PORT_ATTEMPTS && !(is_free(port) && monitor_port.is_none_or(is_free)) =>
                {
                    attempt += 1;
                    preferred = options.port.map(|_| port);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// `nats://127.0.0.1:PORT`, or `tls://…`; the same after a restart.
    pub fn url(&self) -> String {
        format!("{}://127.0.0.1:{}", self.scheme(), self.port)
    }

    /// Returns the login of an identity for a client that is no service.
    pub fn login(&self, identity: NatsIdentity) -> Login {
        let password = self.users.password(identity).to_owned();
        let tls_ca = self.options.tls.as_ref().map(|files| files.authority.clone());
        Login { url: self.url(), user: identity.name().to_owned(), password, tls_ca }
    }

    /// [`NatsServer::login`] as who may do everything.
    pub fn operator(&self) -> Login {
        self.login(NatsIdentity::Provision)
    }

    fn scheme(&self) -> &'static str {
        if self.options.tls.is_some() { "tls" } else { "nats" }
    }

    /// Returns the users and their permissions.
    pub fn users(&self) -> &NatsUsers {
        &self.users
    }

    /// Has it heed other users from now on; those who are none of them any more are disconnected.
    pub async fn reload(&mut self, users: NatsUsers) -> Result<(), LocalError> {
        let before = log::count(self.process.log(), RELOADED);
        write_configuration(&self.options, &users, self.port, self.monitor_port)?;
        self.users = users;
        self.process.signal(Signal::HUP);
        let reloaded = async {
            // The server says so in its log only.
            while log::count(self.process.log(), RELOADED) == before {
                tokio::task::yield_now().await;
            }
        };
        timeout(self.options.deadline, reloaded).await.map_err(|_| LocalError::NotReady {
            name: "nats-server".to_owned(),
            deadline: self.options.deadline,
            log: self.process.log().to_owned(),
            tail: log::tail(self.process.log()),
        })
    }

    /// Returns the URL of its monitoring pages, if it serves them.
    pub fn monitor_url(&self) -> Option<String> {
        self.monitor_port.map(|port| format!("http://127.0.0.1:{port}"))
    }

    /// Its process, for freezing it or looking at its exit.
    pub fn process(&self) -> &ChildProcess {
        &self.process
    }

    /// SIGKILL; returns when it is gone.
    pub async fn kill9(&self) -> Result<Exit, LocalError> {
        self.process.kill9().await
    }

    /// Starts it again on the same port and data, after stopping it if it runs.
    pub async fn restart(&mut self) -> Result<(), LocalError> {
        self.stop(self.options.deadline).await?;
        self.process.reap();
        self.process = launch(&self.options, &self.users, self.port, self.monitor_port).await?;
        Ok(())
    }

    /// Has it move its leaders and its clients to the others of its cluster (lame duck mode), and then end; an error when it is
    /// still there after `deadline`.
    pub async fn leave(&self, deadline: Duration) -> Result<Exit, LocalError> {
        self.process.signal(Signal::USR2);
        let left = timeout(deadline, self.process.wait_for_exit()).await;
        left.map_err(|_| LocalError::Unkillable { name: "nats-server".to_owned(), deadline })
    }

    /// SIGTERM, on which it closes its files in order; SIGKILL after `grace`.
    pub async fn stop(&self, grace: Duration) -> Result<Exit, LocalError> {
        self.process.terminate(grace).await
    }
}

async fn launch(
    options: &NatsOptions,
    users: &NatsUsers,
    port: u16,
    monitor_port: Option<u16>,
) -> Result<ChildProcess, LocalError> {
    let dir = &options.data_dir;
    let config = write_configuration(options, users, port, monitor_port)?;
    move_streams(&dir.join("jetstream"))?;
    let mut spec = ProcessSpec::new("nats-server", &options.binary, dir.join("nats.log"))
        .args(["--config".into(), config.into_os_string()]);
    spec.ready = |line| line.contains(READY);
    let mut process = ChildProcess::spawn(spec).await?;
    process.wait_until_ready(options.deadline).await?;
    await_greeting(port, options.deadline, &process).await?;
    Ok(process)
}

/// Streams of a server that had no accounts yet become those of Kairo's account.
fn move_streams(store: &Path) -> Result<(), LocalError> {
    let streams = store.join("jetstream");
    let before = streams.join(ACCOUNT_BEFORE);
    let now = streams.join(ACCOUNT);
    match before.exists() && !now.exists() {
        true => fs::rename(&before, &now).map_err(LocalError::io("cannot rename", &before)),
        false => Ok(()),
    }
}

/// Writes its configuration file, which holds passwords, for its owner's eyes only.
fn write_configuration(
    options: &NatsOptions,
    users: &NatsUsers,
    port: u16,
    monitor_port: Option<u16>,
) -> Result<PathBuf, LocalError> {
    let dir = &options.data_dir;
    fs::create_dir_all(dir).map_err(LocalError::io("cannot create", dir))?;
    let path = dir.join("nats.conf");
    let text = configuration(options, port, monitor_port) + &users.authorization();
    let written = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path);
    let written = written.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(LocalError::io("cannot write", &path))?;
    Ok(path)
}

/// Reads the INFO that the server greets every client with, so that it is really us who can reach it.
async fn await_greeting(port: u16, deadline: Duration, process: &ChildProcess) -> Result<(), LocalError> {
    let greeted = timeout(deadline, async {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).await?;
        Ok::<_, std::io::Error>(line.starts_with("INFO "))
    });
    match greeted.await {
        Ok(Ok(true)) => Ok(()),
        _ => Err(LocalError::NotReady {
            name: "nats-server".to_owned(),
            deadline,
            log: process.log().to_owned(),
            tail: log::tail(process.log()),
        }),
    }
}

/// The text of its configuration file, but for who may do what.
fn configuration(options: &NatsOptions, port: u16, monitor_port: Option<u16>) -> String {
    let mut text = format!("listen: \"127.0.0.1:{port}\"\n");
    // Writing to a String cannot fail.
    if let Some(port) = monitor_port {
        let _ = writeln!(text, "http: \"127.0.0.1:{port}\"");
    }
    if let Some(bytes) = options.max_payload {
        let _ = writeln!(text, "max_payload: {bytes}");
    }
    if let Some(ClusterMember { name, port, routes, is_relayed }) = &options.cluster {
        let routes: Vec<String> = routes.iter().map(|port| format!("\"nats://127.0.0.1:{port}\"")).collect();
        let _ = writeln!(text, "server_name: \"{name}\"\ncluster {{\n  name: \"kairo\"");
        let _ = writeln!(text, "  listen: \"127.0.0.1:{port}\"\n  routes: [{}]", routes.join(", "));
        if *is_relayed {
            // Nobody is there, and it is nobody else's.
            let _ = writeln!(text, "  advertise: \"127.0.0.2:{port}\"");
        }
        if let Some(files) = &options.tls {
            let verified = format!("  ca_file: {}\n  verify: true\n", quote_path(&files.authority));
            text.push_str(&tls(files, &verified));
        }
        text.push_str("}\n");
        // The least that it takes.
        text.push_str("lame_duck_grace_period: \"1s\"\nlame_duck_duration: \"30s\"\n");
    }
    if let Some(files) = &options.tls {
        text.push_str(&tls(files, ""));
    }
    let store = quote_path(&options.data_dir.join("jetstream"));
    let _ = writeln!(text, "jetstream {{\n  store_dir: {store}");
    if options.sync_always {
        // Unquoted, the server ignores the value with no more than an error in its log.
        text.push_str("  sync_interval: \"always\"\n");
    }
    text.push_str("}\n");
    text
}

/// Returns the TLS block of a listener; `asked` holds what else is required of those who connect.
fn tls(files: &TlsFiles, asked: &str) -> String {
    let certificate = quote_path(&files.certificate);
    let key = quote_path(&files.key);
    format!("tls {{\n  cert_file: {certificate}\n  key_file: {key}\n{asked}}}\n")
}

fn quote_path(path: &Path) -> String {
    let escaped = path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_as_short_as_its_options() {
        let options = NatsOptions::new("/bin/nats-server", "/data");
        assert_eq!(
            configuration(&options, 4222, None),
            "listen: \"127.0.0.1:4222\"\njetstream {\n  store_dir: \"/data/jetstream\"\n}\n"
        );
    }

    #[test]
    fn a_server_of_a_cluster_is_told_where_the_others_are() {
        let mut options = NatsOptions::new("/bin/nats-server", "/data");
        options.cluster = Some(ClusterMember { name: "n0".to_owned(), port: 6, routes: vec![6, 7], is_relayed: false });
        assert_eq!(
            configuration(&options, 4222, None),
            "listen: \"127.0.0.1:4222\"\nserver_name: \"n0\"\ncluster {\n  name: \"kairo\"\n  \
             listen: \"127.0.0.1:6\"\n  routes: [\"nats://127.0.0.1:6\", \"nats://127.0.0.1:7\"]\n}\n\
             lame_duck_grace_period: \"1s\"\nlame_duck_duration: \"30s\"\n\
             jetstream {\n  store_dir: \"/data/jetstream\"\n}\n"
        );
    }

    #[test]
    fn servers_that_encrypt_prove_to_each_other_who_they_are() {
        let mut options = NatsOptions::new("/bin/nats-server", "/data");
        options.tls = Some(TlsFiles { certificate: "/c".into(), key: "/k".into(), authority: "/a".into() });
        let files = "tls {\n  cert_file: \"/c\"\n  key_file: \"/k\"\n";
        let alone = configuration(&options, 4222, None);
        assert!(alone.contains(&format!("{files}}}\n")) && !alone.contains("verify"), "{alone}");
        options.cluster = Some(ClusterMember { name: "n0".to_owned(), port: 6, routes: vec![7], is_relayed: false });
        let member = configuration(&options, 4222, None);
        let to_others = format!("routes: [\"nats://127.0.0.1:7\"]\n{files}  ca_file: \"/a\"\n  verify: true\n}}\n}}\n");
        assert!(member.contains(&to_others) && member.contains(&format!("\n{files}}}\n")), "{member}");
    }

    #[test]
    fn every_option_reaches_the_configuration() {
        let mut options = NatsOptions::new("/bin/nats-server", "/da\"ta");
        options.sync_always = true;
        options.max_payload = Some(8_388_608);
        assert_eq!(
            configuration(&options, 1, Some(2)),
            "listen: \"127.0.0.1:1\"\nhttp: \"127.0.0.1:2\"\nmax_payload: 8388608\n\
             jetstream {\n  store_dir: \"/da\\\"ta/jetstream\"\n  sync_interval: \"always\"\n}\n"
        );
    }
}
