//! How content of users is sealed in the log.

use kairo_events::sealing::{self, Key};
use serde::{Deserialize, Serialize};

use crate::config::{Mistake, Secret, Validate, check};

/// Sealing what users say and are told.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PrivacyConfig {
    /// Key under which the data keys of users are kept, 32 bytes as 64 hexadecimal digits or base64; empty seals nothing, and then
    /// nobody can be forgotten. Every service needs the same. Default empty.
    pub master_key: Secret,
    /// Keys that were `privacy.master_key` before, as long as data keys are kept under them. Default empty.
    pub old_master_keys: Vec<Secret>,
    /// How long a replica goes by what it has read of a user's data keys, in milliseconds. So long it takes until nobody seals with a
    /// key any more that is to be destroyed. Default 10000.
    pub key_age_ms: u64,
    /// Data keys that a replica keeps in memory. Default 10000.
    pub keys_in_memory: usize,
}

impl Default for PrivacyConfig {
    fn default() -> Self {
        Self { master_key: Secret::default(), old_master_keys: Vec::new(), key_age_ms: 10_000, keys_in_memory: 10_000 }
    }
}

impl PrivacyConfig {
    /// The master keys, the one in force first; none where nothing is sealed.
    pub fn master_keys(&self) -> Vec<Key> {
        let all = std::iter::once(&self.master_key).chain(&self.old_master_keys);
        if self.master_key.is_empty() {
            return Vec::new();
        }
        all.filter_map(|key| sealing::key(key.expose()).ok()).collect()
    }
}

impl Validate for PrivacyConfig {
    fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        let help = "make one with: openssl rand -hex 32";
        if !self.master_key.is_empty()
            && let Err(problem) = sealing::key(self.master_key.expose())
        {
            mistakes.push(Mistake::new("master_key", problem.to_string(), help));
        }
        for old in &self.old_master_keys {
            if let Err(problem) = sealing::key(old.expose()) {
                mistakes.push(Mistake::new("old_master_keys", problem.to_string(), help));
            }
        }
        if self.master_key.is_empty() && !self.old_master_keys.is_empty() {
            let problem = "expected privacy.master_key with it".to_owned();
            mistakes.push(Mistake::new("old_master_keys", problem, "new data keys are kept under the key in force"));
        }
        check(&mut mistakes, "key_age_ms", self.key_age_ms, 100..=600_000, "milliseconds");
        check(&mut mistakes, "keys_in_memory", self.keys_in_memory as u64, 16..=10_000_000, "data keys");
        mistakes
    }
}
