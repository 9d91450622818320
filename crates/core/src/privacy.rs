//! The configuration of sealing users' content in the log.

mod aws;
mod kms;
mod vault;

use std::time::Duration;

use kairo_events::sealing::{self, SealingKey};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

pub use self::kms::{KeyManagement, KmsConfig, KmsError, WRAPPED};
use crate::config::{Mistake, Secret, Validate, check};

/// Pauses between two times that a key management service is asked which does not answer, at first and at last.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// Sealing what users say and are told.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PrivacyConfig {
    /// Key under which the data keys of users are kept, 32 bytes as 64 hexadecimal digits or base64, or `wrapped:` and what `privacy.kms`
    /// has wrapped it as (`kairo privacy wrap`); empty seals nothing, and then nobody can be forgotten. Every service needs the same.
    /// Default empty.
    pub master_key: Secret,
    /// Keys that were `privacy.master_key` before, as long as data keys are kept under them. Default empty.
    pub old_master_keys: Vec<Secret>,
    /// The key management service that unwraps keys which begin with `wrapped:`. Default none.
    pub kms: KmsConfig,
    /// Longest time that a replica uses a user's data keys before it reads them again, in milliseconds. After that time
    /// no replica seals with a key that is to be destroyed. Default 10000.
    pub key_age_ms: u64,
    /// Data keys that a replica keeps in memory. Default 10000.
    pub keys_in_memory: usize,
}

impl Default for PrivacyConfig {
    fn default() -> Self {
        Self {
            master_key: Secret::default(),
            old_master_keys: Vec::new(),
            kms: KmsConfig::default(),
            key_age_ms: 10_000,
            keys_in_memory: 10_000,
        }
    }
}

impl PrivacyConfig {
    /// Returns a copy with every `wrapped:` key unwrapped. Sends no request if none is wrapped.
    ///
    /// # Errors
    /// Returns an error if the key management service does not answer, or does not unwrap a key.
    pub async fn unwrap_keys(&self) -> Result<Self, KmsError> {
        let mut copy = self.clone();
        if !self.has_wrapped_keys() {
            return Ok(copy);
        }
        let kms = self.kms.open()?;
        for key in std::iter::once(&mut copy.master_key).chain(&mut copy.old_master_keys) {
            if let Some(ciphertext) = wrapped_ciphertext(key) {
                let bytes = kms.unwrap(ciphertext).await?;
                *key =
                    Secret::new(encode_key(&SealingKey::try_from(bytes).map_err(|_| sealing::SealingError::NotAKey)?));
            }
        }
        Ok(copy)
    }

    /// Like [`unwrap_keys`](Self::unwrap_keys), but retries after 1 to 30 s while the key management service is
    /// unavailable; `waits` receives the reason. `None` once `shutdown` is cancelled.
    ///
    /// # Errors
    /// Returns an error if the service refuses, which no retry would change.
    pub async fn unwrap_keys_until(
        &self,
        shutdown: &CancellationToken,
        waits: impl Fn(Option<String>),
    ) -> Result<Option<Self>, KmsError> {
        let [mut pause, longest] = PAUSES;
        loop {
            let unwrapped = self.unwrap_keys().await;
            waits(unwrapped.as_ref().err().map(ToString::to_string));
            match unwrapped {
                Err(error @ KmsError::Unavailable(_)) => {
                    tracing::warn!(%error, "waiting for the key management service")
                }
                unwrapped => return unwrapped.map(Some),
            }
            if shutdown.run_until_cancelled(sleep(pause)).await.is_none() {
                return Ok(None);
            }
            pause = (pause * 2).min(longest);
        }
    }

    fn has_wrapped_keys(&self) -> bool {
        std::iter::once(&self.master_key).chain(&self.old_master_keys).any(|key| wrapped_ciphertext(key).is_some())
    }

    /// The master keys, the one in force first; none where nothing is sealed.
    pub fn master_keys(&self) -> Vec<SealingKey> {
        let all = std::iter::once(&self.master_key).chain(&self.old_master_keys);
        if self.master_key.is_empty() {
            return Vec::new();
        }
        all.filter_map(|key| sealing::parse_key(key.expose()).ok()).collect()
    }
}

impl Validate for PrivacyConfig {
    fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        let help = "make one with: openssl rand -hex 32";
        let given = Some(("master_key", &self.master_key)).filter(|(_, key)| !key.is_empty());
        let old = self.old_master_keys.iter().map(|key| ("old_master_keys", key));
        for (field, key) in given.into_iter().chain(old).filter(|(_, key)| wrapped_ciphertext(key).is_none()) {
            if let Err(problem) = sealing::parse_key(key.expose()) {
                mistakes.push(Mistake::new(field, problem.to_string(), help));
            }
        }
        mistakes.extend(self.kms.mistakes(self.has_wrapped_keys()));
        if self.master_key.is_empty() && !self.old_master_keys.is_empty() {
            let problem = "expected privacy.master_key with it".to_owned();
            mistakes.push(Mistake::new("old_master_keys", problem, "new data keys are kept under the key in force"));
        }
        check(&mut mistakes, "key_age_ms", self.key_age_ms, 100..=600_000, "milliseconds");
        check(&mut mistakes, "keys_in_memory", self.keys_in_memory as u64, 16..=10_000_000, "data keys");
        mistakes
    }
}

/// The ciphertext of a key that is configured as `wrapped:…`.
fn wrapped_ciphertext(key: &Secret) -> Option<&str> {
    key.expose().trim().strip_prefix(WRAPPED)
}

/// A key of 256 random bits.
///
/// # Errors
/// Returns an error if the machine has no random bytes to give.
pub fn new_key() -> std::io::Result<SealingKey> {
    let mut key = SealingKey::default();
    getrandom::fill(&mut key)?;
    Ok(key)
}

/// A key as it is configured: 64 hexadecimal digits.
pub fn encode_key(key: &SealingKey) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}
