//! The models that a command asks by itself, without a service: those that agent-runtime is configured with.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use clap::Args;
use data_encoding::HEXLOWER;
use kairo_agent_runtime::Config;
use kairo_core::config;

use crate::{Error, dev, endpoint::DATA_DIR, secret_key};

/// Where a `kairo dev` that runs says what it has for models, in its data folder.
const FILE: &str = "models.json";
/// How variables begin that say which models there are.
const VARIABLES: &str = "KAIRO_MODELS__";

#[derive(Debug, Args)]
pub struct Options {
    /// The file that configures agent-runtime, and with it the models to ask; without it and without KAIRO_MODELS__… in the
    /// environment they are those of the `kairo dev` that runs in this folder or one above it
    #[arg(long, env = "KAIRO_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Options {
    /// What agent-runtime is configured with, and whether any model is named there.
    ///
    /// # Errors
    /// All mistakes in it.
    pub fn load(&self) -> Result<(Config, bool), Error> {
        let mut environment: BTreeMap<String, String> = config::environment().collect();
        let is_named = self.config.is_some() || environment.keys().any(|name| name.starts_with(VARIABLES));
        let here = match is_named {
            true => BTreeMap::new(),
            false => found(&environment)?,
        };
        let has_models = is_named || !here.is_empty();
        environment.extend(here);
        if let Ok(key) = secret_key::find() {
            let name = "KAIRO_AGENT_RUNTIME__SECRET_KEY".to_owned();
            environment.entry(name).or_insert_with(|| HEXLOWER.encode(&key));
        }
        let file = self.config.iter().flat_map(|file| ["--config".to_owned(), file.display().to_string()]);
        let config = config::load::<Config>(file, environment);
        let config = config.map_err(|error| Error::Usage(format!("the configuration of models: {error}")))?;
        Ok((config, has_models))
    }
}

/// What the environment names as `kairo dev` takes it, else what one has that runs here.
fn found(environment: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Error> {
    if let Some(settings) = dev::endpoint_settings(environment) {
        return Ok(settings.into_iter().collect());
    }
    let here = std::env::current_dir().map_err(Error::file("look at", "."))?;
    let written = here.ancestors().find_map(|dir| fs::read(dir.join(DATA_DIR).join(FILE)).ok());
    Ok(written.and_then(|written| serde_json::from_slice(&written).ok()).unwrap_or_default())
}

/// Tells commands what a `kairo dev` has for models; nobody is told any more when this is dropped.
#[derive(Debug)]
pub struct Published(PathBuf);

impl Published {
    pub fn new(data_dir: &Path, settings: &[(String, String)]) -> io::Result<Self> {
        let file = data_dir.join(FILE);
        // Keys are only referred to.
        let told: BTreeMap<&String, &String> = settings
            .iter()
            .filter(|(name, _)| name.starts_with(VARIABLES))
            .map(|(name, value)| (name, value))
            .collect();
        fs::write(&file, serde_json::to_vec(&told)?)?;
        Ok(Self(file))
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
