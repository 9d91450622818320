//! Storage of API keys: hashed and signed, in a bucket that outlives the read model, with a copy in the memory of every
//! gateway that follows the bucket. A gateway that loses NATS goes on with the keys it knows; it can do little without
//! NATS anyway.
//!
//! An entry that no gateway has signed is no key. Entries that the server has written here for somebody else
//! ([`kairo_core::copies`]) are removed: the bucket takes few entries per key, and refuses further ones rather than
//! drop the first.

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use jiff::Timestamp;
use kairo_core::{
    bus::{
        Bus, BusError,
        kv::{OPERATION, bucket_subject},
        port::StreamTail,
    },
    copies::COPY_OF,
    record::RawMessage,
    signing::{EntrySigner, SignedContent},
    subjects::KEYS_BUCKET,
};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::{
    ActiveKey, ApiKey, Caller, Rights, oidc::TrustedIssuers, secret, secret::SecretHash, tickets::TicketIdentity,
};
use crate::{config::GatewayConfig, problem::Problem};

/// Keys there may be at once.
pub const MAX_KEYS: usize = 10_000;
/// Pause before the bucket is followed anew when that broke off.
const PAUSE: Duration = Duration::from_secs(1);
const READING: &str = "reading the API keys";
/// Timeout of the first reading of the bucket.
const LOADED_WITHIN: Duration = Duration::from_secs(10);

/// A key as stored in the bucket, with the hash of its text.
#[derive(Serialize, Deserialize)]
struct StoredKey {
    #[serde(flatten)]
    key: ApiKey,
    /// SHA-256 of the key's text, in hexadecimal digits.
    hash: String,
}

/// Every key that was not revoked.
#[derive(Clone)]
pub struct KeyStore {
    bus: Bus,
    known: Arc<RwLock<HashMap<String, Arc<ActiveKey>>>>,
    /// Of `gateway.admin_key`.
    admin: Option<SecretHash>,
    required: bool,
    /// The rights of callers on this machine that bring no key.
    on_loopback: Arc<Rights>,
    signatures: EntrySigner,
    /// Compared with when the key is unknown, so that this takes as long.
    nobodys: SecretHash,
}

/// The content of a bucket entry.
enum KeyEntry {
    Key(SecretHash, Box<ApiKey>),
    /// Revoked, or of a gateway of another version, which may say less than the entry before.
    Ended,
    /// Not signed with a key that is configured.
    Unsigned,
    /// Nothing that a gateway writes.
    Damaged,
}

type KeyTail = Box<dyn StreamTail>;

/// The failure to read the bucket.
type FollowError = Box<dyn std::error::Error + Send + Sync>;

impl KeyStore {
    /// Reads the bucket and follows it until shutdown.
    pub async fn open(
        bus: &Bus,
        config: &GatewayConfig,
        signatures: &EntrySigner,
        shutdown: CancellationToken,
    ) -> Result<Self, BusError> {
        let admin = Some(config.admin_key.expose()).filter(|key| !key.is_empty()).map(SecretHash::of);
        let required = config.requires_key();
        let bus = bus.clone();
        let signatures = signatures.clone();
        let scopes = config.loopback_scopes.clone();
        let on_loopback = Arc::new(Rights { scopes, agents: Vec::new(), user: None });
        let known = Arc::default();
        let nobodys = SecretHash::of("");
        let keys = Self { bus, known, admin, required, on_loopback, signatures, nobodys };
        let following = keys.load_bucket().await.map_err(|source| BusError::Unavailable { doing: READING, source })?;
        if required && keys.admin.is_none() && keys.list().is_empty() && config.oidc.is_empty() {
            tracing::warn!("a key is required and there is none: set gateway.admin_key, and make keys with it");
        }
        let follower = keys.clone();
        tokio::spawn(async move { shutdown.run_until_cancelled(follower.follow_bucket(following)).await });
        Ok(keys)
    }

