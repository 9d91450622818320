//! Where keys are kept: hashed, in a bucket that outlives the read model, with a copy in the memory of every gateway that
//! follows the bucket. A gateway that loses NATS goes on with the keys it knows; it can do little without NATS anyway.

use std::{
    collections::{HashMap, HashSet},
    pin::Pin,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use async_nats::jetstream::kv::{Entry, Operation, Watch};
use futures::StreamExt;
use jiff::Timestamp;
use kairo_core::{
    bus::{Bus, BusError},
    subjects::KEYS_BUCKET,
};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::{Caller, Held, Key, oidc::Oidc, secret, secret::Hash, tickets::StandsFor};
use crate::{config::GatewayConfig, problem::Problem};

/// Keys there may be at once.
pub const MAX_KEYS: usize = 10_000;
/// Pause before the bucket is followed anew when that broke off.
const PAUSE: Duration = Duration::from_secs(1);
/// How long the first reading of the bucket may take.
const LOADED_WITHIN: Duration = Duration::from_secs(10);

/// What the bucket holds of a key.
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
    /// Compared with when the key is unknown, so that this takes as long.
    nobodys: Hash,
}

type Error = async_nats::Error;

fn unavailable(doing: &'static str) -> impl FnOnce(Error) -> BusError {
    move |source| BusError::Unavailable { doing, source }
}

type Watching = Pin<Box<Watch>>;

impl Keys {
    /// Reads the bucket and follows it until shutdown.
    pub async fn open(bus: &Bus, config: &GatewayConfig, shutdown: CancellationToken) -> Result<Self, BusError> {
        let admin = Some(config.admin_key.expose()).filter(|key| !key.is_empty()).map(Hash::of);
        let required = config.requires_key();
        let keys = Self { bus: bus.clone(), known: Arc::default(), admin, required, nobodys: Hash::of("") };
        let watch = keys.load().await.map_err(unavailable("reading the API keys"))?;
        if required && keys.admin.is_none() && keys.list().is_empty() && config.oidc.is_empty() {
            tracing::warn!("a key is required and there is none: set gateway.admin_key, and make keys with it");
        }
        let following = keys.clone();
        tokio::spawn(async move { shutdown.run_until_cancelled(following.follow(watch)).await });
        Ok(keys)
    }

    /// Who brings this key; none when it is not in force, which is never told apart from one that never was.
    pub fn caller(&self, key: Option<&str>, now: Timestamp) -> Option<Caller> {
        let Some(key) = key else { return (!self.required).then_some(Caller::Anyone) };
        if self.admin.as_ref().is_some_and(|admin| admin.is_of(key)) {
            return Some(Caller::Administrator);
        }
        let held = secret::id(key).and_then(|id| self.read().get(id).cloned());
        let matches = held.as_ref().map_or(&self.nobodys, |held| &held.hash).is_of(key);
        held.filter(|held| matches && held.is_in_force(now)).map(Caller::Holder)
    }

    /// Whom a ticket of this caller stands for.
    pub fn stands_for(&self, caller: &Caller) -> StandsFor {
        match caller {
            Caller::Anyone => StandsFor::Anyone,
            Caller::Administrator => StandsFor::Administrator(self.fingerprint()),
            Caller::Holder(held) => StandsFor::Key(held.key.key_id.clone()),
            Caller::Bearer(token) => StandsFor::Bearer(token.as_ref().clone()),
        }
    }

    /// Who comes with a ticket that stands for this; none when it no longer stands for anybody.
    pub fn caller_for(&self, stands_for: &StandsFor, oidc: &Oidc, now: Timestamp) -> Option<Caller> {
        match stands_for {
            StandsFor::Anyone => (!self.required).then_some(Caller::Anyone),
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
        let value = serde_json::to_vec(&stored).map_err(|error| Problem::internal(&error))?;
        let created = async {
            let bucket = self.bus.nats()?.jetstream.get_key_value(KEYS_BUCKET).await?;
            bucket.create(&key.key_id, value.into()).await?;
            Ok::<_, Error>(())
        };
        created.await.map_err(unavailable("keeping an API key"))?;
        self.put(key, hash);
        Ok(())
    }

    /// From when this returns, here, and as soon as they hear of it, at the other gateways, the key is refused and what
    /// goes on under it ends. False when there is no such key.
    pub async fn revoke(&self, key_id: &str) -> Result<bool, BusError> {
        let revoked = async {
            let bucket = self.bus.nats()?.jetstream.get_key_value(KEYS_BUCKET).await?;
            let entry = bucket.entry(key_id).await?.filter(|entry| entry.operation == Operation::Put);
            if entry.is_none() {
                return Ok(false);
            }
            bucket.delete(key_id).await?;
            Ok::<_, Error>(true)
        };
        let revoked = revoked.await.map_err(unavailable("revoking an API key"))?;
        self.forget(key_id);
        Ok(revoked)
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

    /// Reads the whole bucket. What the watch yields afterwards is what changes.
    async fn load(&self) -> Result<Watching, Error> {
        let bucket = self.bus.nats()?.jetstream.get_key_value(KEYS_BUCKET).await?;
        let entries = bucket.status().await?.values();
        let mut watch = Box::pin(bucket.watch_with_history(">").await?);
        let mut there = HashSet::new();
        let reading = async {
            while entries > 0
                && let Some(entry) = watch.next().await.transpose()?
            {
                self.note(&entry);
                there.insert(entry.key.clone());
                if entry.delta == 0 {
                    break;
                }
            }
            Ok::<_, Error>(())
        };
        tokio::time::timeout(LOADED_WITHIN, reading).await??;
        let gone: Vec<String> = self.read().keys().filter(|key_id| !there.contains(*key_id)).cloned().collect();
        gone.iter().for_each(|key_id| self.forget(key_id));
        Ok(watch)
    }

    async fn follow(self, watch: Watching) {
        let mut watch = Some(watch);
        loop {
            match watch.take() {
                Some(mut watch) => loop {
                    match watch.next().await {
                        Some(Ok(entry)) => self.note(&entry),
                        Some(Err(error)) => break tracing::warn!(%error, "API keys are not followed"),
                        None => break,
                    }
                },
                None => match self.load().await {
                    Ok(again) => {
                        watch = Some(again);
                        continue;
                    }
                    Err(error) => tracing::warn!(%error, "API keys cannot be read"),
                },
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn note(&self, entry: &Entry) {
        let stored = (entry.operation == Operation::Put).then(|| serde_json::from_slice::<Stored>(&entry.value).ok());
        let read = stored.flatten().filter(|stored| stored.key.key_id == entry.key);
        match read.and_then(|stored| Some((Hash::from_hex(&stored.hash)?, stored.key))) {
            Some((hash, key)) => self.put(key, hash),
            // Also one that cannot be read: it may say less than the one before.
            None => self.forget(&entry.key),
        }
    }
}
