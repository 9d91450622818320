//! Data keys: one for each user and generation, which seals the user's content in the log. They are kept in a bucket,
//! wrapped by the master key, so that destroying one makes everything sealed with it unreadable, wherever it is stored.
//!
//! A key of the bucket is `<whose>.<generation>`, for users and, for snapshots, for agents; for objects, each time they
//! are stored. The newest generation that is not destroyed seals. A destroyed key leaves a mark, so that it is not
//! mistaken for a key that was never read. For the entry that counts if a generation has several, see [`effective_entry`].

mod content;
mod destruction;
mod effective_entry;
mod entries;
mod rewrapping;
mod secrets;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use kairo_events::{
    personal::{ContentOwners, DataKey, DataKeyState},
    sealing::{self, SealingKey},
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use uuid::Uuid;

use self::effective_entry::{DecodedEntry, INSTALLATION};
pub use self::{
    destruction::KeyGeneration,
    effective_entry::MOST_ENTRIES,
    entries::{DataKeyEntry, data_key_stream, data_key_subject, destroyed_mark, order_key, order_subject, parse_entry},
};
use super::{
    Bus, BusError,
    port::{Cause, Port, ReadSource, StoreError},
};
use crate::{ids, privacy::PrivacyConfig, subjects::DATA_KEYS_BUCKET, vocabulary::SEALING};

const READING: &str = "reading data keys";
/// Numbers that are tried for a new generation, where somebody else has written something under them.
const MOST_ATTEMPTS: usize = 1_000;

/// The owner of a data key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataKeyHolder<'h> {
    User(&'h str),
    /// For the agent's snapshots, which hold what is several users'.
    Agent(&'h str),
    /// For the bytes of one image, audio or video, by its digest: several users may have sent them.
    Object(&'h str),
    /// For nobody's content: a replica that opens this key has the installation's master key.
    Installation,
}

/// An entry of the bucket of data keys.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredDataKey {
    /// Kept under the master key with this digest.
    Wrapped {
        master: String,
        key: String,
    },
    Destroyed,
}

/// The data keys known to this replica, and the master keys that open them.
pub(super) struct DataKeys {
    /// The one in force first.
    masters: Vec<(String, SealingKey)>,
    age: Duration,
    most: usize,
    /// The time of the next check of the epoch, as long as it does not allow sealing.
    not_before: Mutex<Option<Instant>>,
    is_allowed: AtomicBool,
    /// True once a configured master key is known to be the installation's.
    is_right: AtomicBool,
    known: Mutex<BTreeMap<String, CachedGenerations>>,
}

/// The generations of one holder, as they were read.
#[derive(Clone)]
struct CachedGenerations {
    generations: BTreeMap<u32, DataKeyState>,
    at: Instant,
}

impl fmt::Debug for DataKeys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("data keys")
    }
}

impl fmt::Display for DataKeyHolder<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(user) => write!(out, "user.{user}"),
            Self::Agent(agent) => write!(out, "agent.{agent}"),
            Self::Object(digest) => write!(out, "object.{digest}"),
            Self::Installation => out.write_str("installation"),
        }
    }
}

impl<'h> DataKeyHolder<'h> {
    /// The one whose a part of a message is.
    pub fn from_owner(owner: &'h str) -> Self {
        ContentOwners::agent_of(owner).map_or(Self::User(owner), Self::Agent)
    }
}

impl DataKeys {
    /// Builds the data keys from the configuration; `None` if nothing is sealed.
    pub fn new(config: &PrivacyConfig) -> Option<Self> {
        let masters: Vec<_> = config.master_keys().into_iter().map(|key| (master_key_digest(&key), key)).collect();
        let age = Duration::from_millis(config.key_age_ms);
        (!masters.is_empty()).then(|| Self {
            masters,
            age,
            most: config.keys_in_memory,
            not_before: Mutex::default(),
            is_allowed: AtomicBool::new(false),
            is_right: AtomicBool::new(false),
            known: Mutex::default(),
        })
    }

