//! Servers of others that tests talk to, such as one for mail.

use std::{ffi::OsString, path::Path, time::Duration};

use tempfile::TempDir;

use crate::{ChildProcess, LocalError, ProcessSpec, free_port};

/// Far above what a Python or Node.js program needs to start.
const DEADLINE: Duration = Duration::from_secs(60);

/// A server on a port of its own, with a folder that is removed with it. Dropping it kills it.
#[derive(Debug)]
pub struct ThirdPartyServer {
    pub process: ChildProcess,
    pub port: u16,
    pub folder: TempDir,
}

impl ThirdPartyServer {
    /// Starts `program` on `PORT` of its environment, with the arguments that it needs for this port and folder, and waits
    /// for a line of output by which `is_ready`.
    pub async fn start(
        program: &Path,
        is_ready: fn(&str) -> bool,
        arguments: impl FnOnce(u16, &Path) -> Vec<OsString>,
    ) -> Result<Self, LocalError> {
        let folder = tempfile::tempdir().map_err(LocalError::io("cannot create a folder in", std::env::temp_dir()))?;
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        // Should somebody else take it first, the server says so and ends.
        let port = free_port(None)?;
        let mut spec = ProcessSpec::new(name, program, folder.path().join("server.log"));
        spec = spec.args(arguments(port, folder.path()));
        spec.env.push(("PORT".to_owned(), port.to_string()));
        spec.ready = is_ready;
        let mut process = ChildProcess::spawn(spec).await?;
        process.wait_until_ready(DEADLINE).await?;
        Ok(Self { process, port, folder })
    }

    /// The MCP server `server-everything` over streamable HTTP.
    pub async fn mcp_everything(program: &Path) -> Result<Self, LocalError> {
        Self::start(program, |line| line.contains("listening on port"), |_, _| vec!["streamableHttp".into()]).await
    }

    /// The URL of its path.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}
