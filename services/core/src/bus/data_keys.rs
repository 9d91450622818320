//! Data keys: one for each user and generation, under which what is theirs is sealed in the log. They are kept in a bucket, wrapped
//! by the master key, so that destroying one takes whatever was sealed with it, wherever that is.
//!
//! A key of the bucket is `<whose>.<generation>`, of users and, for snapshots, of agents; of objects, each time they are stored. The
//! newest generation that is not destroyed seals. What is destroyed leaves a mark, so that nobody takes it for a key that was never read.

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
    personal::{DataKey, Known, Whose},
    sealing::{self, Key},
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use uuid::Uuid;

pub use self::entries::{EntryOf, destroyed, entry, order_key, order_subject, stored_as, stream};
use super::{
    Bus, BusError,
    kv::Entry,
    port::{Asked, Cause, Port, StoreError},
};
use crate::{ids, privacy::PrivacyConfig, subjects::DATA_KEYS_BUCKET, vocabulary::SEALING};

const READING: &str = "reading data keys";

/// Whose a data key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder<'h> {
    User(&'h str),
    /// For the agent's snapshots, which hold what is several users'.
    Agent(&'h str),
    /// For the bytes of one image, audio or video, by its digest: several users may have sent them.
    Object(&'h str),
}

/// What stands in the bucket.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stored {
    /// Kept under the master key with this digest.
    Wrapped {
        master: String,
        key: String,
    },
    Destroyed,
}

/// What this replica knows of data keys.
pub(super) struct DataKeys {
    /// The one in force first.
    masters: Vec<(String, Key)>,
    age: Duration,
    most: usize,
    /// When the epoch is looked at again, as long as it does not allow sealing.
    not_before: Mutex<Option<Instant>>,
    is_allowed: AtomicBool,
    known: Mutex<BTreeMap<String, Read>>,
}

/// The generations of one holder, as they were read.
#[derive(Clone)]
struct Read {
    generations: BTreeMap<u32, Known>,
    at: Instant,
}

impl fmt::Debug for DataKeys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("data keys")
    }
}

impl fmt::Display for Holder<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(user) => write!(out, "user.{user}"),
            Self::Agent(agent) => write!(out, "agent.{agent}"),
            Self::Object(digest) => write!(out, "object.{digest}"),
        }
    }
}

impl<'h> Holder<'h> {
    /// The one whose a part of a message is.
    pub fn of(owner: &'h str) -> Self {
        Whose::agent_of(owner).map_or(Self::User(owner), Self::Agent)
    }
}

impl DataKeys {
    /// None where nothing is sealed.
    pub fn new(config: &PrivacyConfig) -> Option<Self> {
        let masters: Vec<_> = config.master_keys().into_iter().map(|key| (digest(&key), key)).collect();
        let age = Duration::from_millis(config.key_age_ms);
        (!masters.is_empty()).then(|| Self {
            masters,
            age,
            most: config.keys_in_memory,
            not_before: Mutex::default(),
            is_allowed: AtomicBool::new(false),
            known: Mutex::default(),
        })
    }

    /// The generations of a holder, read anew where they are not known, or not for sure.
    pub async fn of(
        &self,
        port: &dyn Port,
        holder: Holder<'_>,
        must_have: Option<u32>,
    ) -> Result<BTreeMap<u32, Known>, Cause> {
        let name = holder.to_string();
        if let Some(read) = self.known().get(&name)
            && read.at.elapsed() < self.age
            && must_have.is_none_or(|generation| read.generations.contains_key(&generation))
        {
            return Ok(read.generations.clone());
        }
        let entries = port.last_of_each(&stream(), &[stored_as(&format!("{name}.*"))]).await?;
        let mut generations = BTreeMap::new();
        for raw in entries {
            let Some(number) = raw.subject.rsplit('.').next().and_then(|number| number.parse().ok()) else { continue };
            generations.insert(number, self.unwrapped(&name, number, &raw.payload)?);
        }
        let mut known = self.known();
        if known.len() >= self.most {
            known.clear();
        }
        known.insert(name, Read { generations: generations.clone(), at: Instant::now() });
        Ok(generations)
    }

