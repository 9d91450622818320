//! A private Postgres server.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection};
use tokio::time::timeout;

use crate::cluster::{self, PostgresCluster, SUPERUSER};
use crate::database::{self, Database};
use crate::error::LocalError;
use crate::nats::TlsFiles;
use crate::placement::remove_dir;
use crate::port::{free_port, is_free};
use crate::process::{ChildProcess, Exit, ProcessSpec};
use crate::process_tree;

/// Logged when the server takes connections, after any recovery from a crash.
const READY: &str = "database system is ready to accept connections";

/// The folder of the passwords of roles, beside the cluster.
const ROLES: &str = "roles";

/// Ports to try for a server if somebody takes its port in the last moment.
const PORT_ATTEMPTS: usize = 5;

/// Options for running a Postgres.
#[derive(Debug, Clone)]
pub struct PgOptions {
    /// Holds `initdb` and `postgres`, version 14 or newer.
    pub bin_dir: PathBuf,
    /// Holds the cluster and the passwords; made if it is not there. As root it may become a
    /// symbolic link, because the server, which then runs as another user, must reach the data.
    pub data_dir: PathBuf,
    /// The file that the server logs to.
    pub log: PathBuf,
    /// The port to try first; any free one if `None`.
    pub port: Option<u16>,
    /// A folder for ready-made clusters, shared by all tests: copying one is five times quicker than
    /// initdb. All its copies have the same password.
    pub template: Option<PathBuf>,
    /// For tests: the data need not survive a crash of the machine and is removed on drop.
    pub ephemeral: bool,
    /// The certificate with which it proves its identity and encrypts: then connections must be encrypted. Without,
    /// they are plain.
    pub tls: Option<TlsFiles>,
    /// Connections it accepts.
    pub max_connections: u16,
    /// Longest time to start, recovery included.
    pub deadline: Duration,
}

impl PgOptions {
    /// A server on any free port, that keeps its data safe, with 200 connections and 60 s to start.
    pub fn new(bin_dir: impl Into<PathBuf>, data_dir: impl Into<PathBuf>) -> Self {
        let data_dir = data_dir.into();
        Self {
            bin_dir: bin_dir.into(),
            log: data_dir.with_added_extension("log"),
            data_dir,
            port: None,
            template: None,
            ephemeral: false,
            tls: None,
            max_connections: 200,
            deadline: Duration::from_secs(60),
        }
    }
}

/// A running, stopped or killed Postgres; dropping it kills it.
#[derive(Debug)]
pub struct Postgres {
    options: PgOptions,
    cluster: PostgresCluster,
    port: u16,
    process: ChildProcess,
}