    /// Returns the caller who brings this key; none if the key is not in force, without revealing whether it ever was.
    pub fn authenticate_key(&self, key: Option<&str>, now: Timestamp) -> Option<Caller> {
        let Some(key) = key else { return (!self.required).then(|| self.loopback_caller()) };
        if self.admin.as_ref().is_some_and(|admin| admin.matches(key)) {
            return Some(Caller::Administrator);
        }
        let held = secret::key_id(key).and_then(|id| self.lock_known().get(id).cloned());
        let matches = held.as_ref().map_or(&self.nobodys, |held| &held.hash).matches(key);
        held.filter(|held| matches && held.is_in_force(now)).map(Caller::Holder)
    }

    /// Somebody who brings no key.
    pub fn loopback_caller(&self) -> Caller {
        Caller::Loopback(self.on_loopback.clone())
    }

    /// Returns the identity to store in a ticket issued to this caller.
    pub fn ticket_identity(&self, caller: &Caller) -> TicketIdentity {
        match caller {
            Caller::Loopback(_) => TicketIdentity::Anyone,
            Caller::Administrator => TicketIdentity::Administrator(self.admin_fingerprint()),
            Caller::Holder(held) => TicketIdentity::Key(held.key.key_id.clone()),
            Caller::Bearer(token) => TicketIdentity::Bearer(token.as_ref().clone()),
        }
    }

    /// Returns the caller a ticket stands for; none if the key or token behind it is no longer valid.
    pub fn caller_for(&self, stands_for: &TicketIdentity, oidc: &TrustedIssuers, now: Timestamp) -> Option<Caller> {
        match stands_for {
            TicketIdentity::Anyone => (!self.required).then(|| self.loopback_caller()),
            TicketIdentity::Administrator(of) => {
                (self.admin.is_some() && *of == self.admin_fingerprint()).then_some(Caller::Administrator)
            }
            TicketIdentity::Key(id) => {
                self.lock_known().get(id).filter(|held| held.is_in_force(now)).cloned().map(Caller::Holder)
            }
            TicketIdentity::Bearer(token) => oidc.renew_caller(token, now),
        }
    }

    /// Of the administrator's key: a ticket does not outlive it.
    fn admin_fingerprint(&self) -> String {
        self.admin.as_ref().map(|admin| SecretHash::of(&admin.to_hex()).to_hex()).unwrap_or_default()
    }

    /// Every key, the newest first.
    pub fn list(&self) -> Vec<ApiKey> {
        let mut keys: Vec<ApiKey> = self.lock_known().values().map(|held| held.key.clone()).collect();
        keys.sort_by(|one, other| (other.created, &other.key_id).cmp(&(one.created, &one.key_id)));
        keys
    }

    /// Keeps a new key of which `text` is the secret.
    pub async fn create(&self, key: ApiKey, text: &str) -> Result<(), Problem> {
        if self.lock_known().len() >= MAX_KEYS {
            return Err(Problem::conflict(format!("there are {MAX_KEYS} keys; revoke some first")));
        }
        let hash = SecretHash::of(text);
        let stored = StoredKey { key: key.clone(), hash: hash.to_hex() };
        let value = self.signatures.encode_entry(KEYS_BUCKET, &key.key_id, &stored);
        let value = value.map_err(|error| Problem::internal(&error))?;
        self.bus.update_value(KEYS_BUCKET, &key.key_id, value.into(), 0).await?;
        self.remember_key(key, hash);
        Ok(())
    }

    /// From when this returns, here, and as soon as they hear of it, at the other gateways, the key is refused and what
    /// goes on under it ends. False when there is no such key.
    pub async fn revoke(&self, key_id: &str) -> Result<bool, BusError> {
        let mut is_there = false;
        for raw in self.bus.read_revisions(KEYS_BUCKET, key_id).await? {
            match self.read_entry(key_id, &raw) {
                KeyEntry::Key(..) | KeyEntry::Unsigned => is_there = true,
                KeyEntry::Ended => is_there = false,
                // The bucket has to have room for what revokes the key.
                KeyEntry::Damaged => self.bus.erase_revision(KEYS_BUCKET, raw.sequence).await?,
            }
        }
        if is_there {
            self.bus.mark_deleted(KEYS_BUCKET, key_id).await?;
        }
        self.forget(key_id);
        Ok(is_there)
    }

