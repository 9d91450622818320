//! The key under which agents' secrets are sealed: where the command finds it, and where `kairo dev` keeps its own.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use kairo_core::{
    config::{self, LoadedConfig, Mistake, Secret, Validate},
    privacy, sealing,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Error, endpoint::DATA_DIR};

/// The key, for people and programs that are not services.
const VARIABLE: &str = "KAIRO_SECRET_KEY";
/// Secret key file in the data folder of `kairo dev`. Beside it are the master key, under which data keys are kept, and
/// the gateway's signing key.
const FILE: &str = "dev/secret-key";
const MASTER_FILE: &str = "dev/master-key";
const SIGNING_FILE: &str = "dev/signing-key";

/// The part of the services' configuration that the command reads.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct SecretKeySettings {
    agent_runtime: AgentRuntime,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct AgentRuntime {
    secret_key: Secret,
    /// The other settings, which only agent-runtime can validate.
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl Validate for SecretKeySettings {
    fn mistakes(&self) -> Vec<Mistake> {
        Vec::new()
    }
}

/// The key that the environment, the configuration or a `kairo dev` has.
pub fn find() -> Result<sealing::SealingKey, Error> {
    let named = std::env::var(VARIABLE).ok().filter(|key| !key.trim().is_empty());
    if let Some(key) = named {
        return parse_key(&key, VARIABLE);
    }
    let LoadedConfig::<SecretKeySettings> { config: settings, .. } = config::load(Vec::new(), config::environment())
        .map_err(|error| Error::Advice(format!("the configuration cannot be read: {error}")))?;
    if !settings.agent_runtime.secret_key.is_empty() {
        return parse_key(settings.agent_runtime.secret_key.expose(), "agent_runtime.secret_key");
    }
    let here = std::env::current_dir().map_err(Error::file("look at", "."))?;
    let kept = here.ancestors().find_map(|dir| fs::read_to_string(dir.join(DATA_DIR).join(FILE)).ok());
    let key = kept.ok_or_else(|| {
        Error::Advice(format!("no key is known: set {VARIABLE} to the one that agent-runtime has as secret_key"))
    })?;
    parse_key(&key, "the secret-key of kairo dev")
}

fn parse_key(key: &str, what: &str) -> Result<sealing::SealingKey, Error> {
    sealing::parse_key(key).map_err(|error| Error::Advice(format!("{what} is no key: {error}")))
}

/// The key in this data folder, made when there is none. It outlives a fresh start, like the log's copies elsewhere that
/// only it opens.
pub fn load_or_create(data_dir: &Path) -> Result<String, Error> {
    load_or_create_file(data_dir.join(FILE))
}

/// The master key in this data folder, in the same way.
pub fn load_or_create_master(data_dir: &Path) -> Result<String, Error> {
    load_or_create_file(data_dir.join(MASTER_FILE))
}

/// The gateway's signing key in this data folder, in the same way.
pub fn load_or_create_signing(data_dir: &Path) -> Result<String, Error> {
    load_or_create_file(data_dir.join(SIGNING_FILE))
}

fn load_or_create_file(file: PathBuf) -> Result<String, Error> {
    match fs::read_to_string(&file) {
        Ok(key) => {
            let key = key.trim().to_owned();
            parse_key(&key, &file.display().to_string())?;
            Ok(key)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let key = privacy::new_key().map_err(Error::file("make a key for", &file))?;
            let key = privacy::encode_key(&key);
            let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
            made.and_then(|mut made| writeln!(made, "{key}")).map_err(Error::file("write", &file))?;
            Ok(key)
        }
        Err(error) => Err(Error::file("read", &file)(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_key_of_a_folder_is_made_once_and_nobody_elses_to_read() {
        let data = tempfile::tempdir().unwrap();
        fs::create_dir(data.path().join("dev")).unwrap();
        let key = load_or_create(data.path()).unwrap();
        assert_eq!(load_or_create(data.path()).unwrap(), key);
        sealing::parse_key(&key).unwrap();
        let mode = fs::metadata(data.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::write(data.path().join(FILE), "hunter2").unwrap();
        assert!(!load_or_create(data.path()).unwrap_err().to_string().contains("hunter2"));
    }

    #[test]
    fn a_configuration_of_agent_runtime_is_read_for_its_key() {
        let key = "07".repeat(32);
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = format!("[agent_runtime]\nmax_steps = 3\nsecret_key = \"{key}\"\n[models.heavy]\nmodel = \"x\"\n");
        fs::write(file.path(), text).unwrap();
        let environment = [("KAIRO_CONFIG".to_owned(), file.path().display().to_string())];
        let settings: SecretKeySettings = config::load(Vec::new(), environment).unwrap().config;
        assert_eq!(settings.agent_runtime.secret_key.expose(), key);
        let environment = [
            ("KAIRO_AGENT_RUNTIME__SECRET_KEY".to_owned(), key.clone()),
            ("KAIRO_AGENT_RUNTIME__MODEL_TRIES".to_owned(), "2".to_owned()),
            ("KAIRO_NATS__URL".to_owned(), "nats://x".to_owned()),
        ];
        let settings: SecretKeySettings = config::load(Vec::new(), environment).unwrap().config;
        assert_eq!(settings.agent_runtime.secret_key.expose(), key);
    }
}
