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
        kv::{OPERATION, subject_of},
        port::Tail,
    },
    copies::COPY_OF,
    record::Raw,
    signing::{Content, Signatures},
    subjects::KEYS_BUCKET,
};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::{Caller, Held, Key, Rights, oidc::Oidc, secret, secret::Hash, tickets::StandsFor};
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
struct Stored {
    #[serde(flatten)]
    key: Key,
    /// SHA-256 of the key's text, in hexadecimal digits.
    hash: String,
}

/// Every key that was not revoked.
#[derive(Clone)]
pub struct Keys {
    bus: Bus,
    known: Arc<RwLock<HashMap<String, Arc<Held>>>>,
    /// Of `gateway.admin_key`.
    admin: Option<Hash>,
    required: bool,
    /// The rights of callers on this machine that bring no key.
    on_loopback: Arc<Rights>,
    signatures: Signatures,
    /// Compared with when the key is unknown, so that this takes as long.
    nobodys: Hash,
}

/// The content of a bucket entry.
enum Entry {
    Key(Hash, Box<Key>),
    /// Revoked, or of a gateway of another version, which may say less than the entry before.
    Ended,
    /// Not signed with a key that is configured.
    Unsigned,
    /// Nothing that a gateway writes.
    Damaged,
}

type Following = Box<dyn Tail>;

/// The failure to read the bucket.
type Error = Box<dyn std::error::Error + Send + Sync>;

impl Keys {
    /// Reads the bucket and follows it until shutdown.
    pub async fn open(
        bus: &Bus,
        config: &GatewayConfig,
        signatures: &Signatures,
        shutdown: CancellationToken,
    ) -> Result<Self, BusError> {
        let admin = Some(config.admin_key.expose()).filter(|key| !key.is_empty()).map(Hash::of);
        let required = config.requires_key();
        let (bus, signatures) = (bus.clone(), signatures.clone());
        let scopes = config.loopback_scopes.clone();
        let on_loopback = Arc::new(Rights { scopes, agents: Vec::new(), user: None });
        let (known, nobodys) = (Arc::default(), Hash::of(""));
        let keys = Self { bus, known, admin, required, on_loopback, signatures, nobodys };
        let following = keys.load().await.map_err(|source| BusError::Unavailable { doing: READING, source })?;
        if required && keys.admin.is_none() && keys.list().is_empty() && config.oidc.is_empty() {
            tracing::warn!("a key is required and there is none: set gateway.admin_key, and make keys with it");
        }
        let follower = keys.clone();
        tokio::spawn(async move { shutdown.run_until_cancelled(follower.follow(following)).await });
        Ok(keys)
    }

    /// Returns the caller who brings this key; none if the key is not in force, without revealing whether it ever was.
    pub fn caller(&self, key: Option<&str>, now: Timestamp) -> Option<Caller> {
        let Some(key) = key else { return (!self.required).then(|| self.anyone()) };
        if self.admin.as_ref().is_some_and(|admin| admin.is_of(key)) {
            return Some(Caller::Administrator);
        }
        let held = secret::id(key).and_then(|id| self.read().get(id).cloned());
        let matches = held.as_ref().map_or(&self.nobodys, |held| &held.hash).is_of(key);
        held.filter(|held| matches && held.is_in_force(now)).map(Caller::Holder)
    }

    /// Somebody who brings no key.
    pub fn anyone(&self) -> Caller {
        Caller::Anyone(self.on_loopback.clone())
    }

    /// Returns the identity to store in a ticket issued to this caller.
    pub fn stands_for(&self, caller: &Caller) -> StandsFor {
        match caller {
            Caller::Anyone(_) => StandsFor::Anyone,
            Caller::Administrator => StandsFor::Administrator(self.fingerprint()),
            Caller::Holder(held) => StandsFor::Key(held.key.key_id.clone()),
            Caller::Bearer(token) => StandsFor::Bearer(token.as_ref().clone()),
        }
    }

    /// Returns the caller a ticket stands for; none if the key or token behind it is no longer valid.
    pub fn caller_for(&self, stands_for: &StandsFor, oidc: &Oidc, now: Timestamp) -> Option<Caller> {
        match stands_for {
            StandsFor::Anyone => (!self.required).then(|| self.anyone()),
            StandsFor::Administrator(of) => {
                (self.admin.is_some() && *of == self.fingerprint()).then_some(Caller::Administrator)
            }
            StandsFor::Key(id) => self.read().get(id).filter(|held| held.is_in_force(now)).cloned().map(Caller::Holder),
            StandsFor::Bearer(token) => oidc.again(token, now),
        }
    }

    /// Of the administrator's key: a ticket does not outlive it.
    fn fingerprint(&self) -> String {
        self.admin.as_ref().map(|admin| Hash::of(&admin.to_hex()).to_hex()).unwrap_or_default()
    }

