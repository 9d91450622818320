//! The servers that `scripts/setup` installed, from the file it wrote.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::{NatsOptions, PgOptions, error::LocalError};

/// The folder of the tools in a checkout.
const DIR: &str = ".kairo/tools";

/// The tools listed in `.kairo/tools/env`.
#[derive(Debug, Clone)]
pub struct Tools {
    dir: PathBuf,
    paths: BTreeMap<String, PathBuf>,
}

impl Tools {
    /// The tools of the checkout that this was built from, for tests.
    pub fn of_this_checkout() -> Result<Self, LocalError> {
        Self::find(Path::new(env!("CARGO_MANIFEST_DIR")))
    }

    /// The tools of the checkout that `start` lies in.
    pub fn find(start: &Path) -> Result<Self, LocalError> {
        start
            .ancestors()
            .map(|dir| dir.join(DIR))
            .find_map(|dir| {
                let text = std::fs::read_to_string(dir.join("env")).ok()?;
                Some(Self { paths: parse(&text), dir })
            })
            .ok_or_else(|| LocalError::NoTools { start: start.to_owned() })
    }

    /// The nats-server binary.
    pub fn nats_server(&self) -> Result<&Path, LocalError> {
        self.need("KAIRO_NATS_SERVER")
    }

    /// The folder of Postgres's server binaries.
    pub fn postgres_bin(&self) -> Result<&Path, LocalError> {
        self.need("KAIRO_POSTGRES_BIN")
    }

    /// A nats-server with its data in this folder.
    pub fn nats_in(&self, data_dir: impl Into<PathBuf>) -> Result<NatsOptions, LocalError> {
        Ok(NatsOptions::new(self.nats_server()?, data_dir))
    }

    /// A Postgres for tests, with its data in this folder until it is dropped.
    pub fn ephemeral_postgres_in(&self, data_dir: impl Into<PathBuf>) -> Result<PgOptions, LocalError> {
        let mut options = PgOptions::new(self.postgres_bin()?, data_dir);
        options.template = Some(self.postgres_templates());
        options.ephemeral = true;
        Ok(options)
    }

    /// Returns the folder of ready-made database clusters; see [`crate::PgOptions::template`].
    fn postgres_templates(&self) -> PathBuf {
        self.dir.join("postgres-templates")
    }

    /// A stdio MCP server from PyPI, `mcp-server-time`; there after `scripts/setup --tests`.
    pub fn mcp_time(&self) -> Result<&Path, LocalError> {
        self.need("KAIRO_MCP_TIME")
    }

    /// A stdio MCP server from npm, `server-everything`; `None` on a machine without Node.
    pub fn mcp_everything(&self) -> Option<&Path> {
        self.need("KAIRO_MCP_EVERYTHING").ok()
    }

    /// An SMTP server from PyPI, `aiosmtpd`; there after `scripts/setup --tests`.
    pub fn smtp_server(&self) -> Result<&Path, LocalError> {
        self.need("KAIRO_SMTP_SERVER")
    }

    /// An IMAP server from PyPI, `pymap`; there after `scripts/setup --tests`.
    pub fn imap_server(&self) -> Result<&Path, LocalError> {
        self.need("KAIRO_IMAP_SERVER")
    }

    /// A Python that finds the worker kit of this checkout and what it needs; there after `scripts/setup --tests`.
    pub fn worker_python(&self) -> Result<&Path, LocalError> {
        self.need("KAIRO_WORKER_PYTHON")
    }

    /// The compiler of TypeScript, which builds the worker kit of this checkout; `None` on a machine without Node 20.
    pub fn worker_tsc(&self) -> Option<&Path> {
        self.need("KAIRO_WORKER_TSC").ok()
    }

    fn need(&self, key: &'static str) -> Result<&Path, LocalError> {
        self.paths
            .get(key)
            .map(PathBuf::as_path)
            .ok_or_else(|| LocalError::MissingTool { key, path: self.dir.join("env") })
    }
}

fn parse(text: &str) -> BTreeMap<String, PathBuf> {
    text.lines().filter_map(|line| line.split_once('=')).map(|(key, value)| (key.to_owned(), value.into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_are_found_from_anywhere_in_the_checkout() {
        let checkout = tempfile::tempdir().unwrap();
        let deep = checkout.path().join("clients/cli");
        std::fs::create_dir_all(&deep).unwrap();
        assert!(matches!(Tools::find(&deep), Err(LocalError::NoTools { .. })));
        let dir = checkout.path().join(DIR);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("env"), "KAIRO_NATS_SERVER=/a b/nats=server\n").unwrap();
        let tools = Tools::find(&deep).unwrap();
        assert_eq!(tools.nats_server().unwrap(), Path::new("/a b/nats=server"));
        assert!(matches!(tools.postgres_bin(), Err(LocalError::MissingTool { .. })));
    }
}
