//! `kairo privacy wrap`

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use kairo_core::{
    config::{Mistake, Validate},
    privacy::{self, PrivacyConfig, WRAPPED},
    service::section,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{Error, commands::provision::load_settings, terminal};

pub(super) const EXAMPLES: &str = "\
Examples, with a key of Vault's transit engine and with one of AWS:
  export KAIRO_PRIVACY__KMS__KIND=vault KAIRO_PRIVACY__KMS__KEY=kairo
  export KAIRO_PRIVACY__KMS__URL=https://vault.example:8200
  export KAIRO_PRIVACY__KMS__TOKEN=file:/run/secrets/vault-token
  kairo privacy wrap

  export KAIRO_PRIVACY__KMS__KIND=aws KAIRO_PRIVACY__KMS__KEY=arn:aws:kms:eu-central-1:…
  kairo privacy wrap

Configured like services, by --config, KAIRO_CONFIG and KAIRO_PRIVACY__…. Where
privacy.master_key is set, that key is wrapped, so that nothing has to be sealed anew; else a
new one is made. It is never shown. What is printed is for privacy.master_key of every
service: each has it unwrapped when it starts. See docs/privacy.md.

Exit status: 0 if the key was wrapped and opened again, 64 for a bad configuration, else 1.";

#[derive(Debug, Args)]
pub(super) struct PrivacyWrapArgs {
    /// The file that configures services
    #[arg(long, env = "KAIRO_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

/// The section `privacy` of the services' configuration; the others are passed over.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PrivacySettings {
    privacy: PrivacyConfig,
}

impl Validate for PrivacySettings {
    fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        section(&mut mistakes, "privacy", &self.privacy);
        mistakes
    }
}

pub(super) async fn run(arguments: &PrivacyWrapArgs, json: bool) -> Result<ExitCode, Error> {
    let config: PrivacySettings = match load_settings(arguments.config.as_deref()) {
        Ok(settings) => settings,
        Err(status) => return Ok(status),
    };
    let failed = |error: &dyn std::fmt::Display| Error::Advice(error.to_string());
    let kms = config.privacy.kms.open().map_err(|error| failed(&error))?;
    let given = config.privacy.unwrap_keys().await.map_err(|error| failed(&error))?.master_keys();
    let key = match given.first() {
        Some(key) => *key,
        None => privacy::new_key().map_err(|error| failed(&error))?,
    };
    let wrapped = kms.wrap(&key).await.map_err(|error| failed(&error))?;
    // A key that is not opened again loses whatever is sealed under it.
    if kms.unwrap(&wrapped).await.map_err(|error| failed(&error))? != key {
        return Err(failed(&"the key management service unwraps another key than it has wrapped"));
    }
    let wrapped = format!("{WRAPPED}{wrapped}");
    match json {
        true => terminal::json(&json!({ "master_key": wrapped }))?,
        false => terminal::line(wrapped)?,
    }
    Ok(ExitCode::SUCCESS)
}
