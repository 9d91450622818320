//! Writing to inner state: checks changes and turns them into events.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kairo_events::{ids, sealing};
use kairo_proto::{
    about,
    v1::{StateDeleted, StateWritten},
};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{CONTENT_BYTES, InnerState, KEY_BYTES, RELATED_KEYS, truncate_text};
use crate::{
    intrinsics::memory::SealedText,
    provenance::Provenance,
    secrets::{self, RedactedText},
};

/// Writes to inner state on behalf of a user. Each change sees those made before it.
pub struct InnerStateWriter<'a> {
    inner: InnerState,
    user: &'a str,
    now: Timestamp,
    /// The base for ids of versions: derived from it, they are the same on replay.
    id: Uuid,
    secret_key: Option<&'a sealing::SealingKey>,
    outside: Provenance,
    written: usize,
}

/// An accepted change.
#[derive(Clone, Debug, PartialEq)]
pub enum AcceptedStateChange {
    Write(StateWritten),
    Delete(StateDeleted),
}

impl<'a> InnerStateWriter<'a> {
    /// A writer for a turn of this user, which has seen content from there.
    pub fn new(
        inner: &InnerState,
        user: &'a str,
        now: Timestamp,
        id: Uuid,
        secret_key: Option<&'a sealing::SealingKey>,
        outside: Provenance,
    ) -> Self {
        Self { inner: inner.clone(), user, now, id, secret_key, outside, written: 0 }
    }

    /// Builds the event for a write: a key, its content, and the related keys.
    ///
    /// # Errors
    /// The field at fault and the mistake in it, in words for a model.
    pub fn write(&mut self, given: &Map<String, Value>) -> Result<StateWritten, String> {
        let key = read_key(given)?.to_owned();
        let content = match given.get("content") {
            Some(Value::String(content)) if content.len() <= CONTENT_BYTES => content,
            Some(Value::String(content)) => {
                return Err(format!("content: expected at most {CONTENT_BYTES} bytes, found {}", content.len()));
            }
            _ => return Err("content: expected a text".to_owned()),
        };
        let related_keys = read_related_keys(given, &key)?;
        let version = ids::derive(self.id, &format!("state/{}", self.written));
        let cleaned = RedactedText { text: content.clone(), secrets: Vec::new() };
        let kept = SealedText::seal(self.secret_key, version, cleaned)?;
        let written = StateWritten {
            key,
            content: truncate_text(&kept.text, CONTENT_BYTES),
            related_keys,
            user: self.user.to_owned(),
            updated_at: self.now.to_string(),
            outside: self.outside.marks(),
            secrets: kept.sealed,
            version_id: version.to_string(),
        };
        self.inner.accept_write("", &written)?;
        self.written += 1;
        Ok(written)
    }

    /// Builds the event for the deletion of a key.
    ///
    /// # Errors
    /// If the key has no entry that this turn may delete.
    pub fn delete(&mut self, given: &Map<String, Value>) -> Result<StateDeleted, String> {
        let key = read_key(given)?;
        if !self.inner.has_own(self.user, key) {
            return Err(match self.inner.get(self.user, key) {
                Some(_) => format!("key: {key:?} is for all, and only a turn that no user began may delete it"),
                None => format!("key: there is nothing under {key:?}"),
            });
        }
        let deleted =
            StateDeleted { key: key.to_owned(), user: self.user.to_owned(), updated_at: self.now.to_string() };
        self.inner.apply_change("", about::State::Deleted(&deleted));
        Ok(deleted)
    }

    /// Applies a list of changes as a model writes it: `[{"key": "…", "content": "…", "related_keys": ["…"]}]`, where
    /// `null` as content deletes. Returns the accepted changes, in order, and the reasons the others were refused.
    ///
    /// # Errors
    /// If `list` is no list of at most `most` objects.
    pub fn apply(&mut self, list: &Value, most: usize) -> Result<(Vec<AcceptedStateChange>, Vec<String>), String> {
        let wrong = || format!("expected a list of at most {most} objects with key and content");
        let items = list.as_array().filter(|items| items.len() <= most).ok_or_else(wrong)?;
        let mut changes = Vec::new();
        let mut refused = Vec::new();
        for item in items {
            let given = item.as_object().ok_or_else(wrong)?;
            let change = match given.get("content") {
                Some(Value::Null) => self.delete(given).map(AcceptedStateChange::Delete),
                _ => self.write(given).map(AcceptedStateChange::Write),
            };
            match change {
                Ok(change) => changes.push(change),
                Err(reason) => refused.push(reason),
            }
        }
        Ok((changes, refused))
    }
}

/// The key that is given.
pub(crate) fn read_key(given: &Map<String, Value>) -> Result<&str, String> {
    match given.get("key") {
        Some(Value::String(key)) => is_key(key).then_some(key.as_str()).ok_or_else(|| key_error("key", key)),
        _ => Err(format!("key: expected a text of 1 to {KEY_BYTES} bytes")),
    }
}

/// Keys that it is related to, each once and none of them itself.
fn read_related_keys(given: &Map<String, Value>, own: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("related_keys: expected a list of at most {RELATED_KEYS} keys");
    let keys = match given.get("related_keys") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(keys)) if keys.len() <= RELATED_KEYS => keys,
        Some(_) => return Err(wrong()),
    };
    let mut seen = BTreeSet::from([own]);
    let mut related = Vec::new();
    for key in keys {
        let key = key.as_str().ok_or_else(wrong)?;
        if !is_key(key) {
            return Err(key_error("related_keys", key));
        }
        if seen.insert(key) {
            related.push(key.to_owned());
        }
    }
    Ok(related)
}

/// Returns true for a valid key: a line that is not blank and holds no secret, since keys are shown as they are.
fn is_key(key: &str) -> bool {
    let is_line = !key.contains(char::is_control) && key.trim() == key && !key.is_empty();
    is_line && key.len() <= KEY_BYTES && secrets::redact(key).secrets.is_empty()
}

fn key_error(field: &str, found: &str) -> String {
    let found: String = found.chars().take(40).collect();
    format!(
        "{field}: expected 1 to {KEY_BYTES} bytes without control characters, blanks around them, or a secret; found \
         {found:?}"
    )
}
