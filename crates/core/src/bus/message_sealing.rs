//! Sealing what is written and opening what is read: everybody above has to do with open messages alone.

use std::collections::{BTreeMap, VecDeque};

use async_trait::async_trait;
use bytes::Bytes;
use kairo_events::personal::{self, ContentOwners, DataKeyState, NotOpened};
use kairo_proto::ContentType;

use super::{
    Bus, BusError,
    append::OutgoingEvent,
    data_keys::DataKeyHolder,
    port::{Cause, ConsumerPull, Headers, MessagePage, PulledMessage, StreamTail},
};
use crate::{
    envelope,
    ids::Name,
    record::RawMessage,
    vocabulary::{self, SEALING},
};

const OPENING: &str = "opening what is sealed";

impl Bus {
    /// The headers and the body of an event as they are stored.
    pub(super) async fn seal_event(&self, event: &OutgoingEvent) -> Result<(Headers, Bytes), BusError> {
        let mut headers = event.headers();
        let mut keys = BTreeMap::new();
        if !event.envelope.owners.all_owners().is_empty() && self.may_seal().await? {
            // What is no name can have no key.
            let is_name = |owner: &&str| Name::parse(ContentOwners::agent_of(owner).unwrap_or(owner)).is_ok();
            for user in event.envelope.owners.all_owners().into_iter().filter(is_name) {
                let key = self.get_or_create_data_key(DataKeyHolder::from_owner(user)).await?;
                keys.extend(key.map(|key| (user.to_owned(), key)));
            }
        }
        let sealed = match keys.is_empty() {
            true => None,
            false => personal::seal_body(&event.body, event.envelope.id, &event.envelope.owners, &keys)
                .map_err(BusError::unavailable("sealing"))?,
        };
        let Some(sealed) = sealed else { return Ok((headers, event.body.encode().into())) };
        headers.insert(envelope::CONTENT_TYPE, ContentType::SEALED);
        headers.insert(envelope::WHOSE, event.envelope.owners.to_header());
        let reader = vocabulary::required_reader(&event.body).max(SEALING);
        headers.insert(vocabulary::READER_HEADER, reader.to_string());
        Ok((headers, sealed.into()))
    }

    /// Returns the message with its sealed content opened as far as there are keys. An unreadable message is returned
    /// unchanged.
    ///
    /// # Errors
    /// Returns an error if the keys cannot be read now, or the master key is another one.
    pub async fn open_message(&self, raw: RawMessage) -> Result<RawMessage, BusError> {
        if !raw.is_sealed() {
            return Ok(raw);
        }
        let Ok(sealed_for) = personal::sealed_owners(&raw.payload) else { return Ok(raw) };
        let mut keys = BTreeMap::new();
        for (user, generation) in sealed_for {
            let known = self.known_data_key(DataKeyHolder::from_owner(&user), generation).await?;
            keys.insert((user, generation), known);
        }
        let key = |user: &str, generation: u32| {
            keys.get(&(user.to_owned(), generation)).copied().unwrap_or(DataKeyState::Destroyed)
        };
        open_with_keys(raw, key).map_err(BusError::unavailable(OPENING))
    }

    /// Opens the sealed messages among several.
    pub(super) async fn open_messages(&self, raws: Vec<RawMessage>) -> Result<Vec<RawMessage>, BusError> {
        if !raws.iter().any(RawMessage::is_sealed) {
            return Ok(raws);
        }
        let mut opened = Vec::with_capacity(raws.len());
        for raw in raws {
            opened.push(self.open_message(raw).await?);
        }
        Ok(opened)
    }

    pub(super) async fn open_optional(&self, raw: Option<RawMessage>) -> Result<Option<RawMessage>, BusError> {
        match raw {
            Some(raw) => self.open_message(raw).await.map(Some),
            None => Ok(None),
        }
    }

    pub(super) async fn open_page(&self, page: MessagePage) -> Result<MessagePage, BusError> {
        Ok(MessagePage { messages: self.open_messages(page.messages).await?, ..page })
    }
}

/// Opens the sealed content of a message as far as there are keys. An unreadable message is returned unchanged.
///
/// # Errors
/// Returns an error if the existing key does not open some content.
pub fn open_with_keys(raw: RawMessage, key: impl Fn(&str, u32) -> DataKeyState) -> Result<RawMessage, NotOpened> {
    let (Some((id, _)), Some(type_name)) = (raw.ids(), raw.header(envelope::TYPE)) else { return Ok(raw) };
    let opened = match personal::open_body(type_name, &raw.payload, id, key) {
        Err(NotOpened::Body(_)) => return Ok(raw),
        opened => opened?,
    };
    let mut headers = raw.headers.clone();
    headers.insert(envelope::CONTENT_TYPE, ContentType::PROTOBUF);
    if !opened.forgotten.is_empty() {
        let users: Vec<String> = opened.forgotten.into_iter().collect();
        headers.insert(envelope::FORGOTTEN, users.join(","));
    }
    let payload = opened.body.encode().into();
    Ok(RawMessage { headers, payload, sealed: Some(raw.payload), ..raw })
}

/// A tail of the log that opens what it brings.
pub(super) struct OpeningTail {
    tail: Box<dyn StreamTail>,
    bus: Bus,
    closed: VecDeque<RawMessage>,
    open: Vec<RawMessage>,
}

impl OpeningTail {
    pub(super) fn new(tail: Box<dyn StreamTail>, bus: Bus) -> Self {
        Self { tail, bus, closed: VecDeque::new(), open: Vec::new() }
    }
}

#[async_trait]
impl StreamTail for OpeningTail {
    fn pending(&self) -> u64 {
        self.tail.pending()
    }

    async fn next_batch(&mut self) -> Result<Vec<RawMessage>, Cause> {
        if self.closed.is_empty() {
            self.closed = self.tail.next_batch().await?.into();
        }
        // Whatever is dropped meanwhile, nothing is lost.
        while let Some(raw) = self.closed.front() {
            // Copying the headers costs more than all the rest.
            let opened = if raw.is_sealed() { Some(self.bus.open_message(raw.clone()).await?) } else { None };
            let closed = self.closed.pop_front();
            self.open.extend(opened.or(closed));
        }
        Ok(std::mem::take(&mut self.open))
    }
}

/// Opens the sealed messages of a durable consumer.
pub(super) struct OpeningPull {
    pull: Box<dyn ConsumerPull>,
    bus: Bus,
    closed: Option<PulledMessage>,
}

impl OpeningPull {
    pub(super) fn new(pull: Box<dyn ConsumerPull>, bus: Bus) -> Self {
        Self { pull, bus, closed: None }
    }
}

#[async_trait]
impl ConsumerPull for OpeningPull {
    async fn next_delivery(&mut self) -> Option<Result<PulledMessage, Cause>> {
        if self.closed.is_none() {
            match self.pull.next_delivery().await? {
                Ok(delivered) => self.closed = Some(delivered),
                Err(error) => return Some(Err(error)),
            }
        }
        let raw = &self.closed.as_ref()?.raw;
        let opened = if raw.is_sealed() { Some(self.bus.open_message(raw.clone()).await) } else { None };
        let delivered = self.closed.take()?;
        Some(match opened {
            None => Ok(delivered),
            Some(opened) => opened.map(|raw| PulledMessage { raw, ..delivered }).map_err(Cause::from),
        })
    }
}