    /// The generations of a holder, read anew where they are not known, or not for sure.
    pub async fn generations_of(
        &self,
        port: &dyn Port,
        holder: DataKeyHolder<'_>,
        must_have: Option<u32>,
    ) -> Result<BTreeMap<u32, DataKeyState>, Cause> {
        let name = holder.to_string();
        if let Some(read) = self.lock_cache().get(&name)
            && read.at.elapsed() < self.age
            && must_have.is_none_or(|generation| read.generations.contains_key(&generation))
        {
            return Ok(read.generations.clone());
        }
        let entries = port.last_of_each(&data_key_stream(), &[data_key_subject(&format!("{name}.*"))]).await?;
        let mut generations = BTreeMap::new();
        for raw in entries {
            let Some(number) = raw.subject.rsplit('.').next().and_then(|number| number.parse().ok()) else { continue };
            generations.extend(self.effective_key(port, &name, number, &raw).await?.map(|known| (number, known)));
        }
        let mut known = self.lock_cache();
        if known.len() >= self.most {
            known.clear();
        }
        known.insert(name, CachedGenerations { generations: generations.clone(), at: Instant::now() });
        Ok(generations)
    }

    /// Drops the cached data keys of a holder, so that they are read anew.
    pub fn evict(&self, holder: DataKeyHolder<'_>) {
        self.lock_cache().remove(&holder.to_string());
    }

    fn lock_not_before(&self) -> MutexGuard<'_, Option<Instant>> {
        self.not_before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_cache(&self) -> MutexGuard<'_, BTreeMap<String, CachedGenerations>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wrap_key(&self, name: &str, generation: u32, key: &SealingKey) -> Result<Bytes, Cause> {
        let (master, under) = self.masters.first().ok_or("there is no privacy.master_key")?;
        let key = BASE64_STANDARD.encode(sealing::seal_at(under, binding_id(name, generation), key)?);
        Ok(serde_json::to_vec(&StoredDataKey::Wrapped { master: master.clone(), key })?.into())
    }
}

/// Reads an entry of the bucket without a connection, from its stored bytes.
///
/// # Errors
/// Returns an error if the entry is damaged or wrapped under another master key, or if no master key is configured.
pub fn open_stored_key(
    privacy: &PrivacyConfig,
    holder: DataKeyHolder<'_>,
    generation: u32,
    stored: &[u8],
) -> Result<DataKeyState, Cause> {
    let keys = DataKeys::new(privacy).ok_or(NO_MASTER_KEY)?;
    match keys.decode_entry_bytes(&holder.to_string(), generation, stored) {
        DecodedEntry::Key(key) => Ok(DataKeyState::Key(key)),
        DecodedEntry::Destroyed => Ok(DataKeyState::Destroyed),
        DecodedEntry::OtherMaster(digest) => Err(other_master_message(&holder.to_string(), generation, &digest).into()),
        DecodedEntry::Damaged => Err(format!("the entry of the data key {generation} of {holder} is damaged").into()),
    }
}

/// Data keys, for whoever reads, makes and destroys them.
impl Bus {
    /// Returns true if a master key is configured.
    pub fn has_master_key(&self) -> bool {
        self.data_keys.is_some()
    }

    /// Returns true if new content is sealed: there is a master key, and every replica can open sealed content.
    pub async fn may_seal(&self) -> Result<bool, BusError> {
        let Some(keys) = &self.data_keys else { return Ok(false) };
        if keys.is_allowed.load(Ordering::Relaxed) {
            return Ok(true);
        }
        if keys.lock_not_before().is_some_and(|at| Instant::now() < at) {
            return Ok(false);
        }
        let is_allowed = self.log_identity()?.epoch >= SEALING || self.current_epoch().await? >= SEALING;
        keys.is_allowed.store(is_allowed, Ordering::Relaxed);
        *keys.lock_not_before() = Some(Instant::now() + keys.age);
        Ok(is_allowed)
    }

