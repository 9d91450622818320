//! The entry that counts for a generation. Services that may write data keys may also overwrite each other's, and
//! anybody who asks the server can have its answers written there ([`kairo_events::copies`]). So the newest entry is
//! not trusted for being the newest:
//!
//! * A key is written once: of several that open, the oldest counts. The bucket refuses further entries if it would
//!   drop that one.
//! * The mark of a destroyed key counts if no key opens any more. Destroying a key leaves the mark first and then
//!   erases the key.
//! * Any other entry is damaged, and is ignored.
//!
//! An entry under a master key that is not configured is damaged if the configured one is proven to be right: it opens
//! the key that the gateway has made for [`DataKeyHolder::Installation`]. Otherwise the replica may be the one that is wrong,
//! and waits.

use std::sync::atomic::Ordering;

use base64::{Engine, prelude::BASE64_STANDARD};
use kairo_events::{
    copies::COPY_OF,
    personal::DataKeyState,
    sealing::{self, SealingKey},
};

use super::{
    DataKeyHolder, DataKeys, StoredDataKey, binding_id, data_key_stream, data_key_subject, other_master_message,
};
use crate::{
    bus::port::{Cause, Port},
    record::RawMessage,
};

/// Entries of one generation that the bucket keeps. More are refused.
pub const MOST_ENTRIES: usize = 8;
/// The generation of the installation's key.
pub(super) const INSTALLATION: u32 = 1;
/// The header with the sequence the server requires of the message before it on its subject, 0 for none.
const GUARD: &str = "Nats-Expected-Last-Subject-Sequence";

/// The parsed content of one entry.
#[derive(Debug)]
pub(super) enum DecodedEntry {
    Key(SealingKey),
    Destroyed,
    /// A key that is kept under another master key, with this digest.
    OtherMaster(String),
    Damaged,
}

impl DataKeys {
    /// Returns the key or the mark that counts for a generation with this newest entry, or `None` if all its entries
    /// are damaged.
    ///
    /// # Errors
    /// Returns an error if the key is wrapped under another master key, and this replica may be wrong about its own.
    pub(super) async fn effective_key(
        &self,
        port: &dyn Port,
        name: &str,
        generation: u32,
        newest: &RawMessage,
    ) -> Result<Option<DataKeyState>, Cause> {
        if let (DecodedEntry::Key(key), Some("0")) = (self.decode_entry(name, generation, newest), newest.header(GUARD))
        {
            // The server has made sure that nothing stood there before.
            return Ok(Some(DataKeyState::Key(key)));
        }
        let entries = self.read_entries(port, name, generation).await?;
        if let Some(key) = entries.iter().find_map(key_of) {
            return Ok(Some(DataKeyState::Key(key)));
        }
        let other = entries.iter().find_map(|entry| match entry {
            DecodedEntry::OtherMaster(digest) => Some(digest),
            _ => None,
        });
        if let Some(digest) = other
            && !self.has_right_master(port).await?
        {
            return Err(other_master_message(name, generation, digest).into());
        }
        let is_destroyed = entries.iter().any(|entry| matches!(entry, DecodedEntry::Destroyed));
        if !is_destroyed {
            tracing::warn!(name, generation, "the entry of a data key is damaged, and is passed over");
        }
        Ok(is_destroyed.then_some(DataKeyState::Destroyed))
    }

    /// Returns true if one of the configured master keys is the installation's.
    pub(super) async fn has_right_master(&self, port: &dyn Port) -> Result<bool, Cause> {
        if self.is_right.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let name = DataKeyHolder::Installation.to_string();
        let is_right = self.read_entries(port, &name, INSTALLATION).await?.iter().any(|entry| key_of(entry).is_some());
        self.is_right.store(is_right, Ordering::Relaxed);
        Ok(is_right)
    }

    /// All entries of a generation, the oldest first.
    async fn read_entries(&self, port: &dyn Port, name: &str, generation: u32) -> Result<Vec<DecodedEntry>, Cause> {
        let subject = data_key_subject(&format!("{name}.{generation}"));
        let page = port.read_page(&data_key_stream(), &subject, 0, MOST_ENTRIES).await?;
        Ok(page.messages.iter().map(|raw| self.decode_entry(name, generation, raw)).collect())
    }

    pub(super) fn decode_entry(&self, name: &str, generation: u32, raw: &RawMessage) -> DecodedEntry {
        match raw.header(COPY_OF) {
            Some(_) => DecodedEntry::Damaged,
            None => self.decode_entry_bytes(name, generation, &raw.payload),
        }
    }

    pub(super) fn decode_entry_bytes(&self, name: &str, generation: u32, stored: &[u8]) -> DecodedEntry {
        let (master, key) = match serde_json::from_slice(stored) {
            Ok(StoredDataKey::Wrapped { master, key }) => (master, key),
            Ok(StoredDataKey::Destroyed) => return DecodedEntry::Destroyed,
            Err(_) => return DecodedEntry::Damaged,
        };
        let Some((_, under)) = self.masters.iter().find(|(digest, _)| *digest == master) else {
            return DecodedEntry::OtherMaster(master);
        };
        let sealed = BASE64_STANDARD.decode(key).ok();
        let opened = sealed.and_then(|sealed| sealing::open_at(under, binding_id(name, generation), &sealed).ok());
        opened.and_then(|opened| SealingKey::try_from(opened).ok()).map_or(DecodedEntry::Damaged, DecodedEntry::Key)
    }
}

fn key_of(entry: &DecodedEntry) -> Option<SealingKey> {
    match entry {
        DecodedEntry::Key(key) => Some(*key),
        _ => None,
    }
}
