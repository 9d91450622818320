//! The documents of the search engine: one for each thread, task, memory, message and key of inner state. Each
//! follows from its row alone.

use kairo_proto::words::HitKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Letters of a text that can be found by.
pub const LETTERS: usize = 65_536;
/// The field that names a document.
pub const KEY: &str = "uid";
/// The fields that are searched, in the order of their weight.
pub const SEARCHED: [&str; 3] = ["title", "keywords", "text"];
/// The fields that narrow a search.
pub const FILTERED: [&str; 7] = ["kind", "agent", "user", "type", "status", "day", "sequence"];

/// The kind of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentKind {
    Thread,
    Task,
    Memory,
    Message,
    State,
}

impl DocumentKind {
    pub const ALL: [Self; 5] = [Self::Thread, Self::Task, Self::Memory, Self::Message, Self::State];

    pub fn name(self) -> &'static str {
        match self {
            Self::Thread => HitKind::Thread,
            Self::Task => HitKind::Task,
            Self::Memory => HitKind::Memory,
            Self::Message => HitKind::Message,
            Self::State => HitKind::State,
        }
        .known_word()
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A document. Nothing in it is sealed: of a secret it has no more than its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchDocument {
    /// Follows from the kind, the agent and the id.
    pub uid: String,
    pub kind: DocumentKind,
    pub id: String,
    pub agent: String,
    /// None for everybody's, and nobody's.
    pub user: Option<String>,
    pub title: String,
    pub text: String,
    pub keywords: Vec<String>,
    #[serde(rename = "type")]
    pub kind_of: String,
    pub status: Option<String>,
    /// The day it is about or was changed on, as YYYYMMDD.
    pub day: i64,
    /// When it changed, in microseconds since 1970.
    pub updated: i64,
    /// Of the last message of the log that changed it.
    pub sequence: i64,
    /// The thread that a message is in.
    pub thread: Option<String>,
}

impl SearchDocument {
    pub fn uid_of(kind: DocumentKind, agent: &str, id: &str) -> String {
        let name = format!("{}/{agent}/{id}", kind.name());
        Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()).simple().to_string()
    }

    /// The bytes that it takes on its way, about.
    pub fn encoded_len(&self) -> usize {
        serde_json::to_vec(self).map_or(usize::MAX, |json| json.len())
    }

    /// A digest of all of it.
    pub fn digest(&self) -> [u8; 32] {
        // The fields are written in the order of their declaration, so that equal documents are equal bytes.
        Sha256::digest(serde_json::to_vec(self).unwrap_or_default()).into()
    }
}

/// The words of the steps that a task runs: their names and what they are given.
pub fn step_words(action: &Value) -> String {
    let mut words = Vec::new();
    collect_texts(action, &mut words);
    words.join(" ").chars().take(LETTERS).collect()
}

fn collect_texts<'a>(value: &'a Value, words: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => words.push(text),
        Value::Array(values) => values.iter().for_each(|value| collect_texts(value, words)),
        Value::Object(fields) => fields.values().for_each(|value| collect_texts(value, words)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_is_the_documents_own_and_fits_the_engine() {
        let key = SearchDocument::uid_of(DocumentKind::Thread, "bob", "t");
        assert_eq!(key, SearchDocument::uid_of(DocumentKind::Thread, "bob", "t"));
        assert!(key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        for other in
            [(DocumentKind::Task, "bob", "t"), (DocumentKind::Thread, "eve", "t"), (DocumentKind::Thread, "bob", "u")]
        {
            assert_ne!(key, SearchDocument::uid_of(other.0, other.1, other.2));
        }
    }

    #[test]
    fn steps_are_found_by_what_they_say() {
        let action = json!([{ "event": "email.send", "params": { "to": ["ann"], "count": 3, "body": "Launch!" } }]);
        let text = step_words(&action);
        assert!(["email.send", "ann", "Launch!"].iter().all(|word| text.contains(word)), "{text}");
        assert!(!text.contains("params"), "{text}");
    }
}