impl Postgres {
    /// Starts it, making its data first if need be, and waits until it answers a query.
    pub async fn start(options: PgOptions) -> Result<Self, LocalError> {
        let cluster = open_cluster(&options).await?;
        let mut preferred = options.port;
        let mut attempt = 1;
        loop {
            let port = free_port(preferred)?;
            match launch(&options, &cluster, port).await {
                Ok(process) => {
                    return Ok(Self { options, cluster, port, process });
                }
                Err(LocalError::Exited { .. }) if attempt < PORT_ATTEMPTS && !is_free(port) => {
                    attempt += 1;
                    preferred = options.port.map(|_| port);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Removes the data of a server that does not run, if there is any, also where `data_dir` became
    /// a link.
    pub fn remove_data(data_dir: &Path) -> Result<(), LocalError> {
        match remove_dir(data_dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(LocalError::io("cannot remove", data_dir)(error))
            }
            _ => Ok(()),
        }
    }

    /// The URL of a database of this server, with its password: not to be logged.
    pub fn url(&self, database: &str) -> String {
        database_url(&self.cluster.password, self.port, database)
    }

    /// The port it listens on, the same after a restart.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Makes a database if it is not there, and returns its URL.
    pub async fn create_database(&self, name: &str) -> Result<String, LocalError> {
        if !is_plain_name(name) {
            return Err(LocalError::DatabaseName { name: name.to_owned() });
        }
        let mut connection = connect(&self.cluster.password, self.port).await?;
        let exists = sqlx::query("SELECT 1 FROM pg_database WHERE datname = $1")
            .bind(name)
            .fetch_optional(&mut connection)
            .await?
            .is_some();
        if !exists {
            // A name cannot be a parameter; it was checked above.
            let statement = format!("CREATE DATABASE \"{name}\"");
            sqlx::query(AssertSqlSafe(statement)).execute(&mut connection).await?;
        }
        connection.close().await?;
        Ok(self.url(name))
    }

    /// Makes Kairo's database if it is not there, and a role for each service; what is in it becomes theirs, as from a
    /// version in which all were one.
    pub async fn create_kairo_database(&self, name: &str) -> Result<Database, LocalError> {
        self.create_database(name).await?;
        let passwords = database::load_passwords(&self.options.data_dir.join(ROLES))?;
        let made = Database::new(self.port, name, &self.cluster.password, &passwords);
        made.make_roles(&passwords).await?;
        Ok(made)
    }

    /// Its main process, for looking at its exit.
    pub fn process(&self) -> &ChildProcess {
        &self.process
    }

    /// SIGKILL to the server and all its backends; returns when all are gone.
    pub async fn kill9(&self) -> Result<Exit, LocalError> {
        if let Some(exit) = self.process.exit() {
            return Ok(exit);
        }
        if let Some(pid) = self.pid() {
            let deadline = self.options.deadline;
            let all_gone = tokio::task::spawn_blocking(move || {
                let backends = process_tree::kill_with_children(pid);
                process_tree::wait_until_gone(&backends, deadline)
            });
            if !matches!(all_gone.await, Ok(true)) {
                return Err(LocalError::Unkillable { name: "a postgres backend".to_owned(), deadline });
            }
        }
        self.process.kill9().await
    }

    /// Starts it again on the same port and data, after stopping it if it runs.
    pub async fn restart(&mut self) -> Result<(), LocalError> {
        self.stop(self.options.deadline).await?;
        // Postgres takes a zombie under the id in its lock file for a running server.
        self.process.reap();
        self.process = launch(&self.options, &self.cluster, self.port).await?;
        Ok(())
    }

    /// Stops it in order without waiting for its clients ("fast"); kills it after `grace`.
    pub async fn stop(&self, grace: Duration) -> Result<Exit, LocalError> {
        if let Some(exit) = self.process.exit() {
            return Ok(exit);
        }
        self.process.signal(Signal::INT);
        self.process.thaw();
        match timeout(grace, self.process.wait_for_exit()).await {
            Ok(exit) => Ok(exit),
            Err(_) => self.kill9().await,
        }
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.process.pid()).ok()?)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.process.exit().is_none()
            && let Some(pid) = self.pid()
        {
            process_tree::kill_with_children(pid);
        }
        if self.options.ephemeral {
            free_shared_memory(&self.cluster.data_dir());
            // A leftover costs disk, nothing else, and there is nobody to tell.
            let _ = self.cluster.remove();
        }
    }
}

/// Removes what a server that was killed leaves in the kernel and would take up again when it is started: a segment of
/// shared memory. The kernel has room for some thousands.
fn free_shared_memory(data: &Path) {
    let lock = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
    // Its seventh line: the segment's key, and its id.
    let Some(id) = lock.lines().nth(6).and_then(|line| line.split_whitespace().nth(1)) else { return };
    let _ = Command::new("ipcrm").args(["-m", id]).stderr(Stdio::null()).status();
}

async fn open_cluster(options: &PgOptions) -> Result<PostgresCluster, LocalError> {
    let options = options.clone();
    let opened = tokio::task::spawn_blocking(move || {
        let template = options.template.as_deref();
        PostgresCluster::open_or_create(&options.bin_dir, &options.data_dir, template, options.ephemeral)
    });
    opened.await.map_err(|error| LocalError::Spawn { name: "initdb".to_owned(), source: error.into() })?
}

/// Waits for the end of a server that lost its parent and removes its lock file.
///
/// Killing us with -9 kills the server too, but not its backends, which need a moment to notice; and its lock file then
/// names a process that may be a zombie for as long as nobody reaps it, or by now another process altogether.
async fn clear_remains(cluster: &PostgresCluster, deadline: Duration) -> Result<(), LocalError> {
    let data = cluster.data_dir();
    let lock = data.join("postmaster.pid");
    if !lock.exists() {
        return Ok(());
    }
    let here = data.clone();
    let ended = tokio::task::spawn_blocking(move || {
        process_tree::wait_until_gone(&process_tree::processes_working_in(&here), deadline)
    });
    if !matches!(ended.await, Ok(true)) {
        return Err(LocalError::InUse { path: data });
    }
    match fs::remove_file(&lock) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(LocalError::io("cannot remove", lock)(error)),
        _ => Ok(()),
    }
}