    /// From here on what is known of them is read anew.
    pub fn forget(&self, holder: Holder<'_>) {
        self.known().remove(&holder.to_string());
    }

    fn not_before(&self) -> MutexGuard<'_, Option<Instant>> {
        self.not_before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Read>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unwrapped(&self, name: &str, generation: u32, stored: &[u8]) -> Result<Known, Cause> {
        let Stored::Wrapped { master, key } = serde_json::from_slice(stored)? else { return Ok(Known::Destroyed) };
        let (_, under) = self.masters.iter().find(|(digest, _)| *digest == master).ok_or_else(|| {
            format!(
                "the data key {generation} of {name} is kept under another privacy.master_key, with the digest {master}"
            )
        })?;
        let opened = sealing::open_at(under, place(name, generation), &BASE64_STANDARD.decode(key)?)?;
        Ok(Known::Key(Key::try_from(opened).map_err(|_| "a data key is not 32 bytes long")?))
    }

    fn wrapped(&self, name: &str, generation: u32, key: &Key) -> Result<Bytes, Cause> {
        let (master, under) = self.masters.first().ok_or("there is no privacy.master_key")?;
        let key = BASE64_STANDARD.encode(sealing::seal_at(under, place(name, generation), key)?);
        Ok(serde_json::to_vec(&Stored::Wrapped { master: master.clone(), key })?.into())
    }
}

/// What an entry of the bucket says, for whoever has the bucket and no connection.
///
/// # Errors
/// Where it is none, or is kept under another master key.
pub fn known(privacy: &PrivacyConfig, holder: Holder<'_>, generation: u32, stored: &[u8]) -> Result<Known, Cause> {
    let keys = DataKeys::new(privacy).ok_or(NO_MASTER_KEY)?;
    keys.unwrapped(&holder.to_string(), generation, stored)
}

/// What stands of a generation, for whoever changes it.
#[derive(Clone, Debug)]
pub struct Generation {
    pub number: u32,
    pub is_destroyed: bool,
    entry: Entry,
}

/// Data keys, for whoever reads, makes and destroys them.
impl Bus {
    /// Whether there is a master key.
    pub fn seals(&self) -> bool {
        self.data_keys.is_some()
    }

    /// Whether what is new is sealed: there is a master key, and everybody who is there can open it.
    pub async fn may_seal(&self) -> Result<bool, BusError> {
        let Some(keys) = &self.data_keys else { return Ok(false) };
        if keys.is_allowed.load(Ordering::Relaxed) {
            return Ok(true);
        }
        if keys.not_before().is_some_and(|at| Instant::now() < at) {
            return Ok(false);
        }
        let is_allowed = self.log()?.epoch >= SEALING || self.epoch().await? >= SEALING;
        keys.is_allowed.store(is_allowed, Ordering::Relaxed);
        *keys.not_before() = Some(Instant::now() + keys.age);
        Ok(is_allowed)
    }

