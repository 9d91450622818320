//! Storage of sign-in records.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use jiff::Timestamp;
use kairo_core::bus::{Bus, BusError};
use kairo_core::ids;
use kairo_core::subjects::SIGN_INS_BUCKET;

use super::sign_in_record::SignInRecord;

/// A record, and the revision to write the next one with; 0 for none.
#[derive(Clone, Debug, Default)]
pub struct StoredRecord {
    pub record: SignInRecord,
    pub revision: u64,
}

/// The reason a record was not read or not written.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// Somebody else wrote it meanwhile.
    #[error("somebody else changed the sign-in at the same time; try again")]
    Conflict,
    #[error("{0}")]
    Other(String),
}

/// A store of records by key: the name of a server, or the names of a server and a user joined by a dot. The replicas
/// of one service share it.
pub trait SignInVault: fmt::Debug + Send + Sync {
    /// Returns the record of a key, or an empty one if there is none.
    fn load<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<StoredRecord, VaultError>>;

    /// Writes a record if nobody else did since it was read; returns its new revision. Deletes an empty one.
    fn save<'a>(&'a self, key: &'a str, kept: &'a StoredRecord) -> BoxFuture<'a, Result<u64, VaultError>>;

    /// Returns the records of all users at a server, at most 1 024, with the names of the users.
    fn load_users<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Vec<(String, SignInRecord)>, VaultError>>;

    fn now(&self) -> Timestamp;

    /// Returns the name under which this replica writes, different for each replica.
    fn holder(&self) -> &str;
}

/// A vault in memory, which ends with its process. For tests, and for whoever has no bus.
#[derive(Debug, Default)]
pub struct MemoryVault {
    kept: Arc<Mutex<BTreeMap<String, StoredRecord>>>,
    holder: String,
}

impl MemoryVault {
    /// Returns a vault with the same records, as another replica has them.
    #[must_use]
    pub fn for_replica(&self, holder: &str) -> Self {
        Self { kept: Arc::clone(&self.kept), holder: holder.to_owned() }
    }
}

impl SignInVault for MemoryVault {
    fn load<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<StoredRecord, VaultError>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned();
        Box::pin(std::future::ready(Ok(kept.unwrap_or_default())))
    }

    fn save<'a>(&'a self, key: &'a str, kept: &'a StoredRecord) -> BoxFuture<'a, Result<u64, VaultError>> {
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let current = all.get(key).map_or(0, |kept| kept.revision);
        if current != kept.revision {
            return Box::pin(std::future::ready(Err(VaultError::Conflict)));
        }
        let revision = current + 1;
        all.insert(key.to_owned(), StoredRecord { record: kept.record.clone(), revision });
        Box::pin(std::future::ready(Ok(revision)))
    }

    fn load_users<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Vec<(String, SignInRecord)>, VaultError>> {
        let all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let of_server = all.iter().filter_map(|(key, kept)| Some((user_of_key(key, server)?, kept.record.clone())));
        Box::pin(std::future::ready(Ok(of_server.collect())))
    }

    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn holder(&self) -> &str {
        &self.holder
    }
}

/// The vault of an installation: the bucket `KAIRO_SIGN_INS`, each record sealed under `privacy.master_key`.
pub struct BucketVault(Bus);

impl fmt::Debug for BucketVault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("vault of sign-ins")
    }
}

impl BucketVault {
    pub fn new(bus: &Bus) -> Self {
        Self(bus.clone())
    }

    async fn read_record(&self, key: &str) -> Result<StoredRecord, VaultError> {
        let (revision, entry) = self.0.read_value_with_revision(SIGN_INS_BUCKET, key).await.map_err(other_error)?;
        let Some(entry) = entry else { return Ok(StoredRecord { revision, ..StoredRecord::default() }) };
        Ok(StoredRecord { record: self.open_record(key, &entry.value), revision })
    }

    /// Opens a sealed record. One sealed under a key that is no longer configured is lost: somebody signs in again.
    fn open_record(&self, key: &str, sealed: &[u8]) -> SignInRecord {
        let opened = self.0.open_under_master(ids::from_parts("sign-in", &[key]), sealed);
        let record = opened.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        if record.is_none() {
            tracing::warn!(key, "what was kept of a sign-in cannot be opened with privacy.master_key; sign in again");
        }
        record.unwrap_or_default()
    }

    async fn read_users(&self, server: &str) -> Result<Vec<(String, SignInRecord)>, VaultError> {
        let entries = self.0.read_values(SIGN_INS_BUCKET, &format!("{server}.*")).await.map_err(other_error)?;
        let of_server = entries
            .into_iter()
            .filter_map(|entry| Some((user_of_key(&entry.key, server)?, self.open_record(&entry.key, &entry.value))));
        Ok(of_server.collect())
    }

    async fn write_record(&self, key: &str, kept: &StoredRecord) -> Result<u64, VaultError> {
        if kept.record.is_empty() && kept.revision > 0 {
            return match self.0.delete_value(SIGN_INS_BUCKET, key, kept.revision).await {
                Ok(()) => Ok(0),
                Err(BusError::Conflict { .. }) => Err(VaultError::Conflict),
                Err(error) => Err(other_error(error)),
            };
        }
        let bytes = serde_json::to_vec(&kept.record).map_err(other_error)?;
        let sealed = self
            .0
            .seal_under_master(ids::from_parts("sign-in", &[key]), &bytes)
            .map_err(|error| VaultError::Other(format!("{error}; tokens are kept only under privacy.master_key")))?;
        match self.0.update_value(SIGN_INS_BUCKET, key, sealed, kept.revision).await {
            Err(BusError::Conflict { .. }) => Err(VaultError::Conflict),
            outcome => outcome.map_err(other_error),
        }
    }
}

impl SignInVault for BucketVault {
    fn load<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<StoredRecord, VaultError>> {
        Box::pin(self.read_record(key))
    }

    fn save<'a>(&'a self, key: &'a str, kept: &'a StoredRecord) -> BoxFuture<'a, Result<u64, VaultError>> {
        Box::pin(self.write_record(key, kept))
    }

    fn load_users<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Vec<(String, SignInRecord)>, VaultError>> {
        Box::pin(self.read_users(server))
    }

    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn holder(&self) -> &str {
        self.0.instance.as_str()
    }
}

/// The key of a user's record. Names hold no dots.
pub fn user_key(server: &str, user: &str) -> String {
    format!("{server}.{user}")
}

fn user_of_key(key: &str, server: &str) -> Option<String> {
    key.strip_prefix(server)?.strip_prefix('.').map(str::to_owned)
}

fn other_error(error: impl fmt::Display) -> VaultError {
    VaultError::Other(error.to_string())
}
