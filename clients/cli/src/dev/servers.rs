//! Paths of the servers that are not ours.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use kairo_local::{LocalError, Tools};

/// The programs that `scripts/setup` finds or installs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ServerPrograms {
    /// The nats-server.
    pub(crate) nats: PathBuf,
    /// The folder of `initdb` and `postgres`.
    pub(crate) postgres: PathBuf,
}

impl ServerPrograms {
    /// Finds them by the environment, else those that `scripts/setup` installed in the checkout around `dir`.
    pub(crate) fn find(environment: &BTreeMap<String, String>, dir: &Path) -> Result<Self, LocalError> {
        let given = |name: &str| environment.get(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        Ok(Self {
            nats: match given("KAIRO_NATS_SERVER") {
                Some(path) => path,
                None => Tools::find(dir)?.nats_server()?.to_owned(),
            },
            postgres: match given("KAIRO_POSTGRES_BIN") {
                Some(path) => path,
                None => Tools::find(dir)?.postgres_bin()?.to_owned(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_goes_before_what_setup_wrote() {
        let dir = tempfile::tempdir().unwrap();
        let tools = dir.path().join(".kairo/tools");
        std::fs::create_dir_all(&tools).unwrap();
        std::fs::write(tools.join("env"), "KAIRO_NATS_SERVER=/setup/nats\nKAIRO_POSTGRES_BIN=/setup/pg\n").unwrap();
        let environment = BTreeMap::from([("KAIRO_NATS_SERVER".to_owned(), "/mine/nats".to_owned())]);
        let found = ServerPrograms::find(&environment, dir.path()).unwrap();
        assert_eq!(found, ServerPrograms { nats: "/mine/nats".into(), postgres: "/setup/pg".into() });
    }
}
