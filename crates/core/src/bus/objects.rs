//! Images and audio of messages, in JetStream's object store: each kept once, under the digest of its bytes, and named in
//! events by it.
//!
//! The log is for ever, and so is what it names. What no event names is removed when it has been there for a while
//! ([`retention`]); who looks for that is the gateway. `nats.objects_max_bytes` bounds it all; when that is reached, nothing
//! more is taken.
//!
//! With a master key each is sealed with a data key of its own, made whenever it is stored and destroyed with it: what was removed
//! can be read nowhere, whatever the server's files still hold.

mod retention;

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_nats::jetstream::{
    object_store::{GetErrorKind, ObjectInfo, ObjectMetadata, ObjectStore},
    stream::Stream,
};
use kairo_proto::v1::Part;
use tokio::{io::AsyncReadExt, sync::OnceCell, time::timeout};

use super::{Bus, BusError, data_keys::DataKeyHolder};
use crate::{media, subjects::OBJECTS_BUCKET};

/// The metadata name of the media type.
const MEDIA_TYPE: &str = "content-type";
/// The metadata names, for sealed bytes, of their size in the open and of the data key that seals them.
const SIZE: &str = "kairo-size";
const DATA_KEY: &str = "kairo-data-key";
/// The place the bytes of an object are sealed for.
const PLACE: &str = "object";
/// Bytes that may be read beyond an object's declared size: the read reaches the end but stays bounded.
const READ_AHEAD: u64 = 1;
/// Waits for an answer of the server that reading one object may take at most: its pieces come one after another.
const READ_PATIENCE: u32 = 15;
/// Storage overhead of an object, in bytes and as a fraction (one in `OVERHEAD_PART`) of its bytes.
const OVERHEAD: u64 = 4_096;
const OVERHEAD_PART: u64 = 100;
/// Times an object is looked up again that was replaced while it was read, by the same bytes.
const LOOKS: u32 = 2;

pub use retention::{MediaObject, StoredFor};

/// The object store. Cloning it is cheap.
#[derive(Clone)]
pub struct MediaStore {
    bus: Bus,
    store: Arc<OnceCell<ObjectStore>>,
}

/// The reasons bytes were not stored.
#[derive(Debug, thiserror::Error)]
pub enum PutError {
    #[error("the object store holds as many bytes as it may (nats.objects_max_bytes)")]
    Full,
    #[error(transparent)]
    Bus(#[from] BusError),
}

impl MediaStore {
    /// Asks nothing of the server yet.
    pub fn new(bus: &Bus) -> Self {
        Self { bus: bus.clone(), store: Arc::default() }
    }

    /// Returns the object if it is stored, and renews its age if it is older than `young`; `None` if it has to be
    /// stored with [`MediaStore::store_object`].
    pub async fn find_and_renew(&self, digest: &str, young: Duration) -> Result<Option<Part>, BusError> {
        match self.info(digest).await? {
            Some(part) => Ok(self.touch(digest, young).await?.then_some(part)),
            None => Ok(None),
        }
    }

    /// Keeps bytes under their digest, whether they are there or not.
    pub async fn store_object(
        &self,
        digest: &str,
        media_type: &str,
        bytes: &[u8],
        stored_for: &StoredFor,
    ) -> Result<Part, PutError> {
        if !self.has_room(bytes.len() as u64).await? {
            return Err(PutError::Full);
        }
        let store = self.open_store().await?;
        let mut metadata = HashMap::from([(MEDIA_TYPE.to_owned(), media_type.to_owned())]);
        metadata.extend(stored_for.to_metadata());
        let sealed = self.bus.seal_with_new_key(DataKeyHolder::Object(digest), PLACE, bytes).await?;
        if let Some((generation, _)) = &sealed {
            metadata.insert(SIZE.to_owned(), bytes.len().to_string());
            metadata.insert(DATA_KEY.to_owned(), generation.to_string());
        }
        let meta = ObjectMetadata { name: digest.to_owned(), metadata, ..Default::default() };
        let mut source = sealed.as_ref().map_or(bytes, |(_, sealed)| sealed);
        let written = store.put(meta, &mut source).await.map_err(|error| match error.to_string() {
            reason if reason.contains("maximum bytes exceeded") => PutError::Full,
            _ => PutError::Bus(unavailable("storing an object", error)),
        })?;
        Ok(to_part(&written))
    }

    /// Returns the description of an object, or `None` if no object has this digest.
    pub async fn info(&self, digest: &str) -> Result<Option<Part>, BusError> {
        Ok(self.find_info(digest).await?.map(|info| to_part(&info)))
    }