async fn launch(options: &PgOptions, cluster: &PostgresCluster, port: u16) -> Result<ChildProcess, LocalError> {
    clear_remains(cluster, options.deadline).await?;
    if let Some(files) = &options.tls {
        cluster.encrypt(files)?;
    }
    let mut spec = ProcessSpec::new("postgres", options.bin_dir.join("postgres"), &options.log)
        .args(["-D".into(), cluster.data_dir().into_os_string()]);
    for setting in settings(options, port) {
        spec = spec.args(["-c".to_owned(), setting]);
    }
    spec.dir = Some(cluster.data_dir());
    spec.account = cluster.account;
    spec.ready = |line| line.contains(READY);
    let mut process = ChildProcess::spawn(spec).await?;
    process.wait_until_ready(options.deadline).await?;
    connect(&cluster.password, port).await?.close().await?;
    Ok(process)
}

/// Given on the command line, so that data from an earlier version follows too.
fn settings(options: &PgOptions, port: u16) -> Vec<String> {
    let mut settings = vec![
        "listen_addresses=127.0.0.1".to_owned(),
        format!("port={port}"),
        "unix_socket_directories=".to_owned(),
        format!("max_connections={}", options.max_connections),
        "logging_collector=off".to_owned(),
        "log_destination=stderr".to_owned(),
    ];
    if options.tls.is_some() {
        settings.extend(cluster::ENCRYPTED.map(str::to_owned));
    }
    if options.ephemeral {
        // Commits stay synchronous: they must survive the death of the server, if not the machine's.
        settings.extend(["fsync=off", "full_page_writes=off", "shared_buffers=32MB"].map(str::to_owned));
        // In the folder of its data, with which it is removed: of a server that was killed it would stay in memory.
        settings.push("dynamic_shared_memory_type=mmap".to_owned());
    }
    settings
}

async fn connect(password: &str, port: u16) -> Result<PgConnection, LocalError> {
    let options: PgConnectOptions = database_url(password, port, "postgres").parse()?;
    Ok(options.connect().await?)
}

fn database_url(password: &str, port: u16, database: &str) -> String {
    format!("postgres://{SUPERUSER}:{password}@127.0.0.1:{port}/{database}")
}

fn is_plain_name(name: &str) -> bool {
    (1..=63).contains(&name.len())
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_reach_a_statement() {
        assert!(is_plain_name("kairo_2"));
        for name in ["", "2kairo", "Kairo", "a\"; drop", &"a".repeat(64)] {
            assert!(!is_plain_name(name), "{name:?}");
        }
    }

    #[test]
    fn only_ephemeral_data_may_be_lost() {
        let mut options = PgOptions::new("/bin", "/data");
        assert!(!settings(&options, 1).contains(&"fsync=off".to_owned()));
        options.ephemeral = true;
        assert!(settings(&options, 1).contains(&"fsync=off".to_owned()));
    }
}
