//! One way of configuring every service: a struct's `Default`, over it a TOML file, over that the
//! environment.
//!
//! * The file is `--config FILE` or `KAIRO_CONFIG`. All services may share one: a section that
//!   belongs to another service ([`SECTIONS`]) is passed over, anything else unknown is refused,
//!   unless `config.lenient_until` says that a newer build may know it.
//! * A variable is `KAIRO_<SECTION>__<KEY>[__<SUBKEY>]`, in either case; only names with a `__`
//!   are configuration, and an empty value counts as unset. Lists of strings are comma separated;
//!   any other list or table is JSON text.
//! * Quantities carry their unit in the key: `_ms`, `_s`, `_bytes`.
//! * All mistakes are named at once. Their texts never quote a value, since a value put under the
//!   wrong key may be a secret.
//!
//! Rules for a configuration struct: each top-level field is a section; `Serialize` skips no field
//! (a key that is not serialized again was not read, hence unknown); no `serde(alias)`; and a
//! hand-written `Deserialize` does not quote values in its errors.

mod leniency;
mod mistake;
mod resolve;
mod secret;
mod sources;

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
};

use jiff::Timestamp;
use serde::{Serialize, de::DeserializeOwned};

pub use leniency::ReadingConfig;
pub use mistake::{ConfigError, ConfigOrigin, Mistake, Validate, check};
pub use resolve::resolve;
pub use secret::Secret;
pub use sources::ConfigFile;

/// The sections that one shared file may hold, whichever service reads it.
pub const SECTIONS: &[&str] = &[
    "agent_runtime",
    "archive",
    "bus",
    "cli",
    "config",
    "gateway",
    "health",
    "model_sim",
    "models",
    "nats",
    "postgres",
    "privacy",
    "signing",
    "process_supervisor",
    "projector",
    "router",
    "search",
    "telemetry",
    "tool_runner",
];

/// The exit status for a bad configuration: `EX_USAGE` of `sysexits.h`.
pub const EXIT_STATUS: u8 = 64;

/// Longest configuration or secret file that is read, in bytes.
pub const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// A configuration that can be used.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedConfig<T> {
    pub config: T,
    /// Keys that this build does not know, which a newer one may (`config.lenient_until`).
    pub passed_over: Vec<Mistake>,
}

/// Loads a service's configuration.
///
/// `args` are those after the program's name, of which only `--config FILE` is known; a program
/// with subcommands takes them off first. `environment` is passed in, usually [`environment()`].
///
/// # Errors
/// [`ConfigError`] names every mistake of every source; the caller exits with [`EXIT_STATUS`].
pub fn load<T>(
    args: impl IntoIterator<Item = String>,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<LoadedConfig<T>, ConfigError>
where
    T: Serialize + DeserializeOwned + Default + Validate,
{
    let environment: BTreeMap<String, String> = environment.into_iter().collect();
    let (named, mut mistakes) = sources::config_argument(args);
    let named = named.or_else(|| {
        let name = environment.get("KAIRO_CONFIG")?;
        (!name.is_empty()).then(|| name.clone())
    });
    let file = named.and_then(|name| match read_bounded(&name) {
        Ok(text) => Some(ConfigFile { name, text }),
        Err(error) => {
            mistakes.push(Mistake::unreadable_file(name, &error));
            None
        }
    });
    match resolve(file.as_ref(), &environment, &read_bounded, Timestamp::now()) {
        Ok(loaded) if mistakes.is_empty() => Ok(loaded),
        Ok(_) => Err(ConfigError::from(mistakes)),
        Err(error) => {
            mistakes.extend(error.into_mistakes());
            Err(ConfigError::from(mistakes))
        }
    }
}

/// The process's environment, for [`load`]. Variables that are not UTF-8 are left out.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

fn read_bounded(path: &str) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        let reason = format!("longer than {MAX_FILE_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