    async fn find_info(&self, digest: &str) -> Result<Option<ObjectInfo>, BusError> {
        if !media::is_digest(digest) {
            return Ok(None);
        }
        let found = match self.open_store().await?.info(digest).await {
            Ok(info) => Some(info),
            // Whoever answered may lag behind the leader, or the description is damaged, of which the leader says that there is none.
            Err(_) => self.info_at_leader(digest).await?,
        };
        Ok(found.filter(|info| !info.deleted))
    }

    /// The object's bytes, which are what the digest says; none if there is none, or it is larger than `longest` bytes.
    pub async fn get(&self, digest: &str, longest: u64) -> Result<Option<(Part, Vec<u8>)>, BusError> {
        let mut looks = 0;
        loop {
            let Some(info) = self.find_info(digest).await? else { return Ok(None) };
            let part = to_part(&info);
            if part.size > longest {
                return Ok(None);
            }
            looks += 1;
            match self.read_bytes(&info).await {
                Ok(bytes) if media::digest(&bytes) == digest => return Ok(Some((part, bytes))),
                Ok(_) if looks >= LOOKS => {
                    tracing::error!(digest, "an object's bytes are not what its digest says");
                    return Ok(None);
                }
                Err(error) if looks >= LOOKS => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// The bytes that are described so; others where they cannot be opened.
    async fn read_bytes(&self, described: &ObjectInfo) -> Result<Vec<u8>, BusError> {
        const READING: &str = "reading an object";
        let digest = &described.name;
        let size = described.size as u64;
        let store = self.open_store().await?;
        let object = store.get(digest).await.map_err(|error| match error.kind() {
            GetErrorKind::NotFound => server_lagging_error(),
            _ => unavailable(READING, error),
        })?;
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
        let mut bounded = object.take(size + READ_AHEAD);
        let patience = self.bus.nats()?.request_timeout.saturating_mul(READ_PATIENCE);
        let read = timeout(patience, bounded.read_to_end(&mut bytes)).await;
        read.map_err(|error| unavailable(READING, error))?.map_err(|error| unavailable(READING, error))?;
        match data_key_generation(described) {
            Some(_) => Ok(self.bus.open_bytes(DataKeyHolder::Object(digest), PLACE, &bytes).await?.unwrap_or_default()),
            None => Ok(bytes),
        }
    }

    /// Returns true if there is room for `bytes` more. Checked before the upload, since the pieces of an object refused
    /// half-way would stay.
    async fn has_room(&self, bytes: u64) -> Result<bool, BusError> {
        const LOOKING: &str = "looking for room";
        let info = self.bucket_stream().await?.get_info().await.map_err(|error| unavailable(LOOKING, error))?;
        let most = u64::try_from(info.config.max_bytes).ok().filter(|most| *most > 0).unwrap_or(u64::MAX);
        Ok(info.state.bytes.saturating_add(bytes).saturating_add(bytes / OVERHEAD_PART + OVERHEAD) <= most)
    }

    /// The stream that the bucket is. Asks nothing of the server.
    async fn bucket_stream(&self) -> Result<Stream<()>, BusError> {
        let stream = self.bus.nats()?.jetstream.get_stream_no_info(format!("OBJ_{OBJECTS_BUCKET}")).await;
        stream.map_err(|error| unavailable("looking for the object store", error))
    }

    async fn open_store(&self) -> Result<&ObjectStore, BusError> {
        const OPENING: &str = "opening the object store";
        let nats = self.bus.nats()?;
        let open = || nats.jetstream.get_object_store(OBJECTS_BUCKET);
        self.store.get_or_try_init(open).await.map_err(|error| unavailable(OPENING, error))
    }
}

fn to_part(info: &ObjectInfo) -> Part {
    Part {
        media_type: info.metadata.get(MEDIA_TYPE).cloned().unwrap_or_default(),
        digest: info.name.clone(),
        size: info.metadata.get(SIZE).and_then(|size| size.parse().ok()).unwrap_or(info.size as u64),
        name: String::new(),
    }
}

/// The generation of the data key that it is sealed with, if it is.
fn data_key_generation(info: &ObjectInfo) -> Option<u32> {
    info.metadata.get(DATA_KEY)?.parse().ok()
}

fn unavailable(doing: &'static str, error: impl std::error::Error + Send + Sync + 'static) -> BusError {
    BusError::Unavailable { doing, source: error.into() }
}

fn server_lagging_error() -> BusError {
    BusError::Unavailable { doing: "reading an object", source: "the server has not seen it yet".into() }
}