    /// The data key that seals what is new of a holder; one is made where there is none. None where nothing is sealed.
    pub async fn data_key(&self, holder: Holder<'_>) -> Result<Option<DataKey>, BusError> {
        let Some(keys) = &self.data_keys else { return Ok(None) };
        loop {
            let known = keys.of(&*self.port, holder, None).await.map_err(BusError::unavailable(READING))?;
            let newest = known.iter().next_back();
            if let Some((generation, Known::Key(key))) = newest {
                return Ok(Some(DataKey { generation: *generation, key: *key }));
            }
            let next = newest.map_or(0, |(generation, _)| *generation) + 1;
            match self.make_data_key(holder, next).await {
                // Somebody else made one.
                Ok(()) | Err(BusError::Conflict { .. }) => keys.forget(holder),
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes a generation of a holder's data keys.
    ///
    /// # Errors
    /// [`BusError::Conflict`] where there is one already.
    pub async fn make_data_key(&self, holder: Holder<'_>, generation: u32) -> Result<(), BusError> {
        let Some(keys) = &self.data_keys else { return Ok(()) };
        self.made(keys, holder, generation).await.map(drop)
    }

    async fn made(&self, keys: &DataKeys, holder: Holder<'_>, generation: u32) -> Result<DataKey, BusError> {
        const MAKING: &str = "making a data key";
        let name = holder.to_string();
        let key = self.port.new_key().map_err(BusError::unavailable(MAKING))?;
        let wrapped = keys.wrapped(&name, generation, &key).map_err(BusError::unavailable(MAKING))?;
        self.update_value(DATA_KEYS_BUCKET, &format!("{name}.{generation}"), wrapped, 0).await?;
        Ok(DataKey { generation, key })
    }

    /// How long replicas go by what they have read of data keys.
    pub fn data_key_age(&self) -> Duration {
        self.data_keys.as_ref().map_or(Duration::ZERO, |keys| keys.age)
    }

    /// Bytes sealed with the data key of a holder, for a place of that name; none where nothing is sealed.
    pub async fn seal(&self, holder: Holder<'_>, place: &str, bytes: &[u8]) -> Result<Option<Vec<u8>>, BusError> {
        if !self.may_seal().await? {
            return Ok(None);
        }
        let Some(key) = self.data_key(holder).await? else { return Ok(None) };
        sealed_with(&key, holder, place, bytes).map(Some)
    }

    /// The same, with a data key that is made for these bytes alone; its generation, too, which is the time in seconds or above the
    /// newest, so that those of long ago need leave no mark ([`Bus::drop_data_keys`]).
    pub async fn seal_anew(
        &self,
        holder: Holder<'_>,
        place: &str,
        bytes: &[u8],
    ) -> Result<Option<(u32, Vec<u8>)>, BusError> {
        let Some(keys) = &self.data_keys else { return Ok(None) };
        if !self.may_seal().await? {
            return Ok(None);
        }
        // A number that was there before would be destroyed by whoever still has to do with that one.
        let newest = self.generations(holder).await?.last().map_or(0, |newest| newest.number);
        let mut next = u32::try_from(self.now().as_second()).unwrap_or_default().max(newest + 1);
        let key = loop {
            match self.made(keys, holder, next).await {
                Err(BusError::Conflict { .. }) => next += 1,
                made => break made?,
            }
        };
        Ok(Some((key.generation, sealed_with(&key, holder, place, bytes)?)))
    }

    /// What was sealed so; none where the key is destroyed, or the bytes are none that were.
    pub async fn open(&self, holder: Holder<'_>, place: &str, sealed: &[u8]) -> Result<Option<Vec<u8>>, BusError> {
        let Some((generation, sealed)) = sealed.split_first_chunk() else { return Ok(None) };
        let known = self.known_data_key(holder, u32::from_be_bytes(*generation)).await?;
        let Known::Key(key) = known else { return Ok(None) };
        let place = ids::named("sealed-for", &[&holder.to_string(), place]);
        Ok(sealing::open_at(&key, place, sealed).ok())
    }

    /// What is known of a data key with which something was sealed.
    pub(super) async fn known_data_key(&self, holder: Holder<'_>, generation: u32) -> Result<Known, BusError> {
        let Some(keys) = &self.data_keys else { return Err(BusError::Refused(NO_MASTER_KEY.to_owned())) };
        let known = keys.of(&*self.port, holder, Some(generation)).await.map_err(BusError::unavailable(READING))?;
        let missing = || format!("there is no data key {generation} of {holder}");
        known.get(&generation).copied().ok_or_else(missing).map_err(BusError::unavailable(READING))
    }

    /// From here on what is known of a holder's data keys is read anew.
    pub fn forget_data_keys(&self, holder: Holder<'_>) {
        if let Some(keys) = &self.data_keys {
            keys.forget(holder);
        }
    }

    /// Every generation of a holder's data keys, the oldest first.
    pub async fn generations(&self, holder: Holder<'_>) -> Result<Vec<Generation>, BusError> {
        let mut generations = Vec::new();
        for entry in self.values(DATA_KEYS_BUCKET, &format!("{holder}.*")).await? {
            let number = entry.key.rsplit('.').next().and_then(|number| number.parse().ok());
            let Some(number) = number else { continue };
            let is_destroyed = matches!(serde_json::from_slice(&entry.value), Ok(Stored::Destroyed));
            generations.push(Generation { number, is_destroyed, entry });
        }
        generations.sort_by_key(|generation| generation.number);
        Ok(generations)
    }

    /// Destroys a data key: its bytes are written over in the server's files, and a mark is left in its place.
    pub async fn destroy_data_key(&self, generation: &Generation) -> Result<(), BusError> {
        let Entry { key, revision, .. } = &generation.entry;
        if generation.is_destroyed {
            // Whoever left the mark may have come no further.
            return self.erase_replaced(key, *revision).await;
        }
        let mark = serde_json::to_vec(&Stored::Destroyed).map_err(BusError::unavailable("destroying a data key"))?;
        // The mark first: a key that is nowhere is nobody's to make again.
        let mark = self.put_value(DATA_KEYS_BUCKET, key, mark.into()).await?;
        self.erase_replaced(key, mark).await
    }

    /// Destroys the generations of a holder up to this one.
    pub async fn destroy_data_keys(&self, holder: Holder<'_>, newest: u32) -> Result<(), BusError> {
        for generation in self.generations(holder).await?.iter().filter(|generation| generation.number <= newest) {
            self.destroy_data_key(generation).await?;
        }
        self.forget_data_keys(holder);
        Ok(())
    }

    /// Drops the marks of generations that were destroyed, up to this one: nobody comes back to what was sealed with them.
    pub async fn drop_data_keys(&self, holder: Holder<'_>, newest: u32) -> Result<(), BusError> {
        let stream = stream();
        let destroyed = |it: &&Generation| it.is_destroyed && it.number <= newest;
        for generation in self.generations(holder).await?.iter().filter(destroyed) {
            let erased = self.port.erase(&stream, generation.entry.revision).await;
            erased.map_err(BusError::unavailable("dropping the mark of a data key"))?;
        }
        Ok(())
    }

    /// Whether what is sealed here can be opened with the configured keys.
    ///
    /// # Errors
    /// [`BusError::Refused`] where there are data keys and no master key for them.
    pub async fn check_master_key(&self) -> Result<(), BusError> {
        let last = match self.port.last(&stream(), &stored_as("user.>"), Asked::Leader).await {
            // Of a log that an older version has made.
            Err(StoreError::NoStream) if !self.seals() => return Ok(()),
            Err(StoreError::NoStream) => {
                return Err(BusError::unavailable(READING)("there is no bucket of them: run `kairo provision`"));
            }
            last => last.map_err(BusError::unavailable(READING))?,
        };
        let Some(last) = last else { return Ok(()) };
        let Some(keys) = &self.data_keys else { return Err(BusError::Refused(NO_MASTER_KEY.to_owned())) };
        let name = last.subject.strip_prefix(&stored_as("")).unwrap_or_default();
        let Some((name, Ok(number))) = name.rsplit_once('.').map(|(name, number)| (name, number.parse())) else {
            return Ok(());
        };
        keys.unwrapped(name, number, &last.payload).map_err(|cause| BusError::Refused(cause.to_string()))?;
        Ok(())
    }
}

const NO_MASTER_KEY: &str =
    "content of users is sealed in this log: expected privacy.master_key, the one that the other services have";

fn sealed_with(key: &DataKey, holder: Holder<'_>, place: &str, bytes: &[u8]) -> Result<Vec<u8>, BusError> {
    let place = ids::named("sealed-for", &[&holder.to_string(), place]);
    let sealed = sealing::seal_at(&key.key, place, bytes).map_err(BusError::unavailable("sealing"))?;
    Ok([&key.generation.to_be_bytes()[..], &sealed].concat())
}

/// Tells master keys apart, and nothing else of them.
fn digest(key: &Key) -> String {
    Sha256::digest(key).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// Where a data key stands.
fn place(name: &str, generation: u32) -> Uuid {
    ids::named("data-key", &[name, &generation.to_string()])
}
