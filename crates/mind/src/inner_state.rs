//! An agent's inner state: texts that it keeps for later turns, by key (seed 002).
//!
//! Each user's keys are separate; a turn sees those of its user and those for all, which only turns that no user began
//! can write. The read model has all of it with its history; this module has the current entries.

mod search;
#[cfg(test)]
mod tests;
mod writer;

use std::{collections::BTreeMap, fmt::Write};

use jiff::Timestamp;
use kairo_proto::{
    about,
    v1::{StateDeleted, StateWritten},
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub(crate) use self::writer::read_key;
pub use self::{
    search::Relation,
    writer::{AcceptedStateChange, InnerStateWriter},
};
use super::{provenance::Provenance, state::AgentState};

/// Longest key and longest content, in bytes, and keys that one is related to.
pub const KEY_BYTES: usize = 128;
pub const CONTENT_BYTES: usize = 16 * 1024;
pub const RELATED_KEYS: usize = 32;
/// Of one user: keys.
const KEYS_OF_USER: usize = 500;
/// Of all users together: keys, and bytes. One has no more than a share of what the others leave, so that nobody fills it for
/// the others.
const KEYS_OF_USERS: usize = 2_000;
const BYTES_OF_USERS: usize = 192 * 1024;
const SHARE: usize = 4;
/// Of what is for all: keys, and bytes.
const KEYS_OF_ALL: usize = 500;
const BYTES_OF_ALL: usize = 64 * 1024;
/// Approximate size of an entry beside its texts, in bytes.
const ENTRY_BYTES: usize = 128;

/// The inner state of an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InnerState {
    /// By user, and by key; those for all are the user's without a name.
    entries: BTreeMap<String, BTreeMap<String, InnerStateEntry>>,
}

/// The entry under a key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InnerStateEntry {
    pub content: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<String>,
    pub updated_at: Timestamp,
    /// The event that wrote it.
    pub event: Uuid,
    /// Content from outside that it was made from.
    #[serde(default, skip_serializing_if = "Provenance::is_empty")]
    pub outside: Provenance,
}

