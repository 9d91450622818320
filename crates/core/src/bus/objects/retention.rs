//! The objects in the object store, their age and users, and how they are removed.
//!
//! An object is a message that describes it, and its pieces. Every change to an object is guarded by the sequence of
//! that message, so of two concurrent changes one succeeds: an object is not removed as too old if it was stored again,
//! or is about to be named ([`MediaStore::touch`]), since its age was read.

use std::{collections::HashSet, time::Duration};

use async_nats::{
    HeaderMap,
    header::NATS_STREAM,
    jetstream::{
        consumer::{DeliverPolicy, pull::OrderedConfig},
        context::PublishErrorKind,
        message::PublishMessage,
        object_store::ObjectInfo,
        stream::{LastRawMessageErrorKind, Stream as NatsStream},
    },
};
use base64::{Engine, engine::general_purpose::URL_SAFE};
use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, future::ready};
use jiff::Timestamp;
use tokio::time::timeout;

use super::{MediaStore, READ_PATIENCE, data_key_generation, unavailable};
use crate::{
    bus::{BusError, data_keys::DataKeyHolder},
    record::server_time,
    subjects::OBJECTS_BUCKET,
};

/// The metadata names of those who stored the bytes first: the key, and the user.
const KEY: &str = "kairo-key";
const USER: &str = "kairo-user";

/// The key and the user for whom bytes are stored: they count for both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredFor {
    pub key: Option<String>,
    pub user: Option<String>,
}

impl StoredFor {
    pub(super) fn to_metadata(&self) -> impl Iterator<Item = (String, String)> {
        let pairs = [(KEY, self.key.clone()), (USER, self.user.clone())];
        pairs.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)))
    }

    fn from_info(info: &ObjectInfo) -> Self {
        let said = |name| info.metadata.get(name).cloned();
        Self { key: said(KEY), user: said(USER) }
    }
}

/// An object, or what is left of one that was removed.
#[derive(Clone, Debug, PartialEq)]
pub struct MediaObject {
    pub digest: String,
    /// In bytes.
    pub size: u64,
    pub stored_for: StoredFor,
    /// When it was stored, or touched last, by the server's clock.
    pub at: Timestamp,
    pub is_removed: bool,
    /// The sequence of the message that describes it.
    pub sequence: u64,
    /// The last token of the subject of its pieces.
    pieces: String,
    /// The generation of the data key that it is sealed with; 0 for none.
    data_key: u32,
}

impl MediaObject {
    fn from_info(info: ObjectInfo, sequence: u64, at: Timestamp) -> Self {
        Self {
            stored_for: StoredFor::from_info(&info),
            data_key: data_key_generation(&info).unwrap_or_default(),
            digest: info.name,
            size: info.size as u64,
            at,
            is_removed: info.deleted,
            sequence,
            pieces: info.nuid,
        }
    }
}

