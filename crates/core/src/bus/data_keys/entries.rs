//! Entries of the bucket of data keys as a backup of it tells them apart: keys of users, and orders to forget them. Pure.

use super::StoredDataKey;
use crate::{ids::Name, subjects::DATA_KEYS_BUCKET};

/// Before the name of the user in the key of an order.
pub const ORDER: &str = "order";
const USER: &str = "user";

/// The kind of an entry in the bucket of data keys, and its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataKeyEntry {
    /// The data key of a user of this generation.
    User(Name, u32),
    /// An order to forget a user.
    Order(Name),
}

/// Parses the subject of an entry; `None` if it is neither of these.
pub fn parse_entry(subject: &str) -> Option<DataKeyEntry> {
    let key = subject.strip_prefix(&data_key_subject(""))?;
    let mut tokens = key.split('.');
    let whose = tokens.next()?;
    let name = Name::parse(tokens.next()?).ok()?;
    match (whose, tokens.next(), tokens.next()) {
        (ORDER, None, _) => Some(DataKeyEntry::Order(name)),
        (USER, Some(generation), None) => Some(DataKeyEntry::User(name, generation.parse().ok()?)),
        _ => None,
    }
}

/// Returns the subject of the order to forget a user.
pub fn order_subject(user: &Name) -> String {
    data_key_subject(&order_key(user))
}

/// Returns the bucket's key of the order to forget a user.
pub fn order_key(user: &Name) -> String {
    format!("{ORDER}.{user}")
}

/// The stream that the bucket is.
pub fn data_key_stream() -> String {
    format!("KV_{DATA_KEYS_BUCKET}")
}

/// The subject of a key of the bucket, or of a filter of keys.
pub fn data_key_subject(key: &str) -> String {
    format!("$KV.{DATA_KEYS_BUCKET}.{key}")
}

/// Returns the mark that replaces a destroyed key.
pub fn destroyed_mark() -> Vec<u8> {
    serde_json::to_vec(&StoredDataKey::Destroyed).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_told_apart_by_their_subjects() {
        let ann = Name::parse("ann").unwrap();
        assert_eq!(parse_entry(&order_subject(&ann)), Some(DataKeyEntry::Order(ann.clone())));
        assert_eq!(parse_entry("$KV.KAIRO_DATA_KEYS.user.ann.3"), Some(DataKeyEntry::User(ann, 3)));
        for other in ["$KV.KAIRO_DATA_KEYS.agent.ann.3", "$KV.KAIRO_DATA_KEYS.user.ann.x", "$KV.KAIRO_KEYS.order.ann"] {
            assert_eq!(parse_entry(other), None, "{other}");
        }
    }
}