impl InnerState {
    pub fn is_nothing(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the entry that a turn of this user sees under a key: the user's own, else the one for all.
    pub fn get(&self, user: &str, key: &str) -> Option<&InnerStateEntry> {
        let own = self.entries_of(user).and_then(|keys| keys.get(key));
        own.or_else(|| self.entries_of("").and_then(|keys| keys.get(key)))
    }

    /// Returns true if the user has an entry of their own under this key.
    fn has_own(&self, user: &str, key: &str) -> bool {
        self.entries_of(user).is_some_and(|keys| keys.contains_key(key))
    }

    /// All that a turn of this user sees, by key.
    pub fn visible_to(&self, user: &str) -> BTreeMap<&str, &InnerStateEntry> {
        let of_all = self.entries_of("").into_iter().flatten();
        // What is the user's own takes the place of what is for all.
        let own = self.entries_of(user).into_iter().flatten();
        of_all.chain(own).map(|(key, entry)| (key.as_str(), entry)).collect()
    }

    /// Removes all entries of a user who is forgotten.
    pub(super) fn forget_user(&mut self, user: &str) {
        self.entries.remove(user);
    }

    fn entries_of(&self, user: &str) -> Option<&BTreeMap<String, InnerStateEntry>> {
        self.entries.get(user)
    }

    /// Takes in `state.written` or `state.deleted`.
    fn apply_change(&mut self, event: &str, change: about::State<'_>) {
        match change {
            // There was room for it, by the same rule, when it was decided on.
            about::State::Written(written) => _ = self.accept_write(event, written),
            about::State::Deleted(StateDeleted { key, user, .. }) => {
                let Some(keys) = self.entries.get_mut(user) else { return };
                keys.remove(key);
                if keys.is_empty() {
                    self.entries.remove(user);
                }
            }
        }
    }

    /// Takes in what was written, if there is room for it.
    fn accept_write(&mut self, event: &str, written: &StateWritten) -> Result<(), String> {
        let StateWritten { key, content, related_keys, user, updated_at, outside, .. } = written;
        let mut marks = Provenance::default();
        marks.add_marks(outside);
        let key = truncate_text(key, KEY_BYTES);
        let entry = InnerStateEntry {
            content: truncate_text(content, CONTENT_BYTES),
            related: related_keys.iter().take(RELATED_KEYS).map(|key| truncate_text(key, KEY_BYTES)).collect(),
            updated_at: updated_at.parse().unwrap_or_default(),
            event: Uuid::parse_str(event).unwrap_or_default(),
            outside: marks,
        };
        self.check_room_for(user, &key, &entry)?;
        self.entries.entry(user.clone()).or_default().insert(key, entry);
        Ok(())
    }

    /// Checks that there is room for this entry. A change that makes nothing larger always has room.
    fn check_room_for(&self, user: &str, key: &str, entry: &InnerStateEntry) -> Result<(), String> {
        let own = self.entries_of(user);
        let before = own.and_then(|keys| keys.get_key_value(key)).map_or(0, entry_bytes);
        let (keys, taken) = own.map_or((0, 0), |keys| (keys.len(), keys.iter().map(entry_bytes).sum()));
        let added = entry_bytes((&key.to_owned(), entry));
        if before > 0 && added <= before {
            return Ok(());
        }
        let (most_keys, most_bytes) = self.room_share_of(user);
        let keys = keys + usize::from(before == 0);
        if keys > most_keys && before == 0 {
            return Err("there is no room for another key: delete what is no longer needed".to_owned());
        }
        if taken - before + added > most_bytes {
            return Err("there is no room for so much: delete or shorten what is no longer needed".to_owned());
        }
        Ok(())
    }

    /// Keys and bytes that a user may have.
    fn room_share_of(&self, user: &str) -> (usize, usize) {
        if user.is_empty() {
            return (KEYS_OF_ALL, BYTES_OF_ALL);
        }
        let others = self.entries.iter().filter(|(other, _)| !other.is_empty() && *other != user);
        let mut keys = 0;
        let mut taken = 0;
        for (_, entries) in others {
            keys += entries.len();
            taken += entries.iter().map(entry_bytes).sum::<usize>();
        }
        let keys = KEYS_OF_USERS.saturating_sub(keys) / SHARE;
        (keys.min(KEYS_OF_USER), BYTES_OF_USERS.saturating_sub(taken) / SHARE)
    }
}

/// As much of a text as there is room for.
fn truncate_text(text: &str, bytes: usize) -> String {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default().to_owned()
}

fn entry_bytes((key, entry): (&String, &InnerStateEntry)) -> usize {
    let related: usize = entry.related.iter().map(String::len).sum();
    let marks: usize = entry.outside.marks().iter().map(String::len).sum();
    key.len() + entry.content.len() + related + marks + ENTRY_BYTES
}

/// Builds the lines of inner state for a prompt in turns of this user, one per key, latest first, in at most `most`
/// bytes; a line says how many entries were left out. Returns the provenance of the shown entries with it.
pub fn prompt_lines(state: &AgentState, user: &str, most: usize) -> (String, Provenance) {
    let mut entries: Vec<(&str, &InnerStateEntry)> = state.inner.visible_to(user).into_iter().collect();
    entries.sort_by(|(key, one), (other_key, other)| (other.updated_at, *key).cmp(&(one.updated_at, *other_key)));
    let mut text = String::new();
    let mut outside = Provenance::default();
    let mut left_out = 0_usize;
    for (key, entry) in entries {
        let related =
            if entry.related.is_empty() { String::new() } else { format!(" (see {})", entry.related.join(", ")) };
        let line = format!("- {key}: {}{related}\n", entry.content.replace('\n', " "));
        if left_out > 0 || text.len() + line.len() > most {
            left_out += 1;
            continue;
        }
        text.push_str(&line);
        outside = outside.merge(&entry.outside);
    }
    if left_out > 0 {
        _ = writeln!(text, "- and {left_out} more");
    }
    (text, outside)
}

impl AgentState {
    pub(super) fn apply_inner_state_change(&mut self, event: &str, change: about::State<'_>) {
        self.inner.apply_change(event, change);
    }
}
