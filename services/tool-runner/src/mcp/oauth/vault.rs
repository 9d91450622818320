//! Where records of sign-ins are kept.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use jiff::Timestamp;
use kairo_core::bus::{Bus, BusError};
use kairo_core::ids;
use kairo_core::subjects::SIGN_INS_BUCKET;

use super::record::Record;

/// A record, and the revision to write the next one with; 0 for none.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    pub record: Record,
    pub revision: u64,
}

/// Why a record was not read or not written.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// Somebody else wrote it meanwhile.
    #[error("somebody else changed the sign-in at the same time; try again")]
    Conflict,
    #[error("{0}")]
    Other(String),
}

/// Where records are kept, by the names of their servers. Replicas of one service share it.
pub trait Vault: fmt::Debug + Send + Sync {
    /// The record of a server; an empty one where there is none.
    fn load<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Kept, VaultError>>;

    /// Writes a record if nobody else did since it was read; its new revision.
    fn save<'a>(&'a self, server: &'a str, kept: &'a Kept) -> BoxFuture<'a, Result<u64, VaultError>>;

    fn now(&self) -> Timestamp;

    /// Who writes here, different for each replica.
    fn holder(&self) -> &str;
}

/// A vault in memory, which ends with its process. For tests, and for whoever has no bus.
#[derive(Debug, Default)]
pub struct MemoryVault {
    kept: Arc<Mutex<BTreeMap<String, Kept>>>,
    holder: String,
}

impl MemoryVault {
    /// The same records, as another replica has them.
    #[must_use]
    pub fn of_replica(&self, holder: &str) -> Self {
        Self { kept: Arc::clone(&self.kept), holder: holder.to_owned() }
    }
}

impl Vault for MemoryVault {
    fn load<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Kept, VaultError>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(server).cloned();
        Box::pin(std::future::ready(Ok(kept.unwrap_or_default())))
    }

    fn save<'a>(&'a self, server: &'a str, kept: &'a Kept) -> BoxFuture<'a, Result<u64, VaultError>> {
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let current = all.get(server).map_or(0, |kept| kept.revision);
        if current != kept.revision {
            return Box::pin(std::future::ready(Err(VaultError::Conflict)));
        }
        let revision = current + 1;
        all.insert(server.to_owned(), Kept { record: kept.record.clone(), revision });
        Box::pin(std::future::ready(Ok(revision)))
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

    async fn read(&self, server: &str) -> Result<Kept, VaultError> {
        let (revision, entry) = self.0.value_to_replace(SIGN_INS_BUCKET, server).await.map_err(other)?;
        let Some(entry) = entry else { return Ok(Kept { revision, ..Kept::default() }) };
        // What was sealed under a key that is not configured any more is lost: somebody signs in again.
        let opened = self.0.open_under_master(ids::named("sign-in", &[server]), &entry.value);
        let record = opened.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        if record.is_none() {
            tracing::warn!(
                server,
                "what was kept of a sign-in cannot be opened with privacy.master_key; sign in again"
            );
        }
        Ok(Kept { record: record.unwrap_or_default(), revision })
    }

    async fn write(&self, server: &str, kept: &Kept) -> Result<u64, VaultError> {
        let bytes = serde_json::to_vec(&kept.record).map_err(other)?;
        let sealed = self
            .0
            .seal_under_master(ids::named("sign-in", &[server]), &bytes)
            .map_err(|error| VaultError::Other(format!("{error}; tokens are kept only under privacy.master_key")))?;
        match self.0.update_value(SIGN_INS_BUCKET, server, sealed, kept.revision).await {
            Err(BusError::Conflict { .. }) => Err(VaultError::Conflict),
            outcome => outcome.map_err(other),
        }
    }
}

impl Vault for BucketVault {
    fn load<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Kept, VaultError>> {
        Box::pin(self.read(server))
    }

    fn save<'a>(&'a self, server: &'a str, kept: &'a Kept) -> BoxFuture<'a, Result<u64, VaultError>> {
        Box::pin(self.write(server, kept))
    }

    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn holder(&self) -> &str {
        self.0.instance.as_str()
    }
}

fn other(error: impl fmt::Display) -> VaultError {
    VaultError::Other(error.to_string())
}