    /// Every key, the newest first.
    pub fn list(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = self.read().values().map(|held| held.key.clone()).collect();
        keys.sort_by(|one, other| (other.created, &other.key_id).cmp(&(one.created, &one.key_id)));
        keys
    }

    /// Keeps a new key of which `text` is the secret.
    pub async fn create(&self, key: Key, text: &str) -> Result<(), Problem> {
        if self.read().len() >= MAX_KEYS {
            return Err(Problem::conflict(format!("there are {MAX_KEYS} keys; revoke some first")));
        }
        let hash = Hash::of(text);
        let stored = Stored { key: key.clone(), hash: hash.to_hex() };
        let value = self.signatures.write(KEYS_BUCKET, &key.key_id, &stored);
        let value = value.map_err(|error| Problem::internal(&error))?;
        self.bus.update_value(KEYS_BUCKET, &key.key_id, value.into(), 0).await?;
        self.put(key, hash);
        Ok(())
    }

    /// From when this returns, here, and as soon as they hear of it, at the other gateways, the key is refused and what
    /// goes on under it ends. False when there is no such key.
    pub async fn revoke(&self, key_id: &str) -> Result<bool, BusError> {
        let mut is_there = false;
        for raw in self.bus.revisions(KEYS_BUCKET, key_id).await? {
            match self.entry(key_id, &raw) {
                Entry::Key(..) | Entry::Unsigned => is_there = true,
                Entry::Ended => is_there = false,
                // The bucket has to have room for what revokes the key.
                Entry::Damaged => self.bus.erase_revision(KEYS_BUCKET, raw.sequence).await?,
            }
        }
        if is_there {
            self.bus.mark_deleted(KEYS_BUCKET, key_id).await?;
        }
        self.forget(key_id);
        Ok(is_there)
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, HashMap<String, Arc<Held>>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, key: Key, hash: Hash) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // Told twice of the same, what goes on under it goes on.
        if known.get(&key.key_id).is_none_or(|held| held.key != key) {
            let held = Held { hash, revoked: CancellationToken::new(), key };
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
    async fn load(&self) -> Result<Following, Error> {
        let mut tail = self.bus.tail_bucket(KEYS_BUCKET).await?;
        let mut there = HashSet::new();
        let reading = async {
            while tail.pending() > 0 {
                for raw in tail.next().await? {
                    there.extend(self.take(&raw).await);
                }
            }
            Ok::<_, Error>(())
        };
        tokio::time::timeout(LOADED_WITHIN, reading).await??;
        let gone: Vec<String> = self.read().keys().filter(|key_id| !there.contains(*key_id)).cloned().collect();
        gone.iter().for_each(|key_id| self.forget(key_id));
        Ok(tail)
    }

    async fn follow(self, tail: Following) {
        let mut tail = Some(tail);
        loop {
            match tail.take() {
                Some(tail) => {
                    let Err(error) = self.follow_on(tail).await;
                    tracing::warn!(%error, "API keys are not followed");
                }
                None => match self.load().await {
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

    async fn follow_on(&self, mut tail: Following) -> Result<Infallible, Error> {
        loop {
            for raw in tail.next().await? {
                self.take(&raw).await;
            }
        }
    }

    /// Takes in an entry; the id of its key, if it is one.
    async fn take(&self, raw: &Raw) -> Option<String> {
        let key_id = raw.subject.strip_prefix(&subject_of(KEYS_BUCKET, ""))?;
        match self.entry(key_id, raw) {
            Entry::Key(hash, key) => {
                self.put(*key, hash);
                return Some(key_id.to_owned());
            }
            Entry::Ended => self.forget(key_id),
            Entry::Unsigned => {
                tracing::warn!(
                    key_id,
                    "an API key is not signed with signing.key and is refused: make another with `kairo keys create`"
                );
            }
            Entry::Damaged => {
                tracing::warn!(key_id, "removing what no gateway has written among the API keys");
                if let Err(error) = self.bus.erase_revision(KEYS_BUCKET, raw.sequence).await {
                    tracing::warn!(key_id, %error, "it stays there for now, and counts for nothing");
                }
            }
        }
        None
    }

    fn entry(&self, key_id: &str, raw: &Raw) -> Entry {
        if raw.header(COPY_OF).is_some() {
            return Entry::Damaged;
        }
        if raw.header(OPERATION).is_some() {
            return Entry::Ended;
        }
        match self.signatures.read::<Stored>(KEYS_BUCKET, key_id, &raw.payload) {
            Content::Written(stored) if stored.key.key_id == key_id => match Hash::from_hex(&stored.hash) {
                Some(hash) => Entry::Key(hash, Box::new(stored.key)),
                None => Entry::Ended,
            },
            Content::Written(_) | Content::Unknown => Entry::Ended,
            Content::Unsigned => Entry::Unsigned,
            Content::Damaged => Entry::Damaged,
        }
    }
}
