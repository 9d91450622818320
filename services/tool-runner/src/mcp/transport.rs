//! Ways to reach an MCP server: a child process or an HTTP endpoint.

mod http_client;
mod message_stream;
mod response;
mod sse_parser;
mod stdio;

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use process_wrap::tokio::{CommandWrap, ProcessGroup};
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransport, StreamableHttpClientTransportConfig};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{ChildStderr, Command};

use self::http_client::McpHttpClient;
use self::stdio::StdioTransport;
use super::health::HealthNotes;
use super::oauth::{AuthorizedClient, SignIn};
use crate::config::McpServerConfig;

/// Longest piece of a server's standard error that is logged at once, in bytes.
const MAX_LOG_LINE: u64 = 2048;

/// The reason a server could not be started or reached.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    #[error("{0} is no executable in PATH; install it or give its path as command")]
    NoSuchProgram(String),
    #[error("the program could not be started: {0}")]
    Spawn(#[from] std::io::Error),
    #[error("the HTTP client could not be set up: {0}")]
    HttpClient(#[from] reqwest::Error),
    #[error("the value of header {0} has characters that HTTP does not allow")]
    HeaderValue(String),
}

/// Starts the program of a server.
///
/// It gets PATH, HOME and what is configured, and nothing else of our environment, which holds
/// secrets that are none of its business. It leads a process group, so that what it starts can be
/// stopped with it, and it is killed by the kernel when we die without having stopped it.
///
/// # Errors
/// When the program is not found or cannot be run.
pub fn spawn_program(
    server: &McpServerConfig,
    program: &str,
    notes: &HealthNotes,
) -> Result<StdioTransport, TransportError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let program = find_program(program, &path).ok_or_else(|| TransportError::NoSuchProgram(program.to_owned()))?;
    let mut command = command_with_death_signal(program, &path);
    command.args(&server.args).env_clear().env("PATH", &path);
    if let Some(home) = std::env::var_os("HOME") {
        command.env("HOME", home);
    }
    for (name, value) in &server.env {
        command.env(name, value.expose());
    }
    if let Some(directory) = &server.cwd {
        command.current_dir(directory);
    }
    let mut group = CommandWrap::from(command);
    group.wrap(ProcessGroup::leader());
    let (process, stderr) = StdioTransport::spawn(group, notes.clone())?;
    if let Some(stderr) = stderr {
        // Ends with the stream, which ends with the last process that holds it.
        tokio::spawn(log_stderr(server.name.clone(), stderr, notes.clone()));
    }
    Ok(process)
}

/// A connection to an HTTP endpoint. Nothing is sent yet.
///
/// # Errors
/// When a value cannot be a header.
pub fn connect_http(
    server: &McpServerConfig,
    url: &str,
    parallel: usize,
    notes: &HealthNotes,
    sign_in: Option<Arc<SignIn>>,
) -> Result<StreamableHttpClientTransport<AuthorizedClient<McpHttpClient>>, TransportError> {
    let mut headers = HashMap::new();
    for (name, value) in &server.headers {
        let invalid = || TransportError::HeaderValue(name.clone());
        let mut value: HeaderValue = value.expose().parse().map_err(|_| invalid())?;
        value.set_sensitive(true);
        headers.insert(name.parse::<HeaderName>().map_err(|_| invalid())?, value);
    }
    let config =
        StreamableHttpClientTransportConfig::with_uri(url).custom_headers(headers).max_concurrent_requests(parallel);
    let client = AuthorizedClient::new(McpHttpClient::new(notes.clone())?, sign_in);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// `setpriv` sets the parent-death signal and becomes the program; without it, which only odd
/// installations lack, a server still sees the end of its standard input when we die.
///
/// The signal is sent when the *thread* that started the program ends. Servers are started by
/// tasks of the runtime, whose threads live as long as it does.
fn command_with_death_signal(program: PathBuf, path: &OsString) -> Command {
    match find_program("setpriv", path) {
        Some(setpriv) => {
            let mut command = Command::new(setpriv);
            command.args(["--pdeathsig", "KILL", "--"]).arg(program);
            command
        }
        None => Command::new(program),
    }
}

/// A path is taken as it is; a name is looked up in PATH.
fn find_program(program: &str, path: &OsString) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|program| is_executable(program));
    }
    std::env::split_paths(path).map(|directory| directory.join(program)).find(|candidate| is_executable(candidate))
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

async fn log_stderr(server: String, stderr: ChildStderr, notes: HealthNotes) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut piece = (&mut stderr).take(MAX_LOG_LINE);
        match piece.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                notes.write_stderr(&line);
                let text = String::from_utf8_lossy(&line);
                tracing::debug!(server, "{}", text.trim_end());
            }
        }
    }
}