    /// The data key that seals what is new of a holder; one is made where there is none. None where nothing is sealed.
    pub async fn get_or_create_data_key(&self, holder: DataKeyHolder<'_>) -> Result<Option<DataKey>, BusError> {
        let Some(keys) = &self.data_keys else { return Ok(None) };
        loop {
            let known = keys.generations_of(&*self.port, holder, None).await.map_err(BusError::unavailable(READING))?;
            if let Some(newest) = newest_key(&known) {
                return Ok(Some(newest));
            }
            // Where somebody else makes one at the same time, both have made one, and the newer one counts from here on.
            self.create_next_generation(keys, holder, 1, &known).await?;
            keys.evict(holder);
        }
    }

    /// Makes a data key above the newest one of a holder, which seals as soon as every replica has read data keys anew. The generation
    /// that was the newest; none where the holder had none.
    ///
    /// # Errors
    /// [`BusError::Refused`] without a master key.
    pub async fn replace_data_key(&self, holder: DataKeyHolder<'_>) -> Result<Option<u32>, BusError> {
        let Some(keys) = &self.data_keys else { return Err(BusError::Refused(NO_MASTER_KEY.to_owned())) };
        let known = self.reload_data_keys(keys, holder).await?;
        let Some(newest) = newest_key(&known) else { return Ok(None) };
        self.create_next_generation(keys, holder, newest.generation.saturating_add(1), &known).await?;
        keys.evict(holder);
        Ok(Some(newest.generation))
    }

    /// The generations of a holder as the bucket has them now.
    async fn reload_data_keys(
        &self,
        keys: &DataKeys,
        holder: DataKeyHolder<'_>,
    ) -> Result<BTreeMap<u32, DataKeyState>, BusError> {
        keys.evict(holder);
        keys.generations_of(&*self.port, holder, None).await.map_err(BusError::unavailable(READING))
    }

