//! The models that a command asks by itself, without a service: those that the services are configured with, or those of the
//! `kairo dev` that runs here.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use clap::Args;
use data_encoding::HEXLOWER;
use kairo_agent_runtime::{AgentRuntimeConfig, ModelsConfig};
use kairo_core::{
    config::{self, Mistake, Validate},
    prices::ModelPrices,
    service::section,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::Url;

use crate::{Error, dev, endpoint::DATA_DIR, secret_key};

/// File in the data folder in which a running `kairo dev` publishes its model settings.
const FILE: &str = "models.json";
/// Prefix of the environment variables that configure models.
const VARIABLES: &str = "KAIRO_MODELS__";
/// Suffix of the variables that hold the address of a model.
const PLACE: &str = "__BASE_URL";
/// Suffixes of the variables that are published. Fallbacks and whole tiers are not: their values may hold a key.
const TOLD: [&str; 6] = [PLACE, "__MODEL", "__API_KEY", "__PRICE", "__TOKEN_FACTOR", "__CONTEXT_TOKENS"];
/// Variables of the gateway that hold prices and their currency; they are published as well.
const PRICES: [&str; 2] = ["KAIRO_GATEWAY__PRICES", "KAIRO_GATEWAY__CURRENCY"];

/// Models to ask
#[derive(Clone, Debug, Default, Args)]
#[group(id = "models")]
pub struct ModelsOptions {
    /// The file that configures the services, and with them the models to ask; without it, KAIRO_CONFIG, and KAIRO_MODELS__…__BASE_URL
    /// in the environment they are those of the `kairo dev` that runs in this folder or one above it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// The part of the services' configuration that concerns models.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelsConfiguration {
    pub agent_runtime: AgentRuntimeConfig,
    pub models: ModelsConfig,
    pub gateway: GatewayPrices,
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GatewayPrices {
    pub prices: ModelPrices,
    pub currency: String,
    /// The gateway's other settings, which only the gateway can validate.
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl Validate for ModelsConfiguration {
    fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        section(&mut mistakes, "agent_runtime", &self.agent_runtime);
        section(&mut mistakes, "models", &self.models);
        mistakes
    }
}

impl ModelsOptions {
    /// Loads the services' configuration. The flag is true if there is a configuration file, or if the environment or a
    /// running `kairo dev` names a model.
    ///
    /// # Errors
    /// Fails if the configuration has mistakes, and lists them all.
    pub fn load(&self) -> Result<(ModelsConfiguration, bool), Error> {
        let mut environment: BTreeMap<String, String> = config::environment().collect();
        let has_file = self.config.is_some() || environment.get("KAIRO_CONFIG").is_some_and(|file| !file.is_empty());
        let here = if has_file { BTreeMap::new() } else { find_dev_settings(&environment)? };
        let has_models = has_file || !here.is_empty() || has_model_variable(&environment, "");
        for (name, value) in here {
            environment.entry(name).or_insert(value);
        }
        if let Ok(key) = secret_key::find() {
            let name = "KAIRO_AGENT_RUNTIME__SECRET_KEY".to_owned();
            environment.entry(name).or_insert_with(|| HEXLOWER.encode(&key));
        }
        let file = self.config.iter().flat_map(|file| ["--config".to_owned(), file.display().to_string()]);
        let configured = config::load(file, environment);
        let configured = configured.map_err(|error| Error::Usage(format!("the configuration of models: {error}")))?;
        Ok((configured.config, has_models))
    }
}

/// Returns true if a model variable whose name ends with `end` has a value.
fn has_model_variable(environment: &BTreeMap<String, String>, end: &str) -> bool {
    let says = |(name, value): (&String, &String)| {
        let name = name.to_ascii_uppercase();
        name.starts_with(VARIABLES) && name.ends_with(end) && !value.is_empty()
    };
    environment.iter().any(says)
}

/// Finds the settings of the endpoint that the environment names in the way of `kairo dev`, else those that a running
/// `kairo dev` published in this folder or one above it. Empty if the environment already gives a model's address.
fn find_dev_settings(environment: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Error> {
    if has_model_variable(environment, PLACE) {
        return Ok(BTreeMap::new());
    }
    if let Some(settings) = dev::endpoint_settings(environment) {
        return Ok(settings.into_iter().collect());
    }
    let here = std::env::current_dir().map_err(Error::file("look at", "."))?;
    let written = here.ancestors().find_map(|dir| fs::read(dir.join(DATA_DIR).join(FILE)).ok());
    Ok(written.and_then(|written| serde_json::from_slice(&written).ok()).unwrap_or_default())
}

/// Tells commands what a `kairo dev` has for models; nobody is told any more when this is dropped.
#[derive(Debug)]
pub struct PublishedModels(PathBuf);

impl PublishedModels {
    /// Publishes those variables of its services that configure models and their prices.
    pub fn new(data_dir: &Path, settings: &[(String, String)]) -> io::Result<Self> {
        let file = data_dir.join(FILE);
        let told: BTreeMap<&String, String> =
            settings.iter().filter_map(|(name, value)| Some((name, published_value(name, value)?))).collect();
        fs::write(&file, serde_json::to_vec(&told)?)?;
        Ok(Self(file))
    }
}

impl Drop for PublishedModels {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Returns the value of a variable as published, without secrets; `None` withholds it. An API key is published only as
/// a reference (`env:` or `file:`).
fn published_value(name: &str, value: &str) -> Option<String> {
    let upper = name.to_ascii_uppercase();
    let is_of_model = upper.starts_with(VARIABLES) && TOLD.iter().any(|end| upper.ends_with(end));
    if !is_of_model && !PRICES.contains(&upper.as_str()) {
        return None;
    }
    match upper {
        name if name.ends_with(PLACE) => without_credentials(value),
        name if name.ends_with("__API_KEY") => {
            ["env:", "file:"].iter().any(|reference| value.starts_with(reference)).then(|| value.to_owned())
        }
        _ => Some(value.to_owned()),
    }
}

/// An address without the name and the password in it; none where it is no address.
pub fn without_credentials(url: &str) -> Option<String> {
    let mut parsed = Url::parse(url).ok()?;
    if parsed.username().is_empty() && parsed.password().is_none() {
        return Some(url.to_owned());
    }
    parsed.set_username("").and_then(|()| parsed.set_password(None)).ok()?;
    Some(parsed.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_models_holds_no_secret() {
        let dir = tempfile::tempdir().unwrap();
        let settings = [
            ("KAIRO_MODELS__HEAVY__BASE_URL", "http://joe:hush-hush@gpu:8000/v1"),
            ("KAIRO_MODELS__HEAVY__MODEL", "m"),
            ("KAIRO_MODELS__HEAVY__API_KEY", "env:OPENAI_API_KEY"),
            ("KAIRO_MODELS__HEAVY__PRICE", r#"{"input":1,"output":2}"#),
            ("KAIRO_MODELS__HEAVY__FALLBACKS", r#"[{"api_key":"hush-hush"}]"#),
            ("KAIRO_MODELS__FAST", r#"{"api_key":"hush-hush"}"#),
            ("KAIRO_MODELS__LIGHT__API_KEY", "hush-hush"),
            ("KAIRO_MODELS__LIGHT__BASE_URL", "no address: hush-hush"),
            ("KAIRO_GATEWAY__ADMIN_KEY", "hush-hush"),
            ("OPENAI_API_KEY", "hush-hush"),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let published = PublishedModels::new(dir.path(), &settings).unwrap();
        let written = fs::read_to_string(dir.path().join(FILE)).unwrap();
        assert!(!written.contains("hush-hush"), "{written}");
        let written: BTreeMap<String, String> = serde_json::from_str(&written).unwrap();
        let told: Vec<&str> = written.keys().map(|name| name.trim_start_matches(VARIABLES)).collect();
        assert_eq!(told, ["HEAVY__API_KEY", "HEAVY__BASE_URL", "HEAVY__MODEL", "HEAVY__PRICE"]);
        assert_eq!(written["KAIRO_MODELS__HEAVY__BASE_URL"], "http://gpu:8000/v1");
        drop(published);
        assert!(!dir.path().join(FILE).exists());
    }

    #[test]
    fn an_address_without_credentials_stays_as_it_is() {
        for url in ["http://127.0.0.1:7430", "https://api.openai.com/v1", "http://gpu/a@b"] {
            assert_eq!(without_credentials(url).as_deref(), Some(url));
        }
        assert_eq!(without_credentials("https://joe@gpu/v1").as_deref(), Some("https://gpu/v1"));
        assert_eq!(without_credentials("gpu"), None);
    }
}