    fn lock_known(&self) -> std::sync::RwLockReadGuard<'_, HashMap<String, Arc<ActiveKey>>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember_key(&self, key: ApiKey, hash: SecretHash) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // Told twice of the same, what goes on under it goes on.
        if known.get(&key.key_id).is_none_or(|held| held.key != key) {
            let held = ActiveKey { hash, revoked: CancellationToken::new(), key };
            if let Some(before) = known.insert(held.key.key_id.clone(), Arc::new(held)) {
                before.revoked.cancel();
            }
        }
    }

    fn forget(&self, key_id: &str) {
        let removed = self.known.write().unwrap_or_else(PoisonError::into_inner).remove(key_id);
        if let Some(held) = removed {
            held.revoked.cancel();
        }
    }

    /// Reads the whole bucket. What the tail brings afterwards is what changes.
    async fn load_bucket(&self) -> Result<KeyTail, FollowError> {
        let mut tail = self.bus.tail_bucket(KEYS_BUCKET).await?;
        let mut there = HashSet::new();
        let reading = async {
            while tail.pending() > 0 {
                for raw in tail.next_batch().await? {
                    there.extend(self.apply_entry(&raw).await);
                }
            }
            Ok::<_, FollowError>(())
        };
        tokio::time::timeout(LOADED_WITHIN, reading).await??;
        let gone: Vec<String> = self.lock_known().keys().filter(|key_id| !there.contains(*key_id)).cloned().collect();
        gone.iter().for_each(|key_id| self.forget(key_id));
        Ok(tail)
    }

    async fn follow_bucket(self, tail: KeyTail) {
        let mut tail = Some(tail);
        loop {
            match tail.take() {
                Some(tail) => {
                    let Err(error) = self.follow_tail(tail).await;
                    tracing::warn!(%error, "API keys are not followed");
                }
                None => match self.load_bucket().await {
                    Ok(again) => {
                        tail = Some(again);
                        continue;
                    }
                    Err(error) => tracing::warn!(%error, "API keys cannot be read"),
                },
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn follow_tail(&self, mut tail: KeyTail) -> Result<Infallible, FollowError> {
        loop {
            for raw in tail.next_batch().await? {
                self.apply_entry(&raw).await;
            }
        }
    }

    /// Takes in an entry; the id of its key, if it is one.
    async fn apply_entry(&self, raw: &RawMessage) -> Option<String> {
        let key_id = raw.subject.strip_prefix(&bucket_subject(KEYS_BUCKET, ""))?;
        match self.read_entry(key_id, raw) {
            KeyEntry::Key(hash, key) => {
                self.remember_key(*key, hash);
                return Some(key_id.to_owned());
            }
            KeyEntry::Ended => self.forget(key_id),
            KeyEntry::Unsigned => {
                tracing::warn!(
                    key_id,
                    "an API key is not signed with signing.key and is refused: make another with `kairo keys create`"
                );
            }
            KeyEntry::Damaged => {
                tracing::warn!(key_id, "removing what no gateway has written among the API keys");
                if let Err(error) = self.bus.erase_revision(KEYS_BUCKET, raw.sequence).await {
                    tracing::warn!(key_id, %error, "it stays there for now, and counts for nothing");
                }
            }
        }
        None
    }

    fn read_entry(&self, key_id: &str, raw: &RawMessage) -> KeyEntry {
        if raw.header(COPY_OF).is_some() {
            return KeyEntry::Damaged;
        }
        if raw.header(OPERATION).is_some() {
            return KeyEntry::Ended;
        }
        match self.signatures.decode_entry::<StoredKey>(KEYS_BUCKET, key_id, &raw.payload) {
            SignedContent::Written(stored) if stored.key.key_id == key_id => match SecretHash::from_hex(&stored.hash) {
                Some(hash) => KeyEntry::Key(hash, Box::new(stored.key)),
                None => KeyEntry::Ended,
            },
            SignedContent::Written(_) | SignedContent::Unknown => KeyEntry::Ended,
            SignedContent::Unsigned => KeyEntry::Unsigned,
            SignedContent::Damaged => KeyEntry::Damaged,
        }
    }
}