    /// Makes the key by which replicas tell that their master key is right, unless it was made before.
    pub async fn mark_installation(&self) -> Result<(), BusError> {
        match self.create_data_key(DataKeyHolder::Installation, INSTALLATION).await {
            Ok(()) | Err(BusError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Makes the generation of the lowest number from `from` on that is not taken. Anything may stand under numbers that are not known.
    async fn create_next_generation(
        &self,
        keys: &DataKeys,
        holder: DataKeyHolder<'_>,
        from: u32,
        known: &BTreeMap<u32, DataKeyState>,
    ) -> Result<DataKey, BusError> {
        for number in (from..=u32::MAX).filter(|number| !known.contains_key(number)).take(MOST_ATTEMPTS) {
            match self.create_generation(keys, holder, number).await {
                Err(BusError::Conflict { .. }) => {}
                made => return made,
            }
        }
        let reason = format!("{MOST_ATTEMPTS} numbers from {from} on are taken for {holder}");
        Err(BusError::unavailable("making a data key")(reason))
    }

    /// Makes a generation of a holder's data keys.
    ///
    /// # Errors
    /// [`BusError::Conflict`] where there is one already.
    pub async fn create_data_key(&self, holder: DataKeyHolder<'_>, generation: u32) -> Result<(), BusError> {
        let Some(keys) = &self.data_keys else { return Ok(()) };
        self.create_generation(keys, holder, generation).await.map(drop)
    }

    async fn create_generation(
        &self,
        keys: &DataKeys,
        holder: DataKeyHolder<'_>,
        generation: u32,
    ) -> Result<DataKey, BusError> {
        const MAKING: &str = "making a data key";
        let name = holder.to_string();
        let key = self.port.new_key().map_err(BusError::unavailable(MAKING))?;
        let wrapped = keys.wrap_key(&name, generation, &key).map_err(BusError::unavailable(MAKING))?;
        self.update_value(DATA_KEYS_BUCKET, &format!("{name}.{generation}"), wrapped, 0).await?;
        Ok(DataKey { generation, key })
    }

    /// Returns how long replicas may use data keys they have read before reading them again.
    pub fn data_key_age(&self) -> Duration {
        self.data_keys.as_ref().map_or(Duration::ZERO, |keys| keys.age)
    }

    /// Looks up the data key of this generation, which sealed something.
    pub(super) async fn known_data_key(
        &self,
        holder: DataKeyHolder<'_>,
        generation: u32,
    ) -> Result<DataKeyState, BusError> {
        let Some(keys) = &self.data_keys else {
            // It waits, as a replica does that is restarted with one.
            return Err(BusError::unavailable(READING)(NO_MASTER_KEY));
        };
        let known =
            keys.generations_of(&*self.port, holder, Some(generation)).await.map_err(BusError::unavailable(READING))?;
        let missing = || format!("there is no data key {generation} of {holder}");
        known.get(&generation).copied().ok_or_else(missing).map_err(BusError::unavailable(READING))
    }

    /// Drops the cached data keys of a holder, so that they are read anew.
    pub fn forget_data_keys(&self, holder: DataKeyHolder<'_>) {
        if let Some(keys) = &self.data_keys {
            keys.evict(holder);
        }
    }

    /// Checks that the configured master keys open the data keys of this installation.
    ///
    /// # Errors
    /// [`BusError::Refused`] if there are data keys and no master key for them.
    pub async fn check_master_key(&self) -> Result<(), BusError> {
        let last =
            match self.port.last_message(&data_key_stream(), &data_key_subject("user.>"), ReadSource::Leader).await {
                // Of a log that an older version has made.
                Err(StoreError::NoStream) if !self.has_master_key() => return Ok(()),
                Err(StoreError::NoStream) => {
                    return Err(BusError::unavailable(READING)("there is no bucket of them: run `kairo provision`"));
                }
                last => last.map_err(BusError::unavailable(READING))?,
            };
        let Some(last) = last else { return Ok(()) };
        let Some(keys) = &self.data_keys else { return Err(BusError::Refused(NO_MASTER_KEY.to_owned())) };
        let name = last.subject.strip_prefix(&data_key_subject("")).unwrap_or_default();
        let Some((name, Ok(number))) = name.rsplit_once('.').map(|(name, number)| (name, number.parse())) else {
            return Ok(());
        };
        match keys.decode_entry(name, number, &last) {
            DecodedEntry::OtherMaster(_)
                if keys.has_right_master(&*self.port).await.map_err(BusError::unavailable(READING))? => {}
            DecodedEntry::OtherMaster(digest) => {
                return Err(BusError::Refused(other_master_message(name, number, &digest)));
            }
            DecodedEntry::Key(_) | DecodedEntry::Destroyed | DecodedEntry::Damaged => {}
        }
        Ok(())
    }
}

const NO_MASTER_KEY: &str =
    "content of users is sealed in this log: expected privacy.master_key, the one that the other services have";

/// The key that seals, of the generations of a holder.
fn newest_key(known: &BTreeMap<u32, DataKeyState>) -> Option<DataKey> {
    known.iter().rev().find_map(|(generation, known)| match known {
        DataKeyState::Key(key) => Some(DataKey { generation: *generation, key: *key }),
        DataKeyState::Destroyed => None,
    })
}

fn other_master_message(name: &str, generation: u32, digest: &str) -> String {
    format!("the data key {generation} of {name} is kept under another privacy.master_key, with the digest {digest}")
}

/// Tells master keys apart, and nothing else of them.
fn master_key_digest(key: &SealingKey) -> String {
    Sha256::digest(key).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the id a data key is bound to when it is wrapped.
fn binding_id(name: &str, generation: u32) -> Uuid {
    ids::from_parts("data-key", &[name, &generation.to_string()])
}