impl MediaStore {
    /// Makes an object that is older than this as young as one that was just stored, so that nobody removes it before it
    /// is named. False when there is none of this digest.
    pub async fn touch(&self, digest: &str, young: Duration) -> Result<bool, BusError> {
        while let Some((info, kept)) = self.read_description(digest).await?.filter(|(_, kept)| !kept.is_removed) {
            // Where somebody else was quicker, to touch it or to remove it, it is looked at again.
            if kept.at + young > self.bus.now() || self.replace_description(&kept, &info).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes an object, unless it was stored again or touched since this was said of it: then it is false. What is left
    /// says to those who follow that it was removed, until it is forgotten.
    pub async fn remove(&self, kept: &MediaObject) -> Result<bool, BusError> {
        let Some((info, _)) = self.read_description(&kept.digest).await? else { return Ok(false) };
        let removed = ObjectInfo { deleted: true, size: 0, chunks: 0, digest: None, ..info };
        let is_removed = self.replace_description(kept, &removed).await?;
        if is_removed {
            self.drop_content(kept).await?;
        }
        Ok(is_removed)
    }

    /// Forgets that there was an object that was removed, unless it was stored again.
    pub async fn forget_removed(&self, kept: &MediaObject) -> Result<(), BusError> {
        // Whoever removed it may have been killed before its content was gone.
        self.drop_content(kept).await?;
        let subject = description_subject(&kept.digest);
        let forgotten = self.bucket_stream().await?.purge().filter(subject).sequence(kept.sequence + 1).await;
        forgotten.map_err(|error| unavailable("forgetting an object", error))?;
        match kept.data_key {
            0 => Ok(()),
            newest => self.bus.drop_destroyed_marks(DataKeyHolder::Object(&kept.digest), newest).await,
        }
    }

    /// Removes pieces of no object that were stored before this time, such as of what a gateway was storing when it was
    /// killed; of so many objects at most. Of how many it were.
    pub async fn remove_orphan_pieces(&self, before: Timestamp, most: usize) -> Result<usize, BusError> {
        const LOOKING: &str = "looking for pieces of no object";
        let stream = self.bucket_stream().await?;
        let found = stream.info_builder().subjects(pieces_subject("*")).fetch().await;
        let found = found.map_err(|error| unavailable(LOOKING, error))?;
        let found: Vec<(String, usize)> = found.try_collect().await.map_err(|error| unavailable(LOOKING, error))?;
        // Asked for after the pieces, so that whatever was whole by then is known.
        let known: HashSet<String> =
            self.read_all_objects().await?.into_iter().map(|kept| pieces_subject(&kept.pieces)).collect();
        let mut removed = 0;
        for (subject, _) in found.into_iter().filter(|(subject, _)| !known.contains(subject)) {
            if removed == most {
                break;
            }
            let last = stream.get_last_raw_message_by_subject(&subject).await;
            if last.is_ok_and(|last| server_time(last.time.unix_timestamp_nanos()) < before) {
                self.purge_subject(&stream, &subject).await?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Streams the stored objects and then every change, with `None` for a damaged description; also returns how many
    /// come before the changes.
    pub async fn follow_objects(
        &self,
    ) -> Result<(u64, impl Stream<Item = Result<Option<MediaObject>, BusError>> + use<>), BusError> {
        const FOLLOWING: &str = "following the object store";
        let config = OrderedConfig {
            deliver_policy: DeliverPolicy::LastPerSubject,
            filter_subject: format!("$O.{OBJECTS_BUCKET}.M.>"),
            ..Default::default()
        };
        let consumer = self.bucket_stream().await?.create_consumer(config).await;
        let consumer = consumer.map_err(|error| unavailable(FOLLOWING, error))?;
        let there = consumer.cached_info().num_pending;
        let messages = consumer.messages().await.map_err(|error| unavailable(FOLLOWING, error))?;
        let kept = messages.map(|message| {
            let message = message.map_err(|error| unavailable(FOLLOWING, error))?;
            let place = message.info().map_err(|source| BusError::Unavailable { doing: FOLLOWING, source })?;
            let sequence = place.stream_sequence;
            let at = server_time(place.published.unix_timestamp_nanos());
            let info = parse_description(message.headers.as_ref(), &message.payload);
            Ok(info.map(|info| MediaObject::from_info(info, sequence, at)))
        });
        Ok((there, kept))
    }

    /// All that is kept.
    async fn read_all_objects(&self) -> Result<Vec<MediaObject>, BusError> {
        let (there, kept) = self.follow_objects().await?;
        let patience = self.bus.nats()?.request_timeout.saturating_mul(READ_PATIENCE);
        let there = usize::try_from(there).unwrap_or(usize::MAX);
        let intact = kept.take(there).try_filter_map(|kept| ready(Ok(kept)));
        let read = timeout(patience, intact.try_collect()).await;
        read.map_err(|error| unavailable("reading what the object store keeps", error))?
    }

    /// Returns the leader's description of an object, or `None` if it is damaged, so that the object can be stored
    /// again.
    async fn read_description(&self, digest: &str) -> Result<Option<(ObjectInfo, MediaObject)>, BusError> {
        const LOOKING: &str = "looking an object up";
        match self.bucket_stream().await?.get_last_raw_message_by_subject(&description_subject(digest)).await {
            Ok(message) => {
                let at = server_time(message.time.unix_timestamp_nanos());
                let info = parse_description(Some(&message.headers), &message.payload);
                Ok(info.map(|info| (info.clone(), MediaObject::from_info(info, message.sequence, at))))
            }
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(unavailable(LOOKING, error)),
        }
    }

    /// Returns the leader's description of an object that was not removed.
    pub(super) async fn info_at_leader(&self, digest: &str) -> Result<Option<ObjectInfo>, BusError> {
        Ok(self.read_description(digest).await?.map(|(info, _)| info))
    }

    /// Describes an object anew, if nobody did since; false if somebody did.
    async fn replace_description(&self, since: &MediaObject, info: &ObjectInfo) -> Result<bool, BusError> {
        const DESCRIBING: &str = "describing an object";
        let payload = serde_json::to_vec(info).map_err(|error| unavailable(DESCRIBING, error))?;
        // It takes the place of the one before.
        let message = PublishMessage::build()
            .header("Nats-Rollup", "sub")
            .expected_last_subject_sequence(since.sequence)
            .payload(Bytes::from(payload));
        let jetstream = &self.bus.nats()?.jetstream;
        let sent = async { jetstream.send_publish(description_subject(&since.digest), message).await?.await };
        match sent.await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(false),
            Err(error) => Err(unavailable(DESCRIBING, error)),
        }
    }

    /// Nobody can read its bytes from here on. Data keys of a later time are those of whoever stored it again.
    async fn drop_content(&self, kept: &MediaObject) -> Result<(), BusError> {
        if kept.data_key > 0 {
            self.bus.destroy_data_keys(DataKeyHolder::Object(&kept.digest), kept.data_key).await?;
        }
        match kept.pieces.as_str() {
            "" => Ok(()),
            pieces => self.purge_subject(&self.bucket_stream().await?, &pieces_subject(pieces)).await,
        }
    }

    async fn purge_subject<I>(&self, stream: &NatsStream<I>, subject: &str) -> Result<(), BusError> {
        let purged = stream.purge().filter(subject).await;
        purged.map(drop).map_err(|error| unavailable("removing the pieces of an object", error))
    }
}

/// Returns the subject of an object's description.
fn description_subject(digest: &str) -> String {
    format!("$O.{OBJECTS_BUCKET}.M.{}", URL_SAFE.encode(digest))
}

/// Returns the subject of an object's pieces.
fn pieces_subject(pieces: &str) -> String {
    format!("$O.{OBJECTS_BUCKET}.C.{pieces}")
}
/// Parses the description of an object; `None` if it is damaged or a copy ([`kairo_events::copies`]).
fn parse_description(headers: Option<&HeaderMap>, payload: &[u8]) -> Option<ObjectInfo> {
    let is_copy = headers.is_some_and(|headers| headers.get(NATS_STREAM).is_some());
    serde_json::from_slice(payload).ok().filter(|_| !is_copy)
}
